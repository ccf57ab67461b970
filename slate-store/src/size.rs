/// How much room a database takes. `None` where a backend cannot tell without reading everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of all files on the device, free space within them included.
    pub on_disk: Option<u64>,
    /// Bytes of main memory that hold or cache data.
    pub in_memory: Option<u64>,
    /// Bytes of the keys and values of the last commit themselves, without what it takes to store them.
    pub data: Option<u64>,
}
