//! Determines the content of a directory from its file names, before RocksDB opens it and writes to it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::layout_version;
use crate::{Context, Error, Result, files};

/// RocksDB's pointer to its newest manifest, which it creates last when it creates a database.
const CURRENT: &str = "CURRENT";

/// The content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Empty, or remains of an interrupted creation.
    Nothing,
    /// A RocksDB database.
    Database,
    /// RocksDB data files without [`CURRENT`].
    Wreck,
    /// Other files.
    Foreign,
}

/// Determines the content of the directory at `path`.
pub(super) fn inspect(path: &Path) -> Result<Contents> {
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
            Contents::Nothing if layout_version::is_layout_file(&name) || is_made_first(&name) => Contents::Nothing,
            _ => Contents::Foreign,
        };
    }
    Ok(contents)
}

/// Creates the directory if it does not exist.
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

/// Returns the paths of all files in the database's directory.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| match error.kind() {
        // `files::failed` would report a read-only database.
        io::ErrorKind::PermissionDenied => {
            Error::Io(Box::new(Context::new("while listing its files").at(path).because(error)))
        }
        _ => files::failed(error, "while listing its files", path),
    };
    fs::read_dir(path).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Returns the total size of the files in bytes. A file that RocksDB removes meanwhile counts as zero.
pub(super) fn size(path: &Path) -> Result<u64> {
    Ok(files(path)?.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum())
}

/// Returns whether RocksDB stores entries in a file with this name.
fn holds_data(name: &str) -> bool {
    [".sst", ".log", ".blob", ".ldb"].iter().any(|end| name.ends_with(end))
}

/// Returns whether a copy of the database needs the file with this name. It does not need locks and RocksDB's
/// information logs.
pub(super) fn is_part_of_a_copy(name: &str) -> bool {
    !["LOG", "LOCK"].iter().any(|start| name.starts_with(start)) && !layout_version::is_layout_file(name)
}

/// Returns whether RocksDB creates a file with this name before a new database has its [`CURRENT`].
fn is_made_first(name: &str) -> bool {
    ["LOG", "LOCK", "IDENTITY", "MANIFEST-", "OPTIONS-"].iter().any(|start| name.starts_with(start))
        || name.ends_with(".dbtmp")
}
