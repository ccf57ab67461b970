/// The space that a database takes. `None` if the backend would have to read everything to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of all files on the device, free space within them included.
    pub on_disk: Option<u64>,
    /// Bytes of main memory that hold or cache data.
    pub in_memory: Option<u64>,
    /// Total bytes of the keys and values of the last commit, without storage overhead.
    pub data: Option<u64>,
}
