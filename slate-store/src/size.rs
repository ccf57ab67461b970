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
    /// Bytes of the files that hold nothing any more. They are used again, or returned by a compaction. Some backends
    /// estimate them.
    pub free: Option<u64>,
}

/// What [`Store::size`](crate::Store::size) may do to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeDetail {
    /// Report what is known.
    Known,
    /// Also read everything and, if writers take turns, wait for the turn at most this long, to measure
    /// [`free`](Size::free).
    Measured(Duration),
}
