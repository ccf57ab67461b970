use std::thread;

use ::redb::StorageBackend;

use super::{
    header::{Header, Root},
    page::{Leaf, Page, Widths, verified},
    walk::{DEEPEST, Keys, table_root},
};

/// The number of threads that read leaves at the same time.
const THREADS: usize = 8;

/// A leaf of a table, which a branch refers to.
pub(in crate::redb) struct LeafPlace {
    root: Root,
    widths: Widths,
    start: u64,
    pub(in crate::redb) length: u64,
    /// The end in the file of the last page on the path to this leaf that no leaf before it has on its path.
    pub(in crate::redb) end: u64,
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
    /// The bytes that the page needs for them.
    pub(in crate::redb) needed: u64,
}

/// The leaves of one table, in the order of their keys. Reads branches only.
struct Leaves<'l> {
    header: Header,
    storage: &'l dyn StorageBackend,
    after: Option<&'l [u8]>,
    most_bytes: u64,
    found: Vec<LeafPlace>,
    bytes: u64,
}

/// Returns the leaves of a table behind the key `after`, about as many as have `most_bytes` bytes. `None` if a page is damaged or cannot be
/// read, or the table does not exist.
pub(in crate::redb) fn leaves(
    header: Header,
    storage: &dyn StorageBackend,
    table: &str,
    after: Option<&[u8]>,
    most_bytes: u64,
) -> Option<Vec<LeafPlace>> {
    let mut leaves = Leaves { header, storage, after, most_bytes, found: Vec::new(), bytes: 0 };
    let Some((root, widths)) = leaves.table(header.tables?, table.as_bytes(), 0)? else { return Some(Vec::new()) };
    let height = leaves.height(root, widths)?;
    leaves.tree(root, widths, height, Keys::default(), &mut 0)?;
    Some(leaves.found)
}

/// Reads leaves, several at the same time, and returns what each contains. `None` if one is damaged or cannot be read.
pub(in crate::redb) fn read(storage: &dyn StorageBackend, leaves: &[LeafPlace]) -> Option<Vec<LeafContent>> {
    let read = |leaves: &[LeafPlace]| leaves.iter().map(|leaf| content(storage, leaf)).collect::<Option<Vec<_>>>();
    thread::scope(|scope| {
        let parts = leaves.chunks(leaves.len().div_ceil(THREADS).max(1));
        let threads: Option<Vec<_>> =
            parts.map(|part| thread::Builder::new().spawn_scoped(scope, move || read(part)).ok()).collect();
        let contents: Vec<Option<Vec<LeafContent>>> =
            threads?.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        Some(contents.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

fn content(storage: &dyn StorageBackend, leaf: &LeafPlace) -> Option<LeafContent> {
    let mut bytes = vec![0; usize::try_from(leaf.length).ok()?];
    storage.read(leaf.start, &mut bytes).ok()?;
    match verified(&bytes, leaf.root.checksum, leaf.widths)? {
        Page::Leaf(leaf) => leaf_content(&leaf),
        Page::Branch(_) => None,
    }
}

fn leaf_content(leaf: &Leaf<'_>) -> Option<LeafContent> {
    let (entries, bytes, needed) = leaf.content()?;
    let [entries, bytes, needed] = [entries, bytes, needed].map(u64::try_from);
    Some(LeafContent { entries: entries.ok()?, bytes: bytes.ok()?, needed: needed.ok()? })
}

impl Leaves<'_> {
    /// Searches the list of tables, which is a tree of roots. The inner `None`: the table is not there, or is empty.
    fn table(&self, root: Root, name: &[u8], depth: usize) -> Option<Option<(Root, Widths)>> {
        let bytes = self.page(root)?;
        match verified(&bytes, root.checksum, Widths::default()).filter(|_| depth < DEEPEST)? {
            Page::Leaf(leaf) => {
                let entry = leaf.entries().find(|(entry, _)| *entry == name);
                Some(entry.and_then(|(_, definition)| table_root(definition)))
            }
            Page::Branch(branch) => {
                let is_up_to = |up_to: Option<&[u8]>| up_to.is_none_or(|up_to| name <= up_to);
                let (child, ..) = branch.children().find(|(_, _, up_to)| is_up_to(*up_to))?;
                self.table(child, name, depth + 1)
            }
        }
    }

    /// Returns how many branches are above each leaf, which is the same for all.
    fn height(&self, root: Root, widths: Widths) -> Option<usize> {
        let (mut height, mut page) = (0, root);
        loop {
            let bytes = self.page(page)?;
            match verified(&bytes, page.checksum, widths).filter(|_| height < DEEPEST)? {
                Page::Leaf(_) => return Some(height),
                Page::Branch(branch) => page = branch.children().next()?.0,
            }
            height += 1;
        }
    }

    /// Collects the leaves of a tree. `above` is the greatest end of the branches that no leaf has on its path yet.
    fn tree(&mut self, root: Root, widths: Widths, height: usize, keys: Keys<'_>, above: &mut u64) -> Option<()> {
        let is_before = keys.up_to.zip(self.after).is_some_and(|(up_to, after)| up_to <= after);
        if is_before || self.bytes >= self.most_bytes {
            return Some(());
        }
        let (start, length) = self.header.place(root.page)?;
        *above = start.saturating_add(length).max(*above);
        if height == 0 {
            let boxed = |key: Option<&[u8]>| key.map(Into::into);
            let (after, up_to) = (boxed(keys.after), boxed(keys.up_to));
            self.found.push(LeafPlace { root, widths, start, length, end: *above, after, up_to });
            self.bytes += length;
            *above = 0;
            return Some(());
        }
        let bytes = self.page(root)?;
        let Page::Branch(branch) = verified(&bytes, root.checksum, widths)? else { return None };
        branch.children().try_for_each(|(child, after, up_to)| {
            let keys = Keys { after: after.or(keys.after), up_to: up_to.or(keys.up_to) };
            self.tree(child, widths, height - 1, keys, above)
        })
    }

    fn page(&self, root: Root) -> Option<Vec<u8>> {
        let (start, length) = self.header.place(root.page)?;
        if start.checked_add(length)? > self.storage.len().ok()? {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.storage.read(start, &mut bytes).ok()?;
        Some(bytes)
    }
}
