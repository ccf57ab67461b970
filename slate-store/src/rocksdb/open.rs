use std::path::Path;

use ::rocksdb::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY_NAME};

use super::{
    damaged_log, error,
    folder::{self, Contents},
    handle::{Db, OpenedFolder},
    layout_version,
    options::Options,
    tuning::Tuning,
};
use crate::{Access, Context, Error, Result};

/// Opens the database at `path`, or creates it. The layout version is written before RocksDB creates its own files, and
/// RocksDB creates `CURRENT` last: after a crash in between, the next open creates the database again.
pub(super) fn at(path: &Path, options: &Options) -> Result<OpenedFolder> {
    if options.access == Access::CreateOrOpen {
        folder::make(path)?;
        if folder::inspect(path)? == Contents::Nothing {
            layout_version::write(path)?;
        }
    }
    let contents = folder::inspect(path)?;
    let lock = match (layout_version::open(path, options.access)?, contents) {
        (Some(lock), _) => lock,
        (None, Contents::Nothing) => return missing(path, "the folder is empty"),
        (None, Contents::Foreign) => return wrong(path, "the folder contains something else"),
        (None, Contents::Database | Contents::Wreck) => {
            return wrong(path, "a RocksDB database that Slate did not create");
        }
    };
    // Checks again under the lock: another process may have been creating the database at the first check.
    match (folder::inspect(path)?, options.access) {
        (Contents::Database, _) | (Contents::Nothing, Access::CreateOrOpen) => {}
        (Contents::Nothing, _) => return missing(path, "its creation was not finished"),
        (Contents::Wreck | Contents::Foreign, _) => {
            let detail = "the folder has data files, but the file CURRENT that refers to them is missing";
            return Err(Error::Corrupt(Box::new(Context::new(detail).at(path))));
        }
    }
    damaged_log::cut(path, options.access)?;
    let mut tuning = Tuning::of(options).map_err(|error| error::opening(error, path))?;
    tuning.database.create_if_missing(options.access == Access::CreateOrOpen);
    let family = [ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, tuning.database.clone())];
    let opened = match options.access {
        Access::ReadOnly => Db::open_cf_descriptors_read_only(&tuning.database, path, family, false),
        Access::CreateOrOpen | Access::Open => Db::open_cf_descriptors(&tuning.database, path, family),
    };
    let db = opened.map_err(|error| error::opening(error, path))?;
    Ok(OpenedFolder { db, access: options.access, cache: tuning.cache, path: path.to_owned(), _lock: lock })
}

fn missing(path: &Path, detail: &'static str) -> Result<OpenedFolder> {
    Err(Error::Missing(Box::new(Context::new(detail).at(path))))
}

fn wrong(path: &Path, detail: &'static str) -> Result<OpenedFolder> {
    Err(Error::WrongFormat(Box::new(Context::new(detail).at(path))))
}
