//! What the backends on disk do to files as such, and the one place that gives the operating system's errors a meaning.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{Context, Error, Result};

/// An error of the operating system about `path`, by its meaning. `doing` continues "while".
pub(crate) fn failed(error: io::Error, doing: &'static str, path: &Path) -> Error {
    let kind = error.kind();
    by_kind(kind, Context::new(doing).at(path).because(error))
}

/// The meaning of a kind of error, with what else there is to tell about it.
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

/// Whether a kind of error says that there is no room left.
pub(crate) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// A file or a folder in the making, beside the place it is made for. It is removed unless it is published, so that at its place
/// there is the whole of it or nothing.
pub(crate) struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// A place for the draft of `target`, where nothing may lie yet. Creates no file.
    pub(crate) fn of(target: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if target.symlink_metadata().is_ok() {
            return Err(Error::Exists(Box::new(Context::new("it was left alone").at(target))));
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

    /// Puts it in its place, durably, unless something has come to lie there meanwhile.
    pub(crate) fn publish(self) -> Result<()> {
        let putting = "while putting it in its place";
        // A link, unlike a rename, never replaces. Some file systems have none, and folders have none.
        match fs::hard_link(&self.path, &self.target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(failed(error, putting, &self.target));
            }
            Err(_) if self.target.symlink_metadata().is_ok() => {
                return Err(Error::Exists(Box::new(Context::new("it was left alone").at(&self.target))));
            }
            Err(_) => fs::rename(&self.path, &self.target).map_err(|error| failed(error, putting, &self.target))?,
        }
        sync_folder(folder(&self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Published or failed, the draft's own name goes. After a rename, or before a first write, there is none.
        if fs::remove_file(&self.path).is_err() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The folder that `path` lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Puts the names in a folder on the device. Only Unix has a way to ask for it.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed(error, "while putting a folder on the device", folder))?;
    }
    Ok(())
}
