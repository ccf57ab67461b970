/// What a backend can do, and its limits.
///
/// A backend of one's own starts from [`MINIMAL`](Self::MINIMAL):
///
/// ```
/// use slate_store::Capabilities;
///
/// let capabilities = Capabilities { name: "btree", concurrent_writers: true, ..Capabilities::MINIMAL };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The backend's name in messages, in lower case: `"memory"`.
    pub name: &'static str,
    /// Whether several write transactions may be open at once. If not, `begin` waits for the other one to end.
    pub concurrent_writers: bool,
    /// Whether this process alone writes to the database while it is open. If not, nothing that was read may be cached
    /// without comparing versions.
    pub exclusive: bool,
    /// Whether commits outlive the process.
    pub persistent: bool,
    /// Whether [`backup`](crate::Store::backup) works.
    pub backup: bool,
    /// The longest key, in bytes.
    pub max_key: usize,
    /// The longest value, in bytes.
    pub max_value: usize,
    /// The most bytes of keys and values that one transaction may write; `None` for no limit.
    pub max_transaction_bytes: Option<usize>,
}

impl Capabilities {
    /// The least that a backend can do: one writer at a time, other processes may write, nothing outlives the process, no
    /// backup, with the limits
    /// [`MAX_KEY`](crate::MAX_KEY) and [`MAX_VALUE`](crate::MAX_VALUE).
    pub const MINIMAL: Self = Self {
        name: "unnamed",
        concurrent_writers: false,
        exclusive: false,
        persistent: false,
        backup: false,
        max_key: crate::MAX_KEY,
        max_value: crate::MAX_VALUE,
        max_transaction_bytes: None,
    };

    /// Checks keys and values to be written against the limits of one key and one value.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::Error::TooLarge) for the first that is too long.
    pub fn check_sizes(&self, entries: &[(&[u8], Option<&[u8]>)]) -> crate::Result<()> {
        entries.iter().try_for_each(|(key, value)| {
            check("key", key.len(), self.max_key)?;
            check("value", value.map_or(0, <[u8]>::len), self.max_value)
        })
    }
}

fn check(what: &'static str, size: usize, limit: usize) -> crate::Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(crate::Error::TooLarge(Box::new(crate::TooLarge { what, size, limit })))
}
