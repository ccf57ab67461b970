/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Until the device has the commit. Concurrent commits share one sync of the device.
    #[default]
    Sync,
    /// Until readers can see the commit. It is on the device after the next `Sync` commit or
    /// [`flush`](crate::Store::flush). A crash, even of the process alone, loses at most the most recent commits, never
    /// one from the middle.
    Deferred,
}
