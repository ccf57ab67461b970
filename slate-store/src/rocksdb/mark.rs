//! Slate's own mark in a folder: which version of Slate's layout of keys and values lies there. It is a file beside
//! RocksDB's, not an entry among its own, so that what is not Slate's, or is newer, is left alone: RocksDB writes when it
//! opens.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use super::options::Access;
use crate::{
    Context, Error, Result,
    files::{self, Draft},
};

/// The layout that this version writes, and the newest that it reads.
const VERSION: u32 = 1;

const NAME: &str = "SLATE";
const WORDS: &str = "slate rocksdb layout ";
/// Longer than any mark.
const LONG: u64 = 64;

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Whether a file of that name is the mark, or one in the making.
pub(super) fn is_mark(name: &str) -> bool {
    name.starts_with(NAME)
}

/// Puts a mark into a folder, whole and durably; where there is one already, that stays.
pub(super) fn write(folder: &Path) -> Result<()> {
    let path = path(folder);
    let draft = match Draft::of(&path) {
        Err(Error::Exists(_)) => return Ok(()),
        draft => draft?,
    };
    let failed = |error| files::failed(error, "while marking a new database", &path);
    let mut file = File::create(draft.path()).map_err(failed)?;
    file.write_all(format!("{WORDS}{VERSION}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    match draft.publish() {
        Err(Error::Exists(_)) => Ok(()),
        published => published,
    }
}

/// Opens the mark, checks it and locks it: for many who read, or for one who writes. `None` where there is none.
pub(super) fn open(folder: &Path, access: Access) -> Result<Option<File>> {
    let path = path(folder);
    let mut file = match OpenOptions::new().read(true).write(access != Access::ReadOnly).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(files::failed(error, "while opening its mark", folder)),
    };
    let mut text = Vec::new();
    (&mut file)
        .take(LONG)
        .read_to_end(&mut text)
        .map_err(|error| files::failed(error, "while reading its mark", folder))?;
    check(&text, folder)?;
    let locked = match access {
        Access::ReadOnly => file.try_lock_shared(),
        Access::CreateOrOpen | Access::OpenExisting => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Locked(Box::new(Context::new("by this process or another").at(folder))))
        }
        // Some file systems know no locks. RocksDB's own still keeps a second writer out.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(files::failed(error, "while locking it", folder)),
    }
}

fn check(text: &[u8], folder: &Path) -> Result<()> {
    let version = std::str::from_utf8(text).ok().and_then(|text| text.strip_prefix(WORDS)?.strip_suffix('\n'));
    match version.and_then(|version| version.parse::<u32>().ok()) {
        Some(VERSION) => Ok(()),
        Some(version) if version > VERSION => {
            let detail = format!("the data have layout {version}, this version reads {VERSION}");
            Err(Error::NewerVersion(Box::new(Context::new(detail).at(folder))))
        }
        _ => {
            let detail = "the file that marks it as one of Slate's says something else";
            Err(Error::WrongFormat(Box::new(Context::new(detail).at(folder))))
        }
    }
}
