use std::{mem, panic::resume_unwind, thread};

use ::redb::StorageBackend;

use super::{
    branches::{Branches, Ended, Walked},
    header::{Header, Root},
    page::{Leaf, Page, Widths, verified},
    walk::{DEEPEST, Keys},
};
use crate::{Error, Result, redb::error};

/// The number of threads that read leaves at the same time.
const THREADS: usize = 8;

/// A leaf of a table, which a branch refers to.
pub(in crate::redb) struct LeafPlace {
    root: Root,
    widths: Widths,
    start: u64,
    pub(in crate::redb) length: u64,
    /// The greatest end offset, in the file, of this leaf and the branches above it. Leaves out branches that are also above an earlier leaf of the
    /// group.
    pub(in crate::redb) end: u64,
    /// The bytes of this leaf and the branches above it. Leaves out branches that are also above an earlier leaf of the table.
    pub(in crate::redb) used: u64,
    /// All keys of the leaf are above this one; `None` for the first leaf.
    pub(in crate::redb) after: Option<Box<[u8]>>,
    /// No key of the leaf is above this one; `None` for the last leaf.
    pub(in crate::redb) up_to: Option<Box<[u8]>>,
}

/// What a leaf contains.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::redb) struct LeafContent {
    pub(in crate::redb) entries: u64,
    /// The bytes of keys and values.
    pub(in crate::redb) bytes: u64,
    /// The bytes of the page up to the end of the last value.
    pub(in crate::redb) needed: u64,
}

/// The leaves of one table, in the order of their keys. Reads branches only.
struct Leaves<'l> {
    branches: Branches<'l>,
    after: Option<&'l [u8]>,
    most_bytes: u64,
    found: Vec<LeafPlace>,
    bytes: u64,
}

/// The branches visited since the last leaf; they are above the next one.
#[derive(Default)]
struct Path {
    end: u64,
    used: u64,
}

/// Returns the leaves of a table after the key `after`, in order, until they have at least `most_bytes` bytes. Empty if there are no more, or the
/// table does not exist.
///
/// # Errors
/// [`Corrupt`](crate::Error::Corrupt): a branch is damaged.
pub(in crate::redb) fn leaves(
    header: Header,
    storage: &dyn StorageBackend,
    table: &str,
    after: Option<&[u8]>,
    most_bytes: u64,
) -> Result<Vec<LeafPlace>> {
    let branches = Branches { header, storage };
    let mut leaves = Leaves { branches, after, most_bytes, found: Vec::new(), bytes: 0 };
    leaves.table(table).map_err(|ended| failed(ended, table))?;
    Ok(leaves.found)
}

/// Reads the leaf that contains `key` or would contain it, the branches above it, and the siblings next to each of these pages. redb may merge them
/// when it removes entries, and would give a damaged one a new checksum.
///
/// # Errors
///
/// [`Corrupt`](crate::Error::Corrupt): one of these pages is damaged.
pub(in crate::redb) fn check_around(
    header: Header,
    storage: &dyn StorageBackend,
    table: &str,
    key: &[u8],
) -> Result<()> {
    around(&Branches { header, storage }, table, key).map_err(|ended| failed(ended, table))
}

fn around(branches: &Branches<'_>, table: &str, key: &[u8]) -> Walked<()> {
    let Some((mut page, widths)) = branches.table(table)? else { return Ok(()) };
    for _ in 0..DEEPEST {
        let bytes = branches.page(page)?;
        let branch = match verified(&bytes, page.checksum, widths).ok_or(Ended::Damaged)? {
            Page::Leaf(_) => return Ok(()),
            Page::Branch(branch) => branch,
        };
        let children: Vec<_> = branch.children().collect();
        let at =
            children.iter().position(|(.., up_to)| up_to.is_none_or(|up_to| key <= up_to)).ok_or(Ended::Damaged)?;
        for (beside, ..) in [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| children.get(at)) {
            verified(&branches.page(*beside)?, beside.checksum, widths).ok_or(Ended::Damaged)?;
        }
        page = children.get(at).ok_or(Ended::Damaged)?.0;
    }
    Err(Ended::Damaged)
}

