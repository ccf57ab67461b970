use std::io;

use ::redb::StorageBackend;
use twox_hash::XxHash3_128;

use crate::{Result, redb::error};

/// The length of a file's header in bytes: the geometry and two slots of commits.
pub(in crate::redb) const SIZE: usize = SLOTS + 2 * SLOT;

const SLOTS: usize = 64;
const SLOT: usize = 128;
const FLAGS: usize = 9;
const PRIMARY_IS_SECOND: u8 = 1;
const WAS_NOT_CLOSED: u8 = 2;
/// The last commit was made in two phases, and may have stored which pages are free.
const IS_IN_TWO_PHASES: u8 = 4;
/// A writer that shares the file has written the primary slot and not synced it: readers use the other slot.
const PRIMARY_IS_UNSYNCED: u8 = 8;
const PAGE_SIZE: usize = 12;
const REGION_HEADER_PAGES: usize = 16;
const REGION_DATA_PAGES: usize = 20;

/// The most pages of a region in a new file, 128 MiB. The longest page is that of a leaf with two of the longest
/// [values](crate::MAX_VALUE), and takes a whole region; redb panics if a page needs more.
///
/// redb doubles a file up to the size of a region, and lengthens it by regions from then on. It looks for free pages in the first
/// region that has any, and cuts free regions at the end of the file. Its own choice for new files, which only its tests can change, are
/// regions of 4 GiB.
const NEW_REGION_PAGES: u32 = 32_768;

/// The only format that redb 4 writes.
const VERSION: u8 = 3;

/// The root page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) page: u64,
    pub(super) checksum: u128,
}

impl Root {
    /// The bytes of a stored root; the number of entries, which is not read here, follows the page and the checksum.
    pub(super) const LENGTH: usize = 32;

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self { page: u64_at(bytes, 0)?, checksum: u128_at(bytes, 8)? })
    }
}

/// The last commit according to the header of a file, and the geometry that locates pages in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redb) struct Header {
    page_size: u64,
    region_header_pages: u64,
    region_data_pages: u64,
    pub(super) tables: Option<Root>,
    pub(super) own_tables: Option<Root>,
    /// Distinguishes commits.
    transaction: u64,
}

impl Header {
    /// Reads the header. `None` if it is damaged, or of another format.
    pub(in crate::redb) fn read(bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.get(FLAGS)?;
        let is_unsynced = flags & PRIMARY_IS_UNSYNCED != 0;
        let slot = slot(bytes, usize::from((flags & PRIMARY_IS_SECOND != 0) != is_unsynced))?;
        if !is_sound(slot) || slot.first() != Some(&VERSION) {
            return None;
        }
        let root = |is_present: usize, at: usize| match slot.get(is_present)? {
            0 => Some(None),
            _ => Root::read(slot.get(at..)?).map(Some),
        };
        Some(Self {
            page_size: u32_at(bytes, PAGE_SIZE)?.into(),
            region_header_pages: u32_at(bytes, REGION_HEADER_PAGES)?.into(),
            region_data_pages: u32_at(bytes, REGION_DATA_PAGES)?.into(),
            tables: root(1, 8)?,
            own_tables: root(2, 8 + Root::LENGTH)?,
            transaction: u64_at(slot, 8 + 3 * Root::LENGTH)?,
        })
    }

    /// Returns offset and length of a page in the file, in bytes. `None` if no page has this number.
    pub(super) fn place(&self, page: u64) -> Option<(u64, u64)> {
        /// Mask of 20 bits. A page number has, from its lowest bits: the position in its region, in units of the page's own size (20 bits); the
        /// region (20 bits); at bit 59 the order: the page has 2^order pages of the smallest size.
        const INDEX: u64 = 0xf_ffff;
        let (order, region) = (page >> 59, page >> 20 & INDEX);
        let index = page & (INDEX >> order);
        if order > 20 {
            return None;
        }
        let length = self.page_size << order;
        let region_size = (self.region_header_pages + self.region_data_pages) * self.page_size;
        let start = self.page_size + region.checked_mul(region_size)? + self.region_header_pages * self.page_size;
        Some((start.checked_add(index * length)?, length))
    }
}

/// Reads the header of a storage. `None` as for [`Header::read`].
pub(in crate::redb) fn header(storage: &dyn StorageBackend) -> Result<Option<Header>> {
    let mut bytes = [0; SIZE];
    storage.read(0, &mut bytes).map_err(error::reading)?;
    Ok(Header::read(&bytes))
}

/// What redb reads from the header when it opens a file for writing.
pub(super) enum HeaderToWrite {
    /// The file stores no list of free pages.
    WithoutFreePages,
    Sound(Header),
    Damaged,
}

/// Reads the header as redb does when it opens the file for writing: it uses the primary slot, synced or not.
pub(super) fn header_to_write(storage: &dyn StorageBackend) -> io::Result<HeaderToWrite> {
    let mut bytes = [0; SIZE];
    storage.read(0, &mut bytes)?;
    if bytes[FLAGS] & IS_IN_TWO_PHASES == 0 {
        return Ok(HeaderToWrite::WithoutFreePages);
    }
    bytes[FLAGS] &= !PRIMARY_IS_UNSYNCED;
    Ok(Header::read(&bytes).map_or(HeaderToWrite::Damaged, HeaderToWrite::Sound))
}

/// Returns the header of a new file with [smaller regions](NEW_REGION_PAGES); `None` if `header` does not have the length of a header. redb
/// reads the size of the regions from the header, and never changes it.
pub(in crate::redb) fn with_new_regions(header: &[u8]) -> Option<Vec<u8>> {
    let mut header = (header.len() == SIZE).then(|| header.to_vec())?;
    header.get_mut(REGION_DATA_PAGES..)?.first_chunk_mut().map(|pages| *pages = NEW_REGION_PAGES.to_le_bytes())?;
    Some(header)
}

/// Returns whether the file was closed properly, and the slot of its last commit has changed since. redb would show the commit before it.
pub(in crate::redb) fn is_last_commit_damaged(header: &[u8]) -> bool {
    let Some(flags) = header.get(FLAGS) else { return false };
    let is_closed = flags & (WAS_NOT_CLOSED | PRIMARY_IS_UNSYNCED) == 0;
    is_closed
        && slot(header, usize::from(flags & PRIMARY_IS_SECOND))
            .is_some_and(|slot| slot.first() == Some(&VERSION) && !is_sound(slot))
}

fn slot(header: &[u8], number: usize) -> Option<&[u8]> {
    header.get(SLOTS + number * SLOT..)?.get(..SLOT)
}

fn is_sound(slot: &[u8]) -> bool {
    let Some((content, checksum)) = slot.split_last_chunk() else { return false };
    XxHash3_128::oneshot(content) == u128::from_le_bytes(*checksum)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
