use std::{
    fs::File,
    io::{self, Read},
    mem,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    thread,
    time::{Duration, Instant},
};

use ::redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase,
    StorageBackend, StorageError, backends::FileBackend,
};

use super::{
    backlog::Backlog,
    counted_storage::{CountedStorage, Transferred},
    error,
    format::{self, Found},
    guarded::{Poison, guarded},
    options::{Options, Sharing},
};
use crate::{
    Access, Context, Error, Result,
    files::{self, Draft},
};

/// A database opened for reading and writing, or for reading only.
pub(super) enum Handle {
    Writable(Database),
    ReadOnly(ReadOnlyDatabase),
    /// Only while an [`OpenedFile`] is dropped.
    Closed,
}

impl Handle {
    pub(super) fn begin_read(&self) -> Result<ReadTransaction> {
        let begun = match self {
            Self::Writable(database) => database.begin_read(),
            Self::ReadOnly(database) => database.begin_read(),
            Self::Closed => return Err(Error::Io(Box::new(Context::new("the database is being closed")))),
        };
        begun.map_err(error::storage)
    }

    fn close(self) -> std::result::Result<(), DatabaseError> {
        match self {
            Self::Writable(database) => database.close(),
            Self::ReadOnly(database) => database.close(),
            Self::Closed => Ok(()),
        }
    }
}

/// An open database and its path; no path if the caller supplied the storage.
pub(super) struct OpenedFile {
    /// Locked shared to begin a transaction, exclusively to compact the file.
    pub(super) handle: RwLock<Handle>,
    pub(super) path: Option<PathBuf>,
    pub(super) transferred: Arc<Transferred>,
    /// The storage under redb. Compactions and checks also read its pages without redb.
    pub(super) storage: Arc<Backlog>,
    /// How the file is shared: [`Sharing::WithReaders`] also for a reader that found it shared.
    pub(super) sharing: Sharing,
    pub(super) poison: Poison,
}

/// redb writes when it closes a database, and may panic then, too.
impl Drop for OpenedFile {
    fn drop(&mut self) {
        let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
        let handle = mem::replace(handle, Handle::Closed);
        // The backlog is lost when the process ends, so redb must receive the errors of the device from now on.
        self.storage.buffer_up_to(0);
        // Ignores the error, which has no caller: the next open finds the damage.
        let _ = guarded(&self.poison, self.path.as_deref(), || {
            drop(handle);
            Ok(())
        });
    }
}

impl OpenedFile {
    /// Calls redb; see [`guarded`].
    #[inline]
    pub(super) fn guarded<R>(&self, call: impl FnOnce() -> Result<R>) -> Result<R> {
        guarded(&self.poison, self.path.as_deref(), call)
    }

    /// Calls `read`, and returns its result and the bytes that redb read from the storage meanwhile, in all threads.
    pub(super) fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        let before = self.transferred.read();
        let result = read();
        (result, Some(self.transferred.read().saturating_sub(before)))
    }

    /// Returns the storage, to read pages that redb has written to it.
    pub(super) fn storage(&self) -> &dyn StorageBackend {
        &*self.storage
    }

    /// Buffers writes that do not fit on a full device, unless the file is shared: other processes would see commits that are undone.
    fn buffer_what_does_not_fit(self, options: &Options) -> Self {
        /// Enough bytes for a commit and for the one that undoes it, with a small cache.
        const LEAST: u64 = 16 << 20;
        if self.sharing == Sharing::Exclusive {
            // A commit writes at most what redb's write buffer holds, which is half of its cache.
            self.storage.buffer_up_to(u64::try_from(options.cache_bytes).unwrap_or(u64::MAX).max(LEAST));
        }
        self
    }

    /// Locks the handle to begin a transaction.
    pub(super) fn handle(&self) -> RwLockReadGuard<'_, Handle> {
        // Only redb changes a handle, so a panic elsewhere cannot leave it inconsistent.
        self.handle.read().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn at(path: &Path, options: &Options) -> Result<OpenedFile> {
    guarded(&Poison::default(), Some(path), || unguarded_at(path, options))
}

