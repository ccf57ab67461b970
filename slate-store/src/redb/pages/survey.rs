use std::io;

use ::redb::{StorageBackend, StorageError};

use super::{
    header::{Header, Root},
    page::{Page, Widths, verified},
    walk::{DEEPEST, table_root},
};
use crate::{Result, redb::error};

/// Why a survey ended early.
enum Ended {
    /// A page does not have its checksum.
    Damaged,
    Failed(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// A count of the bytes of all pages of tables, for which only branches are read: a hundredth of the file.
struct Survey<'s> {
    header: Header,
    storage: &'s dyn StorageBackend,
    used: u64,
}

/// Returns the bytes of the pages of all tables except for redb's own. `None` if a page is damaged.
pub(in crate::redb) fn used_bytes(header: Header, storage: &dyn StorageBackend) -> Result<Option<u64>> {
    let mut survey = Survey { header, storage, used: 0 };
    let Some(root) = header.tables else { return Ok(Some(0)) };
    match survey.list(root, 0) {
        Ok(()) => Ok(Some(survey.used)),
        Err(Ended::Damaged) => Ok(None),
        Err(Ended::Failed(error)) => Err(error::storage(StorageError::Io(error))),
    }
}

impl Survey<'_> {
    fn list(&mut self, root: Root, depth: usize) -> std::result::Result<(), Ended> {
        let bytes = self.page(root)?;
        match verified(&bytes, root.checksum, Widths::default()).filter(|_| depth < DEEPEST).ok_or(Ended::Damaged)? {
            Page::Branch(branch) => branch.children().try_for_each(|(child, ..)| self.list(child, depth + 1)),
            Page::Leaf(leaf) => leaf
                .entries()
                .filter_map(|(_, definition)| table_root(definition))
                .try_for_each(|(root, widths)| self.table(root, widths)),
        }
    }

    fn table(&mut self, root: Root, widths: Widths) -> std::result::Result<(), Ended> {
        // All leaves are equally deep, so one path tells which children are leaves without reading them.
        let (mut height, mut page) = (0, root);
        loop {
            let bytes = self.page(page)?;
            match verified(&bytes, page.checksum, widths).filter(|_| height < DEEPEST).ok_or(Ended::Damaged)? {
                Page::Leaf(_) => break,
                Page::Branch(branch) => page = branch.children().next().ok_or(Ended::Damaged)?.0,
            }
            height += 1;
        }
        self.tree(root, widths, height)
    }

    fn tree(&mut self, root: Root, widths: Widths, height: usize) -> std::result::Result<(), Ended> {
        self.used += self.header.place(root.page).ok_or(Ended::Damaged)?.1;
        if height == 0 {
            return Ok(());
        }
        let bytes = self.page(root)?;
        let Some(Page::Branch(branch)) = verified(&bytes, root.checksum, widths) else { return Err(Ended::Damaged) };
        branch.children().try_for_each(|(child, ..)| self.tree(child, widths, height - 1))
    }

    fn page(&self, root: Root) -> std::result::Result<Vec<u8>, Ended> {
        let (start, length) = self.header.place(root.page).ok_or(Ended::Damaged)?;
        if start.saturating_add(length) > self.storage.len()? {
            return Err(Ended::Damaged);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Ended::Damaged)?];
        self.storage.read(start, &mut bytes)?;
        Ok(bytes)
    }
}
