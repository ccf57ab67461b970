/// What a backend can do; stated, not pretended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether two write transactions may be open at once. Where not, `begin` waits for the other to end.
    pub concurrent_writers: bool,
    /// Whether commits outlive the process.
    pub persistent: bool,
    /// Whether [`backup`](crate::Store::backup) works.
    pub backup: bool,
    /// The longest key, in bytes.
    pub max_key: usize,
    /// The longest value, in bytes.
    pub max_value: usize,
    /// The most keys that one transaction may write, where there is such a limit; one more is
    /// [`TooLarge`](crate::Error::TooLarge).
    pub max_transaction_keys: Option<usize>,
}

impl Capabilities {
    /// A backend that can do the least: writers take turns, nothing outlives the process, no backup; with the limits
    /// [`MAX_KEY`](crate::MAX_KEY) and [`MAX_VALUE`](crate::MAX_VALUE). To be built upon by a backend of one's own.
    pub const MINIMAL: Self = Self {
        concurrent_writers: false,
        persistent: false,
        backup: false,
        max_key: crate::MAX_KEY,
        max_value: crate::MAX_VALUE,
        max_transaction_keys: None,
    };
}