fn unguarded_at(path: &Path, options: &Options) -> Result<OpenedFile> {
    match (check_format(path), options.access) {
        (Err(Error::Missing(_)), Access::CreateOrOpen) => create(path, options)?,
        (looked, _) => looked?,
    }
    let transferred = Arc::default();
    let opening = |error| error::opening(error, Some(path), options.access);
    let (handle, storage, sharing) = match options.access {
        Access::ReadOnly => to_read(path, options, &transferred)?,
        Access::Open | Access::CreateOrOpen => {
            let (handle, storage) = handle(path, options, options.sharing, &transferred).map_err(opening)?;
            (handle, storage, options.sharing)
        }
    };
    format::check_mark(&handle.begin_read()?, Some(path))?;
    let opened = OpenedFile {
        storage,
        handle: RwLock::new(handle),
        path: Some(path.to_owned()),
        transferred,
        sharing,
        poison: Poison::default(),
    };
    Ok(opened.buffer_what_does_not_fit(options))
}

/// How long a reader retries while another process has open a file that needs repair after a crash. Another reader repairs it within milliseconds;
/// a writer repairs it and does not close it.
const LONGEST_REPAIR_BY_OTHERS: Duration = Duration::from_secs(1);

/// Opens the file for reading, shared if its writer shares it. A file that was not closed properly is first opened for writing, which repairs it.
fn to_read(path: &Path, options: &Options, transferred: &Arc<Transferred>) -> Result<(Handle, Arc<Backlog>, Sharing)> {
    let opening = |error| error::opening(error, Some(path), Access::ReadOnly);
    let start = Instant::now();
    let mut needs_repair = false;
    loop {
        let mut sharing = options.sharing;
        let mut opened = handle(path, options, sharing, transferred);
        if matches!(opened, Err(DatabaseError::DatabaseAlreadyOpen)) {
            // A writer may share the file.
            sharing = Sharing::WithReaders;
            opened = handle(path, options, sharing, transferred).map_err(|error| match error {
                // The platform cannot share files, so the writer does not share this one.
                DatabaseError::Storage(StorageError::Unsupported) => DatabaseError::DatabaseAlreadyOpen,
                other => other,
            });
        }
        let repaired = match opened {
            Ok((handle, storage)) => return Ok((handle, storage, sharing)),
            Err(DatabaseError::RepairAborted) => {
                needs_repair = true;
                // Closing the database marks it as closed properly.
                let options = options.clone().access(Access::Open);
                handle(path, &options, sharing, transferred).and_then(|(handle, _)| handle.close())
            }
            Err(error) => Err(error),
        };
        match repaired {
            Ok(()) => {}
            Err(DatabaseError::DatabaseAlreadyOpen) if needs_repair && start.elapsed() < LONGEST_REPAIR_BY_OTHERS => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) if needs_repair => return Err(error::repairing(error, path)),
            Err(error) => return Err(opening(error)),
        }
    }
}

fn handle(
    path: &Path,
    options: &Options,
    sharing: Sharing,
    transferred: &Arc<Transferred>,
) -> std::result::Result<(Handle, Arc<Backlog>), DatabaseError> {
    let is_writable = options.access != Access::ReadOnly;
    let file = File::options().read(true).write(is_writable).open(path)?;
    let storage = Backlog::new(FileBackend::new(file)?);
    let counted = CountedStorage::new(storage.clone(), transferred)?;
    let mut builder = builder(options);
    builder.set_concurrency_mode(match sharing {
        Sharing::Exclusive => ConcurrencyMode::ExclusiveWriter,
        Sharing::WithReaders => ConcurrencyMode::SingleWriter,
    });
    let handle = match is_writable {
        true => builder.create_with_backend(counted).map(Handle::Writable),
        false => builder.open_read_only_with_backend(counted).map(Handle::ReadOnly),
    };
    Ok((handle?, storage))
}

