//! A damaged log that RocksDB would read for ever.
//!
//! A log consists of blocks of 32 KiB, and a record of a header of seven bytes (a checksum, the length of what follows, a type) and its
//! content. RocksDB ends its recovery at the first damaged record, but at one whose type is that of a *recycled* log it returns to the same
//! record without end, if the log began with another type ([facebook/rocksdb#13333], read in version 11.8). Random bytes, which a power
//! loss can leave, have one of these six types in one of 43 cases. Slate recycles no logs, so such a record is always damage, and
//! everything behind it is lost in any case.
//!
//! [facebook/rocksdb#13333]: https://github.com/facebook/rocksdb/issues/13333

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

use super::folder;
use crate::{Access, Context, Error, Result, files};

const BLOCK: usize = 32 << 10;

/// Bytes of a record before its content.
const HEADER: usize = 7;

/// Cuts each log before a record that RocksDB would read for ever. Reads the logs, which a database that was closed has none of.
///
/// # Errors
/// `Corrupt` with the file, if the database is opened read-only and has such a record.
pub(super) fn cut(path: &Path, access: Access) -> Result<()> {
    for log in folder::files(path)?.iter().filter(|file| file.extension().is_some_and(|end| end == "log")) {
        let failed = |what| move |error| files::failed(error, what, log);
        let found = File::open(log).and_then(find_recycled).map_err(failed("while reading its log"))?;
        let Some(end) = found else { continue };
        if access == Access::ReadOnly {
            let detail = format!("the log is damaged at byte {end}; opening it for writing drops what is behind");
            return Err(Error::Corrupt(Box::new(Context::new(detail).at(log))));
        }
        let cut = |file: File| file.set_len(end).and_then(|()| file.sync_all());
        OpenOptions::new().write(true).open(log).and_then(cut).map_err(failed("while cutting its damaged log"))?;
    }
    Ok(())
}

/// Returns the position of the first record whose type is that of a recycled log.
///
/// Can find one that RocksDB would not reach, in the rest of a block behind a record with a wrong checksum. Everything there is lost, too, but
/// a read-only open is refused.
fn find_recycled(mut log: File) -> io::Result<Option<u64>> {
    let mut block = Vec::with_capacity(BLOCK);
    let mut position = 0;
    loop {
        block.clear();
        log.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(None);
        }
        let mut rest = block.as_slice();
        // A record of any other kind that is damaged ends the block for RocksDB.
        while let Some(&[_, _, _, _, low, high, kind]) = rest.first_chunk::<HEADER>() {
            if is_recycled(kind) {
                return Ok(Some(position + (block.len() - rest.len()) as u64));
            }
            let length = usize::from(u16::from_le_bytes([low, high]));
            match rest.get(HEADER + length..) {
                Some(next) if (kind, length) != (0, 0) => rest = next,
                _ => break,
            }
        }
        position += block.len() as u64;
    }
}

/// `kRecyclableFullType` to `kRecyclableLastType`, `kRecyclableUserDefinedTimestampSizeType`, `kRecyclePredecessorWALInfoType`.
fn is_recycled(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}
