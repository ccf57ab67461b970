use std::{
    fs::{self, File},
    path::Path,
};

use ::rocksdb::checkpoint::Checkpoint;

use super::{error, folder, handle::OpenedFolder, layout_version};
use crate::{
    Access, Result,
    files::{self, Draft},
};

/// Copies the database to a temporary name, adds the layout version and publishes the copy.
pub(super) fn write(opened: &OpenedFolder, to: &Path) -> Result<()> {
    let draft = Draft::of(to)?;
    match opened.access {
        Access::CreateOrOpen | Access::Open => Checkpoint::new(&opened.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(draft.path()))
            .map_err(error::storage)?,
        // RocksDB cannot create a checkpoint of a read-only database. No process writes to its files, so they can be copied.
        Access::ReadOnly => copy(&opened.path, draft.path())?,
    }
    layout_version::write(draft.path())?;
    draft.publish()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).map_err(|error| files::failed(error, "while making the copy's folder", to))?;
    for file in folder::files(from)? {
        let Some(name) = file.file_name() else { continue };
        if !folder::is_part_of_a_copy(&name.to_string_lossy()) {
            continue;
        }
        let copy = to.join(name);
        let copied = fs::copy(&file, &copy).and_then(|_| File::open(&copy)?.sync_all());
        copied.map_err(|error| files::failed(error, "while copying a file", &file))?;
    }
    files::sync_folder(to)
}
