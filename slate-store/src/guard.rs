/// How a transaction relies on a key that it does not write. See [`Transaction::guard`](crate::Transaction::guard).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The commit fails if another transaction wrote the key or guarded it exclusively. Shared guards of one key do not
    /// conflict with each other.
    Shared,
    /// Conflicts like a write of the key, without changing it, and also with shared guards. If one of two guards of a
    /// key is exclusive, only the transaction that commits first succeeds.
    Exclusive,
}
