use std::{io, ops::ControlFlow};

use ::redb::StorageBackend;

use super::{
    header::{Header, HeaderToWrite, Root, header_to_write, u32_at},
    page::{Page, Widths, verified},
};
use crate::{Checked, Damage, Keyspace, redb::table};

/// Maximum height of a tree: a branch has dozens of children, so the trees of a sound file are far lower.
pub(super) const DEEPEST: usize = 64;

/// A walk over the pages of a commit that compares them with their checksums.
pub(in crate::redb) struct PageWalk<'w> {
    header: Header,
    storage: &'w dyn StorageBackend,
    /// The length of the storage, which no page exceeds.
    length: u64,
    visitor: &'w mut dyn FnMut(Checked) -> ControlFlow<()>,
    read: u64,
}

/// The keys of a page: above `after`, and not above `up_to`.
#[derive(Clone, Copy, Default)]
pub(super) struct Keys<'k> {
    pub(super) after: Option<&'k [u8]>,
    pub(super) up_to: Option<&'k [u8]>,
}

impl<'w> PageWalk<'w> {
    pub(in crate::redb) fn new(
        header: Header,
        storage: &'w dyn StorageBackend,
        visitor: &'w mut dyn FnMut(Checked) -> ControlFlow<()>,
    ) -> io::Result<Self> {
        let length = storage.len()?;
        Ok(Self { header, storage, length, visitor, read: 0 })
    }

    /// Checks the tables of keyspaces. A snapshot must hold the commit.
    pub(in crate::redb) fn tables(&mut self) -> ControlFlow<()> {
        self.list(self.header.tables)
    }

    /// Checks redb's own tables. No commit may be made meanwhile, because it would reuse their pages.
    pub(in crate::redb) fn own_tables(&mut self) -> ControlFlow<()> {
        self.list(self.header.own_tables)
    }

    fn list(&mut self, root: Option<Root>) -> ControlFlow<()> {
        let Some(root) = root else { return ControlFlow::Continue(()) };
        self.tree(None, root, Widths::default(), Keys::default(), 0)
    }

    /// Checks a tree of entries, or the list of tables, which is a tree of roots.
    fn tree(
        &mut self,
        table: Option<&[u8]>,
        root: Root,
        widths: Widths,
        keys: Keys<'_>,
        depth: usize,
    ) -> ControlFlow<()> {
        let bytes = self.page(root.page);
        (self.visitor)(Checked::Bytes(self.read))?;
        let page = bytes.as_deref().ok().filter(|_| depth < DEEPEST);
        let page = page.and_then(|bytes| verified(bytes, root.checksum, widths));
        match page {
            None => self.damaged(table, keys, root.page, bytes.as_ref().err()),
            Some(Page::Branch(branch)) => {
                for (child, before, after) in branch.children() {
                    let keys = Keys { after: before.or(keys.after), up_to: after.or(keys.up_to) };
                    self.tree(table, child, widths, keys, depth + 1)?;
                }
                ControlFlow::Continue(())
            }
            Some(Page::Leaf(leaf)) if table.is_none() => {
                for (name, definition) in leaf.entries() {
                    if let Some((root, widths)) = table_root(definition) {
                        self.tree(Some(name), root, widths, Keys::default(), 0)?;
                    }
                }
                ControlFlow::Continue(())
            }
            Some(Page::Leaf(_)) => ControlFlow::Continue(()),
        }
    }

    fn page(&mut self, page: u64) -> io::Result<Vec<u8>> {
        let place = self.header.place(page).filter(|(start, length)| start.saturating_add(*length) <= self.length);
        let Some((start, length)) = place else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        self.storage.read(start, &mut bytes)?;
        self.read += length;
        Ok(bytes)
    }

    fn damaged(
        &mut self,
        table: Option<&[u8]>,
        keys: Keys<'_>,
        page: u64,
        error: Option<&io::Error>,
    ) -> ControlFlow<()> {
        let keyspace = table.and_then(keyspace);
        let what = match (table, keyspace) {
            (None, _) => "a page of the list of tables",
            (Some(_), None) => "a page of the store's own tables",
            (Some(_), Some(_)) => "a page",
        };
        let place =
            self.header.place(page).map_or("nowhere in the file".to_owned(), |(start, _)| format!("at byte {start}"));
        let detail = match error {
            Some(error) => format!("{what} ({place}) cannot be read: {error}"),
            None => format!("{what} ({place}) does not have its checksum"),
        };
        let boxed = |key: Option<&[u8]>| key.map(Into::into);
        let (after, up_to) = (boxed(keys.after), boxed(keys.up_to));
        (self.visitor)(Checked::Damaged(Damage { keyspace, after, up_to, detail }))
    }
}

/// Returns what is wrong with the list of free pages that redb takes from the file when it opens it for writing; `None` if it is sound or
/// missing. redb does not compare its checksums. Without such a list redb finds the free pages itself, and compares all checksums.
pub(in crate::redb) fn damage_of_free_pages(storage: &dyn StorageBackend) -> io::Result<Option<String>> {
    let header = match header_to_write(storage)? {
        HeaderToWrite::WithoutFreePages => return Ok(None),
        HeaderToWrite::Damaged => return Ok(Some("the header does not have its checksum".to_owned())),
        HeaderToWrite::Sound(header) => header,
    };
    let mut found = None;
    let mut visitor = |checked| match checked {
        Checked::Bytes(_) => ControlFlow::Continue(()),
        Checked::Damaged(damage) => {
            found = Some(damage.detail);
            ControlFlow::Break(())
        }
    };
    let _ = PageWalk::new(header, storage, &mut visitor)?.own_tables();
    Ok(found)
}

/// Returns the keyspace of a table by its name; `None` for a table of another kind.
fn keyspace(name: &[u8]) -> Option<Keyspace> {
    let digits = std::str::from_utf8(name.strip_prefix(b"k")?).ok()?;
    let keyspace = Keyspace(u32::from_str_radix(digits, 16).ok()?);
    (table::name(keyspace).as_bytes() == name).then_some(keyspace)
}

/// Reads the root of a table with entries; `None` if it has none.
pub(super) fn table_root(definition: &[u8]) -> Option<(Root, Widths)> {
    // The kind of the table (1 byte) and the number of its entries (8).
    const HAS_ROOT: usize = 9;
    const ROOT: usize = HAS_ROOT + 1;
    const WIDTHS: usize = ROOT + Root::LENGTH;
    let width = |at: usize| match definition.get(at)? {
        0 => None,
        _ => usize::try_from(u32_at(definition, at + 1)?).ok(),
    };
    (*definition.get(HAS_ROOT)? != 0).then_some(())?;
    let widths = Widths { key: width(WIDTHS), value: width(WIDTHS + 5) };
    Some((Root::read(definition.get(ROOT..)?)?, widths))
}
