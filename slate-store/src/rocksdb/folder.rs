//! What lies in a folder, as the names of its files tell: looked at before RocksDB is, which would write there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::mark;
use crate::{Context, Error, Result, files};

/// RocksDB's pointer to its newest manifest, which it makes last of all when it makes a database.
const CURRENT: &str = "CURRENT";

/// What lies in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Nothing, or what is left of making a database.
    Nothing,
    /// A database of RocksDB.
    Database,
    /// Files with data of RocksDB, without that by which it finds them.
    Wreck,
    /// Something else.
    Foreign,
}

/// Looks into the folder at `path`.
pub(super) fn look(path: &Path) -> Result<Contents> {
    let looking = "while opening it";
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing(Box::new(Context::new("the database").at(path).because(error))),
        _ => files::failed(error, looking, path),
    })?;
    if !metadata.is_dir() {
        let detail = "it is a file, and a database of this backend is a folder";
        return Err(Error::WrongFormat(Box::new(Context::new(detail).at(path))));
    }
    let mut contents = Contents::Nothing;
    for file in files(path)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name == CURRENT {
            return Ok(Contents::Database);
        }
        contents = match contents {
            Contents::Wreck => Contents::Wreck,
            _ if holds_data(&name) => Contents::Wreck,
            Contents::Nothing if mark::is_mark(&name) || is_made_first(&name) => Contents::Nothing,
            _ => Contents::Foreign,
        };
    }
    Ok(contents)
}

/// Makes the folder, if there is none.
pub(super) fn make(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Ok(()) => files::sync_folder(files::folder(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(files::failed(error, "the folder to write into", files::folder(path)))
        }
        Err(error) => Err(files::failed(error, "while making it", path)),
    }
}

/// The paths of the files of a database.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| match error.kind() {
        // Refused reading is no read-only database.
        io::ErrorKind::PermissionDenied => {
            Error::Io(Box::new(Context::new("while listing its files").at(path).because(error)))
        }
        _ => files::failed(error, "while listing its files", path),
    };
    fs::read_dir(path).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// The bytes that the files take. One that RocksDB removes meanwhile takes none.
pub(super) fn size(path: &Path) -> Result<u64> {
    Ok(files(path)?.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum())
}

/// Whether RocksDB keeps entries in a file of that name.
fn holds_data(name: &str) -> bool {
    [".sst", ".log", ".blob", ".ldb"].iter().any(|end| name.ends_with(end))
}

/// Whether a file of that name belongs into a copy of the database: not the locks, and not what RocksDB noted of its work.
pub(super) fn is_part_of_a_copy(name: &str) -> bool {
    !["LOG", "LOCK"].iter().any(|start| name.starts_with(start)) && !mark::is_mark(name)
}

/// Whether RocksDB makes a file of that name before a new database has its [`CURRENT`].
fn is_made_first(name: &str) -> bool {
    ["LOG", "LOCK", "IDENTITY", "MANIFEST-", "OPTIONS-"].iter().any(|start| name.starts_with(start))
        || name.ends_with(".dbtmp")
}
