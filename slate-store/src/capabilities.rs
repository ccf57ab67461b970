/// What a backend supports, and its limits.
///
/// A backend outside this crate starts from [`MINIMAL`](Self::MINIMAL):
///
/// ```
/// use slate_store::Capabilities;
///
/// let capabilities = Capabilities { name: "btree", exclusive: true, ..Capabilities::MINIMAL };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The backend's name for messages, in lower case: `"memory"`.
    pub name: &'static str,
    /// Whether only this process writes to the database while it is open. If not, a cached value may be used only after a comparison of versions.
    pub exclusive: bool,
    /// Whether commits outlive the process.
    pub persistent: bool,
    /// Whether [`backup`](crate::Store::backup) works.
    pub backup: bool,
    /// The longest key, in bytes.
    pub max_key: usize,
    /// The longest value, in bytes.
    pub max_value: usize,
    /// The most bytes of keys and values that one transaction may write before the [last stage](crate::Transaction::commit_with) of its
    /// commit; `None` for no limit.
    pub max_transaction_bytes: Option<usize>,
    /// The approximate maximum number of keys that one transaction may write and guard; `None` for no limit. Long keys and values can lower it.
    pub max_transaction_keys: Option<usize>,
    /// Whether reads and commits are round trips over a network, so that few large requests are better than many small ones.
    pub remote: bool,
    /// Whether the deletion of a range or a keyspace conflicts with open transactions that wrote or guarded any key in it, and also deletes keys
    /// that others committed in it after the view. If not, it deletes the keys that the view shows, and conflicts only over these; a drop of a
    /// keyspace also conflicts with transactions of its own process.
    pub ranges_conflict: bool,
    /// Whether shared guards of one key never conflict with each other. If not, only those within one process and in keyspace 0 never do; any
    /// other two guards of one key may conflict, whatever their kind.
    pub shared_guards: bool,
    /// Whether the [last stage](crate::Transaction::commit_with) of a commit receives the version of the commit, and may exceed the limits of the
    /// transaction. If not, it receives the version of the view, and has the limits of the transaction.
    pub commit_versions: bool,
}

impl Capabilities {
    /// The minimum: other processes may write, not persistent, no backup, and the limits [`MAX_KEY`](crate::MAX_KEY) and
    /// [`MAX_VALUE`](crate::MAX_VALUE); but everything that [`Optimistic`](crate::Optimistic) adds to a store on this machine.
    pub const MINIMAL: Self = Self {
        name: "unnamed",
        exclusive: false,
        persistent: false,
        backup: false,
        max_key: crate::MAX_KEY,
        max_value: crate::MAX_VALUE,
        max_transaction_bytes: None,
        max_transaction_keys: None,
        remote: false,
        ranges_conflict: true,
        shared_guards: true,
        commit_versions: true,
    };

    /// Checks the lengths of keys and values against the limits.
    ///
    /// # Errors
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
