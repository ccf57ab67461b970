use std::io;

use ::redb::StorageBackend;

use super::{
    header::{Header, Root},
    page::{Page, Widths, verified},
    walk::{DEEPEST, table_root},
};

/// Why a walk over pages ended early.
pub(super) enum Ended {
    /// A page does not match its checksum.
    Damaged,
    /// Time ran out.
    Late,
    Failed(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Walked<T> = Result<T, Ended>;

/// Reads the branches of trees: about a hundredth of the file.
pub(super) struct Branches<'b> {
    pub(super) header: Header,
    pub(super) storage: &'b dyn StorageBackend,
}

impl Branches<'_> {
    /// Returns the offset of a page in the file, and its length, in bytes.
    pub(super) fn place(&self, root: Root) -> Walked<(u64, u64)> {
        self.header.place(root.page).ok_or(Ended::Damaged)
    }

    /// Reads a page without comparing its checksum.
    pub(super) fn page(&self, root: Root) -> Walked<Vec<u8>> {
        let (start, length) = self.place(root)?;
        if start.saturating_add(length) > self.storage.len()? {
            return Err(Ended::Damaged);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Ended::Damaged)?];
        self.storage.read(start, &mut bytes)?;
        Ok(bytes)
    }

    /// Searches the list of tables, which is a tree of roots; `None` if the table is missing or empty.
    pub(super) fn table(&self, name: &str) -> Walked<Option<(Root, Widths)>> {
        let (name, Some(mut page)) = (name.as_bytes(), self.header.tables) else { return Ok(None) };
        for _ in 0..DEEPEST {
            let bytes = self.page(page)?;
            match verified(&bytes, page.checksum, Widths::default()).ok_or(Ended::Damaged)? {
                Page::Leaf(leaf) => {
                    let entry = leaf.entries().find(|(entry, _)| *entry == name);
                    return Ok(entry.and_then(|(_, definition)| table_root(definition)));
                }
                Page::Branch(branch) => {
                    let child = branch.children().find(|(.., up_to)| up_to.is_none_or(|up_to| name <= up_to));
                    page = child.ok_or(Ended::Damaged)?.0;
                }
            }
        }
        Err(Ended::Damaged)
    }

    /// Returns the branches of a table, each with its offset in the file and the end of its content.
    #[cfg(test)]
    pub(super) fn all(&self, root: Root, widths: Widths) -> Walked<Vec<(u64, u64)>> {
        let bytes = self.page(root)?;
        let Page::Branch(branch) = verified(&bytes, root.checksum, widths).ok_or(Ended::Damaged)? else {
            return Ok(Vec::new());
        };
        let end = branch.end().and_then(|end| u64::try_from(end).ok()).ok_or(Ended::Damaged)?;
        let mut all = vec![(self.place(root)?.0, end)];
        for (child, ..) in branch.children() {
            all.extend(self.all(child, widths)?);
        }
        Ok(all)
    }

    /// Returns the number of branches above a leaf. It is the same for all leaves, so it shows which children are
    /// leaves.
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
