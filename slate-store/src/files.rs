//! File operations of the backends on disk, and the only place that maps errors of the operating system.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
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

/// Returns how many bytes the file system of a file has left for its user; `None` if that is not known.
#[cfg(feature = "redb")]
pub(crate) fn free_space(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(path).ok().map(|device| device.f_bavail.saturating_mul(device.f_frsize));
    #[cfg(not(unix))]
    None
}

/// A new file or directory, in a folder next to its target that only its user can enter. It is removed unless it is published, so the
/// target is either complete or absent. It has the permissions of any new file, so the published one has them, too.
pub(crate) struct Draft {
    folder: PathBuf,
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Makes the folder for a draft of `target`, which must not exist.
    pub(crate) fn of(target: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if target.symlink_metadata().is_ok() {
            return Err(Error::Exists(Box::new(Context::new("it was not changed").at(target))));
        }
        let around = folder(target);
        if !around.is_dir() {
            return Err(Error::Missing(Box::new(Context::new("the folder to write into").at(around))));
        }
        remove_abandoned(around);
        let name = target.file_name().unwrap_or_default();
        loop {
            let mut part = name.to_owned();
            part.push(format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
            let folder = around.join(part);
            match create_private_folder(&folder) {
                Ok(()) => return Ok(Self { path: folder.join(name), folder, target: target.to_owned() }),
                // In a container each process that is started may have the same number, and an earlier one may have left its draft.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error, "while beginning to write it", target)),
            }
        }
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
        // After success and failure.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Creates a folder that only this user can enter, on systems with such permissions.
fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes the drafts in a folder that killed processes have left. What cannot be removed stays.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(drafting_process) else { continue };
        if process != std::process::id() && has_ended(process, &entry) {
            // Earlier versions left files.
            let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
        }
    }
}

/// Returns the number of the process that made the draft of this name, if it is one: `NAME.PROCESS-COUNT.part`.
fn drafting_process(name: &str) -> Option<u32> {
    let (_, numbers) = name.strip_suffix(".part")?.rsplit_once('.')?;
    let (process, count) = numbers.split_once('-')?;
    count.parse::<u64>().ok()?;
    process.parse().ok()
}

/// Returns whether a process has certainly ended. Another one may have its number by now; then the draft stays.
fn has_ended(process: u32, draft: &fs::DirEntry) -> bool {
    /// Where the system does not list its processes, nothing takes this long to write.
    const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let processes = Path::new("/proc");
    if processes.join("self").exists() {
        return !processes.join(process.to_string()).exists();
    }
    let written = draft.metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LONGEST))
}

/// Returns the bytes that a file takes on the device, without holes. Where the system does not tell, its length.
#[cfg(feature = "redb")]
pub(crate) fn allocated(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        /// The unit in which Unix counts.
        const BLOCK: u64 = 512;
        std::os::unix::fs::MetadataExt::blocks(metadata).saturating_mul(BLOCK).min(metadata.len())
    }
    #[cfg(not(unix))]
    metadata.len()
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn drafts_of_processes_that_have_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: Linux counts to four million.
        let (dead, own) = (u32::MAX - 1, std::process::id());
        let abandoned = [format!("copy.{dead}-0.part"), format!("other.name.{dead}-12.part")];
        let kept =
            [format!("copy.{own}-999.part"), "copy.part".into(), format!("copy.{dead}.part"), "a.1-x.part".into()];
        for name in abandoned.iter().chain(&kept) {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("draft"), "x").unwrap();
        }
        fs::write(folder.path().join(format!("file.{dead}-1.part")), "x").unwrap();
        drop(Draft::of(&folder.path().join("copy")).unwrap());
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected = kept.to_vec();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_draft_is_private_and_what_is_published_is_as_any_new_file() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (plain, target) = (folder.path().join("plain"), folder.path().join("target"));
        fs::write(&plain, "x").unwrap();
        let draft = Draft::of(&target).unwrap();
        fs::write(draft.path(), "x").unwrap();
        assert_eq!(mode(draft.path().parent().unwrap()), 0o700);
        assert!(!target.exists());
        draft.publish().unwrap();
        assert_eq!(mode(&target), mode(&plain));

        let plain = folder.path().join("plain folder");
        fs::create_dir(&plain).unwrap();
        let target = folder.path().join("target folder");
        let draft = Draft::of(&target).unwrap();
        fs::create_dir(draft.path()).unwrap();
        fs::write(draft.path().join("file"), "x").unwrap();
        draft.publish().unwrap();
        assert_eq!(mode(&target), mode(&plain));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "no draft is left");
    }
}
