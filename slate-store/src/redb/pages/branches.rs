use std::io;

use ::redb::StorageBackend;

use super::{
    header::{Header, Root},
    page::{Page, Widths, verified},
    walk::DEEPEST,
};

/// Why a walk over pages ended early.
pub(super) enum Ended {
    /// A page does not have its checksum.
    Damaged,
    /// There was no more time.
    Late,
    Failed(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Walked<T> = Result<T, Ended>;

/// Reads the branches of trees: a hundredth of the file.
pub(super) struct Branches<'b> {
    pub(super) header: Header,
    pub(super) storage: &'b dyn StorageBackend,
}

impl Branches<'_> {
    /// Returns where a page begins in the file, and its length.
    pub(super) fn place(&self, root: Root) -> Walked<(u64, u64)> {
        self.header.place(root.page).ok_or(Ended::Damaged)
    }

    /// Reads a page, which is not verified yet.
    pub(super) fn page(&self, root: Root) -> Walked<Vec<u8>> {
        let (start, length) = self.place(root)?;
        if start.saturating_add(length) > self.storage.len()? {
            return Err(Ended::Damaged);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Ended::Damaged)?];
        self.storage.read(start, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns how many branches are above each leaf, which is the same for all: it tells which children are leaves without reading them.
    pub(super) fn height(&self, root: Root, widths: Widths) -> Walked<usize> {
        let (mut height, mut page) = (0, root);
        loop {
            let bytes = self.page(page)?;
            match verified(&bytes, page.checksum, widths).filter(|_| height < DEEPEST).ok_or(Ended::Damaged)? {
                Page::Leaf(_) => return Ok(height),
                Page::Branch(branch) => page = branch.children().next().ok_or(Ended::Damaged)?.0,
            }
            height += 1;
        }
    }
}
