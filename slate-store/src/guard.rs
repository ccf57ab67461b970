/// How a transaction relies on a key that it does not write. See [`Transaction::guard`](crate::Transaction::guard).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Fails to commit if another transaction wrote the key, or guarded it exclusively. Any number of transactions may
    /// guard a key shared at the same time: they never conflict with each other.
    Shared,
    /// Conflicts as a write of the key does, without changing it, and with every shared guard as well: of an exclusive
    /// guard and any other guard of one key the first to commit wins.
    Exclusive,
}
