//! File operations of the backends on disk, and the only place that maps errors of the operating system.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{Context, Error, Result, crash_point};

/// Maps an error of the operating system at `path`. `doing` completes a sentence after "while".
pub(crate) fn failed(error: io::Error, doing: &'static str, path: &Path) -> Error {
    let kind = error.kind();
    by_kind(kind, Context::new(doing).at(path).because(error))
}

/// Maps the kind of an error, with its context.
pub(crate) fn by_kind(kind: io::ErrorKind, context: Context) -> Error {
    use io::ErrorKind as Kind;
    let context = Box::new(context);
    match kind {
        Kind::NotFound | Kind::NotADirectory => Error::Missing(context),
        Kind::AlreadyExists => Error::Exists(context),
        kind if is_full(kind) => Error::Full(context),
        Kind::ReadOnlyFilesystem | Kind::PermissionDenied => Error::ReadOnly(context),
        Kind::IsADirectory | Kind::InvalidData => Error::WrongFormat(context),
        _ => Error::Io(context),
    }
}

/// Returns whether a kind of error means that there is no space left.
pub(crate) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// A new file or directory under a temporary name next to its target. It is removed unless it is published, so the
/// target is either complete or absent.
pub(crate) struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Chooses a temporary name for `target`, which must not exist. Creates no file.
    pub(crate) fn of(target: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if target.symlink_metadata().is_ok() {
            return Err(Error::Exists(Box::new(Context::new("it was not changed").at(target))));
        }
        let folder = folder(target);
        if !folder.is_dir() {
            return Err(Error::Missing(Box::new(Context::new("the folder to write into").at(folder))));
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        Ok(Self { path: folder.join(name), target: target.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the draft to its target durably, unless the target exists by now.
    pub(crate) fn publish(self) -> Result<()> {
        let putting = "while moving it into place";
        crash_point("before-publish");
        // Unlike a rename, a link never replaces a file. Some file systems do not support links, and directories never
        // do.
        match fs::hard_link(&self.path, &self.target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(failed(error, putting, &self.target));
            }
            Err(_) if self.target.symlink_metadata().is_ok() => {
                return Err(Error::Exists(Box::new(Context::new("it was not changed").at(&self.target))));
            }
            Err(_) => fs::rename(&self.path, &self.target).map_err(|error| failed(error, putting, &self.target))?,
        }
        crash_point("after-publish");
        sync_folder(folder(&self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Removes the temporary name after success and failure. After a rename or before the first write there is none.
        if fs::remove_file(&self.path).is_err() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns the directory that contains `path`.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs the names in a directory to the device, which is possible only on Unix.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed(error, "while syncing a folder to the device", folder))?;
    }
    Ok(())
}
