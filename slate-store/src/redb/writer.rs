use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ::redb::WriteTransaction;

use super::{
    error,
    latest::Latest,
    open::{Handle, Opened},
    options::Recovery,
    turn::{Cover, HeldTurn, Turn},
    version,
};
use crate::{Context, Durability, Error, Result, Version};

/// What makes commits: the database, the turn to write to it, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    /// Of the last commit.
    pub(super) latest: Latest,
    turn: Arc<Turn>,
    recovery: Recovery,
    /// The version of the last commit. Changed by the writer whose turn it is.
    version: AtomicU64,
}

impl Writer {
    pub(super) fn new(opened: Opened, recovery: Recovery) -> Result<Self> {
        let version = version::read(&opened.handle().begin_read()?)?;
        let (latest, turn) = (Latest::default(), Arc::default());
        Ok(Self { opened: Arc::new(opened), latest, turn, recovery, version: AtomicU64::new(version.0) })
    }

    pub(super) fn version(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    pub(super) fn begin(&self, wait: Duration) -> Result<(HeldTurn, WriteTransaction)> {
        self.check_writable()?;
        let turn = Turn::take(&self.turn, wait)?;
        let transaction = self.begin_in(&turn)?;
        Ok((turn, transaction))
    }

    /// Begins in a turn: redb itself would wait for ever.
    fn begin_in(&self, _: &HeldTurn) -> Result<WriteTransaction> {
        match &*self.opened.handle() {
            Handle::Writable(database) => {
                // What it alone keeps from being used again is given up before the pages of the commit are chosen.
                self.latest.forget();
                database.begin_write().map_err(error::storage)
            }
            Handle::ReadOnly(_) => Err(self.read_only()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        match &*self.opened.handle() {
            Handle::Writable(_) => Ok(()),
            Handle::ReadOnly(_) => Err(self.read_only()),
        }
    }

    fn read_only(&self) -> Error {
        let context = Context::new("it was opened so");
        Error::ReadOnly(Box::new(match &self.opened.path {
            Some(path) => context.at(path),
            None => context,
        }))
    }

    /// Moves pages to the front of the file and cuts its end off.
    pub(super) fn compact(&self, wait: Duration) -> Result<()> {
        self.check_writable()?;
        let turn = Turn::take(&self.turn, wait)?;
        let mut handle = self.opened.handle.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *handle {
            Handle::Writable(database) => {
                // redb moves nothing while there is a reader.
                self.latest.forget();
                database.compact().map_err(error::compacting)?
            }
            Handle::ReadOnly(_) => return Err(self.read_only()),
        };
        // It commits what it does, and all that was committed before with it.
        turn.committed_durably();
        Ok(())
    }

    /// Commits and gives up the turn.
    pub(super) fn commit(
        &self,
        turn: HeldTurn,
        transaction: WriteTransaction,
        durability: Durability,
    ) -> Result<Version> {
        let version = Version(self.version().0 + 1);
        version::write(&transaction, version)?;
        if durability == Durability::Sync && !turn.is_followed_by_a_writer() {
            self.commit_to_device(&turn, transaction, version)?;
            return Ok(version);
        }
        let commit = self.commit_to_memory(&turn, transaction, version)?;
        match durability {
            Durability::Deferred => Ok(version),
            Durability::Sync => match turn.wait_for_cover(commit) {
                Cover::Done => Ok(version),
                Cover::Yours(turn) => self.flush_in(&turn).map_err(uncovered).map(|()| version),
            },
        }
    }

    fn commit_to_memory(&self, turn: &HeldTurn, mut transaction: WriteTransaction, version: Version) -> Result<u64> {
        transaction.set_durability(::redb::Durability::None).map_err(error::storage)?;
        match self.make(transaction, version) {
            Ok(()) => Ok(turn.committed()),
            Err(error) => Err(error::committing(error)),
        }
    }

    fn commit_to_device(&self, turn: &HeldTurn, mut transaction: WriteTransaction, version: Version) -> Result<()> {
        transaction.set_quick_repair(self.recovery == Recovery::WithEachCommit);
        match self.make(transaction, version) {
            Ok(()) => {
                turn.committed_durably();
                Ok(())
            }
            Err(error) => Err(error::committing(error)),
        }
    }

    fn make(&self, transaction: WriteTransaction, version: Version) -> std::result::Result<(), ::redb::CommitError> {
        let made = transaction.commit();
        if made.is_ok() {
            self.version.store(version.0, Ordering::Release);
        }
        // Also where it failed: it may be seen all the same.
        self.latest.forget();
        made
    }

    pub(super) fn flush(&self) -> Result<()> {
        if self.check_writable().is_err() {
            return Ok(());
        }
        self.flush_in(&Turn::take(&self.turn, Duration::MAX)?)
    }

    /// Puts what is committed on the device: an empty commit that is `Immediate` takes all before it along.
    fn flush_in(&self, turn: &HeldTurn) -> Result<()> {
        if turn.is_all_durable() {
            return Ok(());
        }
        let transaction = self.begin_in(turn)?;
        self.commit_to_device(turn, transaction, self.version())
    }
}

/// The commit was made, others may have seen it, and it did not reach the device. Once one commit failed there, redb
/// refuses all that follow, so that everybody who waits to be covered ends here.
fn uncovered(source: Error) -> Error {
    let context = Context::new("the device failed under the commits it was to be written with");
    Error::OutcomeUnknown(Box::new(context.because(source)))
}
