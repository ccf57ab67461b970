use std::time::Instant;

use ::redb::StorageBackend;

use super::{
    branches::{Branches, Ended, Walked},
    header::{Root, header},
    page::{Page, Widths, verified},
    walk::{DEEPEST, table_root},
};
use crate::{Result, redb::error};

/// A count of the bytes of all pages of tables, for which only branches are read.
struct Survey<'s> {
    branches: Branches<'s>,
    used: u64,
    until: Option<Instant>,
}

/// Returns the bytes of the pages of all tables on the device, without redb's own. `None` if a page is damaged, or at `until`.
pub(in crate::redb) fn used_bytes(storage: &dyn StorageBackend, until: Option<Instant>) -> Result<Option<u64>> {
    let Some(header) = header(storage)? else { return Ok(None) };
    let mut survey = Survey { branches: Branches { header, storage }, used: 0, until };
    let Some(root) = header.tables else { return Ok(Some(0)) };
    match survey.list(root, 0) {
        Ok(()) => Ok(Some(survey.used)),
        Err(Ended::Damaged | Ended::Late) => Ok(None),
        Err(Ended::Failed(error)) => Err(error::reading(error)),
    }
}

impl Survey<'_> {
    fn list(&mut self, root: Root, depth: usize) -> Walked<()> {
        let bytes = self.branches.page(root)?;
        match verified(&bytes, root.checksum, Widths::default()).filter(|_| depth < DEEPEST).ok_or(Ended::Damaged)? {
            Page::Branch(branch) => branch.children().try_for_each(|(child, ..)| self.list(child, depth + 1)),
            Page::Leaf(leaf) => leaf
                .entries()
                .filter_map(|(_, definition)| table_root(definition))
                .try_for_each(|(root, widths)| self.tree(root, widths, self.branches.height(root, widths)?)),
        }
    }

    fn tree(&mut self, root: Root, widths: Widths, height: usize) -> Walked<()> {
        self.used += self.branches.place(root)?.1;
        if height == 0 {
            return Ok(());
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(Ended::Late);
        }
        let bytes = self.branches.page(root)?;
        let Some(Page::Branch(branch)) = verified(&bytes, root.checksum, widths) else { return Err(Ended::Damaged) };
        branch.children().try_for_each(|(child, ..)| self.tree(child, widths, height - 1))
    }
}
