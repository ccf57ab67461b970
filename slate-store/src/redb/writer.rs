use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use ::redb::WriteTransaction;

use super::{
    error,
    latest::Latest,
    open::{Handle, Opened},
    options::Recovery,
    turn::{Cover, HeldTurn, Turn},
    written_keys::WrittenKeys,
};
use crate::{Context, Durability, Error, Result};

/// What makes commits: the database, the turn to write to it, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    /// Of the last commit.
    pub(super) latest: Latest,
    turn: Arc<Turn>,
    recovery: Recovery,
}

impl Writer {
    pub(super) fn new(opened: Opened, recovery: Recovery) -> Self {
        Self { opened: Arc::new(opened), latest: Latest::default(), turn: Arc::default(), recovery }
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
        keys: &WrittenKeys,
        durability: Durability,
    ) -> Result<()> {
        if durability == Durability::Sync && !turn.is_followed_by_a_writer() {
            return self.commit_to_device(&turn, transaction, keys);
        }
        let commit = self.commit_to_memory(&turn, transaction, keys)?;
        match durability {
            Durability::Deferred => Ok(()),
            Durability::Sync => match turn.wait_for_cover(commit) {
                Cover::Done => Ok(()),
                Cover::Yours(turn) => self.flush_in(&turn).map_err(uncovered),
            },
        }
    }

    fn commit_to_memory(&self, turn: &HeldTurn, mut transaction: WriteTransaction, keys: &WrittenKeys) -> Result<u64> {
        transaction.set_durability(::redb::Durability::None).map_err(error::storage)?;
        match self.make(transaction, keys) {
            Ok(()) => Ok(turn.committed()),
            Err(error) => Err(error::committing(error)),
        }
    }

    fn commit_to_device(&self, turn: &HeldTurn, mut transaction: WriteTransaction, keys: &WrittenKeys) -> Result<()> {
        transaction.set_quick_repair(self.recovery == Recovery::WithEachCommit);
        match self.make(transaction, keys) {
            Ok(()) => {
                turn.committed_durably();
                Ok(())
            }
            Err(error) => Err(error::committing(error)),
        }
    }

    fn make(&self, transaction: WriteTransaction, keys: &WrittenKeys) -> std::result::Result<(), ::redb::CommitError> {
        let writing = keys.writing(&self.opened);
        let made = transaction.commit();
        // Before the next snapshot is taken: one that is not sure to see this commit can use nothing of what it wrote.
        drop(writing);
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
        self.commit_to_device(turn, transaction, &WrittenKeys::default())
    }
}

/// The commit was made, others may have seen it, and it did not reach the device. Once one commit failed there, redb
/// refuses all that follow, so that everybody who waits to be covered ends here.
fn uncovered(source: Error) -> Error {
    let context = Context::new("the device failed under the commits it was to be written with");
    Error::OutcomeUnknown(Box::new(context.because(source)))
}
