use std::time::Duration;

/// The space that a database takes. `None`: the backend does not know, or would have to read everything to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of all files on the device, free space within them included.
    pub on_disk: Option<u64>,
    /// Bytes of main memory that hold or cache data.
    pub in_memory: Option<u64>,
    /// Total bytes of the keys and values of the last commit, without storage overhead.
    pub data: Option<u64>,
    /// Bytes of free space in the files, which is reused or returned by a compaction. Some backends
    /// estimate it.
    pub free: Option<u64>,
}

/// How much work [`Store::size`](crate::Store::size) may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeDetail {
    /// Reports only sizes that the backend knows.
    Known,
    /// Also measures [`free`](Size::free), which may read the whole database. A store on a network waits at most this long
    /// for the result.
    Measured(Duration),
}
