/// What transactions may not do to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each reads one commit; two that write one key conflict, and the first to commit wins.
    #[default]
    Snapshot,
    /// As well: what [`Transaction::guard`](crate::Transaction::guard) names must not have been written by others.
    Serializable,
}
