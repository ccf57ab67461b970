use super::{ReadCollection, runner::Runner};

/// One commit of a database, across all its collections; see [`Database::snapshot`](super::Database::snapshot).
#[derive(Clone, Debug)]
pub struct Snapshot {
    snapshot: crate::Snapshot,
    runner: Runner,
}

impl Snapshot {
    pub(super) fn new(snapshot: crate::Snapshot, runner: Runner) -> Self {
        Self { snapshot, runner }
    }

    /// A collection as of this commit.
    pub fn collection<T>(&self, name: &str) -> ReadCollection<T> {
        ReadCollection::new(self.snapshot.collection(name), self.runner.clone())
    }

    /// The names of the collections, in order.
    pub fn collection_names(&self) -> Vec<String> {
        self.snapshot.collection_names()
    }

    /// The snapshot for blocking code.
    pub fn as_blocking(&self) -> &crate::Snapshot {
        &self.snapshot
    }
}