/// Returns the branches of a table in the order of their keys, each with its offset in the file and the end of its content.
#[cfg(test)]
pub(in crate::redb) fn branches_of(
    header: Header,
    storage: &dyn StorageBackend,
    table: &str,
) -> Result<Vec<(u64, u64)>> {
    let branches = Branches { header, storage };
    let all =
        branches.table(table).and_then(|root| root.map_or(Ok(Vec::new()), |(root, widths)| branches.all(root, widths)));
    all.map_err(|ended| failed(ended, table))
}

fn failed(ended: Ended, table: &str) -> Error {
    match ended {
        Ended::Failed(error) => error::reading(error),
        Ended::Damaged | Ended::Late => {
            error::damaged(format!("a page of the table {table} does not have its checksum"))
        }
    }
}

/// Reads leaves, several at the same time, and returns what each contains.
///
/// # Errors
/// [`Corrupt`](crate::Error::Corrupt): one of the leaves is damaged.
pub(in crate::redb) fn read(storage: &dyn StorageBackend, leaves: &[&LeafPlace]) -> Result<Vec<LeafContent>> {
    let read = |leaves: &[&LeafPlace]| leaves.iter().map(|leaf| content(storage, leaf)).collect::<Result<Vec<_>>>();
    thread::scope(|scope| {
        let parts = leaves.chunks(leaves.len().div_ceil(THREADS).max(1));
        let begun: Vec<_> =
            parts.map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || read(part)))).collect();
        let contents = begun.into_iter().map(|(part, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The thread could not be started, so this one reads the leaves.
            Err(_) => read(part),
        });
        Ok(contents.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

fn content(storage: &dyn StorageBackend, leaf: &LeafPlace) -> Result<LeafContent> {
    let damaged = || error::damaged(format!("a page (at byte {}) does not have its checksum", leaf.start));
    let mut bytes = vec![0; usize::try_from(leaf.length).map_err(|_| damaged())?];
    storage.read(leaf.start, &mut bytes).map_err(error::reading)?;
    match verified(&bytes, leaf.root.checksum, leaf.widths) {
        Some(Page::Leaf(leaf)) => leaf_content(&leaf).ok_or_else(damaged),
        Some(Page::Branch(_)) | None => Err(damaged()),
    }
}

fn leaf_content(leaf: &Leaf<'_>) -> Option<LeafContent> {
    let (entries, bytes, needed) = leaf.content()?;
    let [entries, bytes, needed] = [entries, bytes, needed].map(u64::try_from);
    Some(LeafContent { entries: entries.ok()?, bytes: bytes.ok()?, needed: needed.ok()? })
}

impl Leaves<'_> {
    /// Collects the leaves of a table; none if it is missing or empty.
    fn table(&mut self, name: &str) -> Walked<()> {
        let Some((root, widths)) = self.branches.table(name)? else { return Ok(()) };
        self.tree(root, widths, self.branches.height(root, widths)?, Keys::default(), &mut Path::default())
    }

    /// Collects the leaves of a tree. `path` has the branches visited since the last leaf.
    fn tree(&mut self, root: Root, widths: Widths, height: usize, keys: Keys<'_>, path: &mut Path) -> Walked<()> {
        let is_before = keys.up_to.zip(self.after).is_some_and(|(up_to, after)| up_to <= after);
        if is_before || self.bytes >= self.most_bytes {
            return Ok(());
        }
        let (start, length) = self.branches.place(root)?;
        path.end = start.saturating_add(length).max(path.end);
        // Other branches are also above a leaf of an earlier group, which counted them.
        if height == 0 || keys.after >= self.after {
            path.used += length;
        }
        if height == 0 {
            let boxed = |key: Option<&[u8]>| key.map(Into::into);
            let (after, up_to) = (boxed(keys.after), boxed(keys.up_to));
            let Path { end, used } = mem::take(path);
            self.found.push(LeafPlace { root, widths, start, length, end, used, after, up_to });
            self.bytes += length;
            return Ok(());
        }
        let bytes = self.branches.page(root)?;
        let Some(Page::Branch(branch)) = verified(&bytes, root.checksum, widths) else { return Err(Ended::Damaged) };
        branch.children().try_for_each(|(child, after, up_to)| {
            let keys = Keys { after: after.or(keys.after), up_to: up_to.or(keys.up_to) };
            self.tree(child, widths, height - 1, keys, path)
        })
    }
}
