//! The layout version of Slate's keys and values in a directory. It is stored in a file beside RocksDB's files and not in the database, because
//! RocksDB writes when it opens, and a directory that is not Slate's or has a newer version must not be changed.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use crate::{
    Access, Context, Error, Result,
    files::{self, Draft},
};

/// The layout version that this version of Slate writes, and the newest that it reads.
const VERSION: u32 = 1;

const NAME: &str = "SLATE";
const WORDS: &str = "slate rocksdb layout ";
/// Maximum number of bytes to read of the version file. Every valid content is shorter.
const LONG: u64 = 64;

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Returns whether a file with this name is the version file or a draft of it.
pub(super) fn is_layout_file(name: &str) -> bool {
    name.starts_with(NAME)
}

/// Writes the version file durably, unless it exists.
pub(super) fn write(folder: &Path) -> Result<()> {
    let path = path(folder);
    let draft = match Draft::of(&path) {
        Err(Error::Exists(_)) => return Ok(()),
        draft => draft?,
    };
    let failed = |error| files::failed(error, "while writing its layout version", &path);
    let mut file = File::create(draft.path()).map_err(failed)?;
    file.write_all(format!("{WORDS}{VERSION}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    match draft.publish() {
        Err(Error::Exists(_)) => Ok(()),
        published => published,
    }
}

/// Opens the version file, checks it and locks it: shared for readers, exclusive for a writer. `None` if it does not
/// exist.
pub(super) fn open(folder: &Path, access: Access) -> Result<Option<File>> {
    let path = path(folder);
    let mut file = match OpenOptions::new().read(true).write(access != Access::ReadOnly).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(files::failed(error, "while opening its layout version", folder)),
    };
    let mut text = Vec::new();
    (&mut file)
        .take(LONG)
        .read_to_end(&mut text)
        .map_err(|error| files::failed(error, "while reading its layout version", folder))?;
    check(&text, folder)?;
    let locked = match access {
        Access::ReadOnly => file.try_lock_shared(),
        Access::CreateOrOpen | Access::Open => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Locked(Box::new(Context::new("by this process or another").at(folder))))
        }
        // Some file systems do not support locks. RocksDB's own lock still excludes a second writer.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(files::failed(error, "while locking it", folder)),
    }
}

fn check(text: &[u8], folder: &Path) -> Result<()> {
    let version = std::str::from_utf8(text).ok().and_then(|text| text.strip_prefix(WORDS)?.strip_suffix('\n'));
    match version.and_then(|version| version.parse::<u32>().ok()) {
        Some(VERSION) => Ok(()),
        Some(version) if version > VERSION => {
            let detail = format!("the data have layout version {version}, and this version of Slate reads {VERSION}");
            Err(Error::NewerVersion(Box::new(Context::new(detail).at(folder))))
        }
        _ => {
            let detail = "its file SLATE does not contain a layout version of Slate";
            Err(Error::WrongFormat(Box::new(Context::new(detail).at(folder))))
        }
    }
}
