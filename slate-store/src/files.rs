//! File operations of the backends on disk, and the only place that maps errors of the operating system.

use std::{
    fs::{self, File, TryLockError},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Context, Error, Result, crash_point};

/// Maps an error of the operating system at `path`. `doing` completes a sentence after "while".
pub(crate) fn failed(error: io::Error, doing: &'static str, path: &Path) -> Error {
    let kind = error.kind();
    by_kind(kind, Context::new(doing).at(path).because(error))
}

/// Returns the error for a kind of I/O error, with this context.
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

/// Returns whether a kind of error means that the device, its quota or a limit on the length of a file is exhausted.
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

/// A new file or directory, in a temporary folder beside its target that only its user can enter. It is removed unless it is published, so the
/// target is either complete or absent. It has the usual permissions of a new file, and so has the published one.
///
/// ```text
/// NAME.PROCESS-NUMBER.part/
///     NAME        the draft
///     NAME.lock   locked until the draft is published or dropped, or its process ends
/// ```
///
/// A draft whose lock is free was left by a process that has ended, and the next draft beside it removes it. The process number would not be a
/// reliable sign: each container, and each host that shares the folder, numbers its own processes.
pub(crate) struct Draft {
    folder: PathBuf,
    path: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Draft {
    /// Creates the folder for a draft of `target`, which must not exist.
    pub(crate) fn of(target: &Path) -> Result<Self> {
        if target.symlink_metadata().is_ok() {
            return Err(Error::Exists(Box::new(Context::new("it was not changed").at(target))));
        }
        let around = folder(target);
        if !around.is_dir() {
            return Err(Error::Missing(Box::new(Context::new("the folder to write into").at(around))));
        }
        remove_abandoned(around);
        let name = target.file_name().unwrap_or_default();
        let beginning = |error| failed(error, "while beginning to write it", target);
        loop {
            let mut part = name.to_owned();
            // A random number, because processes of two containers can have the same number.
            part.push(format!(".{}-{}.part", std::process::id(), RandomState::new().hash_one(0)));
            let folder = around.join(part);
            match create_private_folder(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(beginning(error)),
            }
            let mut locked = name.to_owned();
            locked.push(LOCK);
            let locked = folder.join(locked);
            let lock = File::create_new(&locked).map_err(|error| {
                let _ = fs::remove_dir(&folder);
                beginning(error)
            })?;
            match lock.try_lock() {
                // Another process found the draft before it was locked, and removes it.
                Err(TryLockError::WouldBlock) => {}
                Ok(()) if !locked.exists() => {}
                // Some file systems do not support locks.
                Ok(()) | Err(TryLockError::Error(_)) => {
                    return Ok(Self { path: folder.join(name), folder, target: target.to_owned(), _lock: lock });
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the draft to its target durably. Fails with [`Exists`](Error::Exists) if the target exists by now.
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
        // Removes the folder after success and after failure.
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

/// The end of the name of a draft's lock.
const LOCK: &str = ".lock";

/// Removes the drafts in a folder that ended processes have left. Ignores failures.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(drafted) = name.to_str().and_then(drafted) else { continue };
        // The lock is held until everything is removed.
        let lock = File::options().read(true).write(true).open(entry.path().join(format!("{drafted}{LOCK}")));
        let is_abandoned = match lock.as_ref().map(File::try_lock) {
            Ok(Ok(())) => true,
            Ok(Err(TryLockError::WouldBlock)) => false,
            // Some file systems do not support locks, and drafts of earlier versions have none.
            Ok(Err(TryLockError::Error(_))) | Err(_) => is_old(&entry),
        };
        if is_abandoned {
            // Drafts of earlier versions are files.
            let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
        }
    }
}

/// Returns the name of the target if `name` is that of a draft: `NAME.PROCESS-NUMBER.part`.
fn drafted(name: &str) -> Option<&str> {
    let (drafted, numbers) = name.strip_suffix(".part")?.rsplit_once('.')?;
    let (process, number) = numbers.split_once('-')?;
    number.parse::<u64>().ok()?;
    process.parse::<u32>().ok()?;
    Some(drafted)
}

/// Returns whether a draft is so old that it is certainly abandoned.
fn is_old(draft: &fs::DirEntry) -> bool {
    /// No draft takes longer to write.
    const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let written = draft.metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LONGEST))
}

/// Returns the bytes that a file occupies on the device, without holes; its length where the system does not report that.
#[cfg(feature = "redb")]
pub(crate) fn allocated(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        /// The unit of block counts on Unix, in bytes.
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

/// Syncs the names in a directory to the device. Does nothing on systems other than Unix.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed(error, "while syncing a folder to the device", folder))?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Lines},
        process::{Child, ChildStdout, Command, Stdio},
        time::SystemTime,
    };

    use super::*;

    /// Names the folder of a draft for a process that the test of it starts.
    const HOLD_DRAFT: &str = "SLATE_TEST_HOLD_DRAFT";

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Begins and drops a draft, which removes abandoned ones.
    fn draft_beside(folder: &Path) {
        drop(Draft::of(&folder.join("beside")).unwrap());
    }

    #[test]
    fn drafts_without_locks_are_removed_after_a_week() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: Linux counts to four million.
        let dead = u32::MAX - 1;
        let old = [format!("copy.{dead}-0.part"), format!("other.name.{dead}-12.part")];
        let recent = [format!("copy.{dead}-1.part"), format!("copy.{}-999.part", std::process::id())];
        let foreign = ["copy.part".into(), format!("copy.{dead}.part"), "a.1-x.part".into(), "copy.x-1.part".into()];
        for name in old.iter().chain(&recent).chain(&foreign) {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("draft"), "x").unwrap();
        }
        let file = format!("file.{dead}-1.part");
        fs::write(folder.path().join(&file), "x").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 60 * 60);
        for name in old.iter().chain(&foreign).chain([&file]) {
            File::open(folder.path().join(name)).unwrap().set_modified(long_ago).unwrap();
        }
        draft_beside(folder.path());
        let mut expected: Vec<_> = recent.into_iter().chain(foreign).collect();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }

    /// Not a test by itself: the next test runs it by name in another process.
    #[test]
    fn draft_of_another_process() {
        let Some(folder) = std::env::var_os(HOLD_DRAFT) else { return };
        let draft = Draft::of(&Path::new(&folder).join("copy")).unwrap();
        fs::write(draft.path(), "whole").unwrap();
        println!("\nbegun");
        let _ = io::stdin().lines().next();
        draft.publish().unwrap();
    }

    /// Starts a process with a draft in the folder. Returns the process, its output, and the draft.
    fn drafting(folder: &Path) -> (Child, Lines<BufReader<ChildStdout>>, PathBuf) {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::tests::draft_of_another_process", "--nocapture"])
            .env(HOLD_DRAFT, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(output.any(|line| line.unwrap() == "begun"));
        let drafts: Vec<_> = names(folder).into_iter().filter(|name| name.ends_with(".part")).collect();
        assert_eq!(drafts.len(), 1, "{drafts:?}");
        (process, output, folder.join(&drafts[0]))
    }

    #[test]
    fn a_draft_stays_while_its_process_lives_whatever_the_number_of_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (mut process, output, draft) = drafting(folder);
        // As if it were in another container: no process here has this number.
        let elsewhere = folder.join(format!("copy.{}-7.part", u32::MAX - 1));
        for (from, to) in [(&draft, &elsewhere), (&elsewhere, &draft)] {
            draft_beside(folder);
            assert!(from.join("copy").exists());
            fs::rename(from, to).unwrap();
        }
        drop(process.stdin.take());
        output.for_each(drop); // Reads the rest, so that the test runner can write its last lines.
        assert!(process.wait().unwrap().success());
        assert_eq!(
            (names(folder), fs::read(folder.join("copy")).unwrap()),
            (vec!["copy".to_owned()], b"whole".to_vec())
        );

        fs::remove_file(folder.join("copy")).unwrap();
        let (mut process, _, draft) = drafting(folder);
        process.kill().unwrap();
        process.wait().unwrap();
        // In a container, the next process often has the same number.
        let own = folder.join(format!("copy.{}-0.part", std::process::id()));
        fs::rename(draft, own).unwrap();
        draft_beside(folder);
        assert_eq!(names(folder), [""; 0], "the draft of a killed process is removed");
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