pub(super) fn over(storage: impl StorageBackend, options: &Options) -> Result<OpenedFile> {
    guarded(&Poison::default(), None, || unguarded_over(storage, options))
}

fn unguarded_over(storage: impl StorageBackend, options: &Options) -> Result<OpenedFile> {
    let found = format::inspect_storage(&storage)?;
    let missing = |detail: &'static str| Err(Error::Missing(Box::new(Context::new(detail))));
    match (found, options.access) {
        (_, Access::ReadOnly) => {
            let detail = "storage supplied by the caller cannot be opened read-only";
            return Err(Error::Unsupported(Box::new(Context::new(detail))));
        }
        (Found::Nothing, Access::Open) => return missing("the storage is empty"),
        (Found::Nothing | Found::Redb, _) => {}
    }
    let transferred = Arc::default();
    let storage = Backlog::new(storage);
    let counted =
        CountedStorage::new(storage.clone(), &transferred).map_err(|error| error::storage(StorageError::Io(error)))?;
    let opening = |error| error::opening(error, None, options.access);
    let database = builder(options).create_with_backend(counted).map_err(opening)?;
    let read = database.begin_read().map_err(error::storage)?;
    // A crash between creating the database and writing its layout version leaves a database without tables.
    if options.access == Access::CreateOrOpen && format::is_blank(&read)? {
        mark(&database)?;
    } else {
        format::check_mark(&read, None)?;
    }
    drop(read);
    let handle = RwLock::new(Handle::Writable(database));
    let (sharing, poison) = (Sharing::Exclusive, Poison::default());
    Ok(OpenedFile { storage, handle, path: None, transferred, sharing, poison }.buffer_what_does_not_fit(options))
}

/// Fails unless the file at `path` begins as a redb file. Called before redb opens it.
fn check_format(path: &Path) -> Result<()> {
    let looking = "while opening it";
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing(Box::new(Context::new("the database").at(path).because(error))),
        _ => files::failed(error, looking, path),
    })?;
    let wrong = |detail: &'static str| Err(Error::WrongFormat(Box::new(Context::new(detail).at(path))));
    if metadata.is_dir() {
        return wrong("it is a folder");
    }
    let mut file = File::open(path).map_err(|error| match error.kind() {
        // `files::failed` would report a read-only database.
        io::ErrorKind::PermissionDenied => Error::Io(Box::new(Context::new(looking).at(path).because(error))),
        _ => files::failed(error, looking, path),
    })?;
    match format::inspect(Some(path), metadata.len(), |bytes| file.read_exact(bytes))? {
        Found::Nothing => wrong("the file is empty"),
        Found::Redb => Ok(()),
    }
}

/// Creates a database under a temporary name, writes its format version and then publishes it: after a crash, `path` is
/// a complete database or does not exist.
fn create(path: &Path, options: &Options) -> Result<()> {
    let draft = match Draft::of(path) {
        // Another process created the database first.
        Err(Error::Exists(_)) => return check_format(path),
        draft => draft?,
    };
    let database = create_in(draft.path(), &builder(options))
        .map_err(|error| error::opening(error, Some(path), options.access))?;
    mark(&database)?;
    drop(database);
    match draft.publish() {
        Err(Error::Exists(_)) => check_format(path),
        published => published,
    }
}

/// Creates a database of redb in a file that does not exist.
pub(super) fn create_in(path: &Path, builder: &Builder) -> std::result::Result<Database, DatabaseError> {
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    builder.create_with_backend(CountedStorage::new(Arc::new(FileBackend::new(file)?), &Arc::default())?)
}

pub(super) fn mark(database: &Database) -> Result<()> {
    let transaction = database.begin_write().map_err(error::storage)?;
    format::write_mark(&transaction)?;
    transaction.commit().map_err(error::committing)
}

pub(super) fn builder(options: &Options) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_bytes);
    builder
}
