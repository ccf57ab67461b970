//! Truncates a log that RocksDB would read for ever.
//!
//! A log consists of blocks of 32 KiB. A record is a header of seven bytes (a checksum, the length of the content, a type) and its content. RocksDB
//! ends its recovery at the first damaged record. If that record has a type of *recycled* logs and the log began with another type, RocksDB reads
//! it again without end ([facebook/rocksdb#13333], read in version 11.8). Six of 256 types are such types, so random bytes, which a power loss can
//! leave, have one in one of 43 cases. Slate recycles no logs, so such a record is always damage, and everything after it is lost in any case.
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

/// Length of a record's header in bytes.
const HEADER: usize = 7;

/// Truncates each log before a record that RocksDB would read for ever. Reads all logs; a database that was closed has none.
///
/// # Errors
/// `Corrupt` with the file if the database is opened read-only and has such a record.
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

/// Returns the position in bytes of the first record with a type of recycled logs.
///
/// May find one that RocksDB would not reach, after a record with a wrong checksum in the same block. Everything there is lost, too, but a
/// read-only open fails unnecessarily.
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
        // RocksDB skips the rest of a block after a damaged record of another type.
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
