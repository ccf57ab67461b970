use std::{path::Path, sync::Arc, time::Duration};

use ::redb::{Database, StorageBackend, WriteTransaction};

use super::{
    Options, RedbSnapshot, RedbTransaction, backup, error,
    open::{self, Handle, Opened},
    options::Recovery,
    table,
    turn::{Cover, HeldTurn, Turn},
};
use crate::{Capabilities, Context, Durability, Error, Isolation, Keyspace, Result, Size, Store, files};

/// A database in a redb file. Clones share it; it ends with the last of them and of what they opened.
#[derive(Clone)]
pub struct RedbStore {
    writer: Arc<Writer>,
}

impl RedbStore {
    /// Opens the database at `path`, or makes it, as `options` say. A database comes into being whole: whatever happens
    /// meanwhile, there is one at `path` or nothing. After a crash, opening reads the whole file unless
    /// [`Options::recovery`] had it otherwise.
    ///
    /// # Errors
    ///
    /// Each names the path. [`Missing`](Error::Missing): its folder, or with
    /// [`Access::OpenExisting`](super::Access::OpenExisting) or [`ReadOnly`](super::Access::ReadOnly) the file, is not
    /// there. [`WrongFormat`](Error::WrongFormat): it is a folder, empty, no redb file, or one that Slate did not
    /// make. [`NewerVersion`](Error::NewerVersion): a later version of redb or of Slate made it.
    /// [`Locked`](Error::Locked): it is open already, here or in another process. [`ReadOnly`](Error::ReadOnly): its
    /// medium or its permissions allow no writing; or it was to be read only, and needs repair, which writes.
    /// [`Corrupt`](Error::Corrupt) and [`Full`](Error::Full), as they say.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        Ok(Self::over(open::at(path, options)?, options))
    }

    /// Opens a database over storage of the caller's own, or makes one in it where it is empty. Tests inject faults that way.
    /// A crash in the middle of making one may leave storage that is neither empty nor a database.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), without a path. Opening it [`ReadOnly`](super::Access::ReadOnly) is
    /// [`Unsupported`](Error::Unsupported).
    pub fn open_over(storage: impl StorageBackend, options: &Options) -> Result<Self> {
        Ok(Self::over(open::over(storage, options)?, options))
    }

    fn over(opened: Opened, options: &Options) -> Self {
        let writer = Writer { opened: Arc::new(opened), turn: Arc::default(), recovery: options.recovery };
        Self { writer: Arc::new(writer) }
    }
}

impl Store for RedbStore {
    type Snapshot = RedbSnapshot;
    type Transaction = RedbTransaction;

    fn name(&self) -> &'static str {
        "redb"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { persistent: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<RedbSnapshot> {
        RedbSnapshot::open(&self.writer.opened)
    }

    fn begin(&self, _: Isolation, wait: Duration) -> Result<RedbTransaction> {
        // One writer at a time: every order is serial, whatever the isolation.
        RedbTransaction::begin(&self.writer, wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<()> {
        let (turn, transaction) = self.writer.begin(wait)?;
        let existed = transaction.delete_table(table::definition(&table::name(keyspace))).map_err(error::storage)?;
        if existed { self.writer.commit(turn, transaction, Durability::Deferred) } else { Ok(()) }
    }

    fn flush(&self) -> Result<()> {
        self.writer.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.snapshot()?, to)
    }

    /// `data` would take reading every page, and storage of the caller's own does not tell its length.
    fn size(&self) -> Result<Size> {
        let on_disk = match &self.writer.opened.path {
            Some(path) => {
                let metadata = path.metadata().map_err(|error| files::failed(error, "while taking its size", path))?;
                Some(metadata.len())
            }
            None => None,
        };
        Ok(Size { on_disk, ..Size::default() })
    }
}

/// What makes commits: the database, the turn to write to it, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    turn: Arc<Turn>,
    recovery: Recovery,
}

impl Writer {
    pub(super) fn begin(&self, wait: Duration) -> Result<(HeldTurn, WriteTransaction)> {
        let database = self.database()?;
        let turn = Turn::take(&self.turn, wait)?;
        let transaction = database.begin_write().map_err(error::storage)?;
        Ok((turn, transaction))
    }

    fn database(&self) -> Result<&Database> {
        match &self.opened.handle {
            Handle::Writable(database) => Ok(database),
            Handle::ReadOnly(_) => {
                let context = Context::new("it was opened so");
                let context = match &self.opened.path {
                    Some(path) => context.at(path),
                    None => context,
                };
                Err(Error::ReadOnly(Box::new(context)))
            }
        }
    }

    /// Commits and gives up the turn.
    pub(super) fn commit(&self, turn: HeldTurn, transaction: WriteTransaction, durability: Durability) -> Result<()> {
        if durability == Durability::Sync && !turn.is_followed_by_a_writer() {
            return self.commit_to_device(&turn, transaction);
        }
        let commit = Self::commit_to_memory(&turn, transaction)?;
        match durability {
            Durability::Deferred => Ok(()),
            Durability::Sync => match turn.wait_for_cover(commit) {
                Cover::Done => Ok(()),
                Cover::Failed => Err(uncovered(None)),
                Cover::Yours(turn) => self.flush_in(&turn).map_err(|error| uncovered(Some(error))),
            },
        }
    }

    fn commit_to_memory(turn: &HeldTurn, mut transaction: WriteTransaction) -> Result<u64> {
        transaction.set_durability(::redb::Durability::None).map_err(error::storage)?;
        match transaction.commit() {
            Ok(()) => Ok(turn.committed()),
            Err(error) => Err(Self::fail(turn, error)),
        }
    }

    fn commit_to_device(&self, turn: &HeldTurn, mut transaction: WriteTransaction) -> Result<()> {
        transaction.set_quick_repair(self.recovery == Recovery::WithEachCommit);
        match transaction.commit() {
            Ok(()) => {
                turn.committed_durably();
                Ok(())
            }
            Err(error) => Err(Self::fail(turn, error)),
        }
    }

    fn fail(turn: &HeldTurn, error: ::redb::CommitError) -> Error {
        // One that redb rolled back cleanly says nothing about the others.
        if !matches!(error, ::redb::CommitError::TransactionPoisoned) {
            turn.failed();
        }
        error::committing(error)
    }

    fn flush(&self) -> Result<()> {
        if matches!(self.opened.handle, Handle::ReadOnly(_)) {
            return Ok(());
        }
        self.flush_in(&Turn::take(&self.turn, Duration::MAX)?)
    }

    /// Puts what is committed on the device: an empty commit that is `Immediate` takes all before it along.
    fn flush_in(&self, turn: &HeldTurn) -> Result<()> {
        if turn.is_all_durable() {
            return Ok(());
        }
        let transaction = self.database()?.begin_write().map_err(error::storage)?;
        self.commit_to_device(turn, transaction)
    }
}

/// The commit was made, others may have seen it, and it did not reach the device.
fn uncovered(source: Option<Error>) -> Error {
    let context = Context::new("the device failed under the commits it was to be written with");
    Error::OutcomeUnknown(Box::new(match source {
        Some(source) => context.because(source),
        None => context,
    }))
}
