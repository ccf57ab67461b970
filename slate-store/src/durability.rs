/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// On the device before `commit` returns. Committers that meet share one trip to it.
    #[default]
    Sync,
    /// In order, and on the device by the next `Sync` commit or [`flush`](crate::Store::flush). A crash, also of the
    /// process alone, loses at most a suffix of the commits, never one out of their middle.
    Deferred,
}
