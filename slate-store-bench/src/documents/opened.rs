use slate_bench_harness::Result;

use super::Documents;
use crate::{
    Durability,
    workload::tools::{Folder, Folders},
};

/// A store in its own directory. The store is dropped before the directory.
pub(super) struct Opened<D> {
    pub(super) store: D,
    pub(super) folder: Folder,
}

impl<D: Documents> Opened<D> {
    pub(super) fn empty(folders: &Folders, durability: Durability) -> Result<Self> {
        let folder = folders.make()?;
        Ok(Self { store: D::open(folder.path(), durability)?, folder })
    }
}
