use bson::Timestamp;

use crate::{ChangeLog, Database, IntoDocument, Result, Watch, changes::Watched, clock};

/// The log of changes, its streams and its times.
impl Database {
    /// Logs all changes from now on, so that streams can read them. If they are logged already, sets the limits of the log. The setting is stored in
    /// the database. It is off by default and then costs nothing; if it is on, each write also writes its document to the log. Versions of Slate
    /// without a log of changes cannot open a database that has one.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use slate_core::ChangeLog;
    ///
    /// db.enable_changes(ChangeLog::new().bytes(64 << 20))?;
    /// assert!(db.logs_changes()?);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: conflicts with every open write transaction, which is then retried.
    ///
    /// # Errors
    /// Fails as a write does.
    pub fn enable_changes(&self, log: ChangeLog) -> Result<()> {
        self.set_change_log(Some(log))
    }

    /// Ends the log of changes, and deletes it. Streams fail with MongoDB's code 40573.
    ///
    /// # Errors
    /// Fails as a write does.
    pub fn disable_changes(&self) -> Result<()> {
        self.set_change_log(None)
    }

    /// Watches the changes of all collections of the [database](Self::database); through the handle with which the store was opened, of all
    /// databases. See [`Collection::watch`](crate::Collection::watch).
    pub fn watch(&self, pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Watch {
        let watched = self.name().as_deref().map_or(Watched::Store, |name| Watched::Database(name.into()));
        Watch::new(self.scope(), watched, pipeline, self.begin_call())
    }

    /// Makes the timestamps that this process generates from now on greater than `time`: those of `$currentDate`, of empty timestamps in
    /// documents, and of commits in the log of changes.
    ///
    /// With [`next_time`](Self::next_time) and [`last_time`](Self::last_time), this is the logical clock of a server, whose clients expect that
    /// a change is later than every time that a reply contained.
    pub fn advance_time(&self, time: Timestamp) {
        clock::hear(u64::from(time.time) << 32 | u64::from(time.increment));
    }

    /// Returns the greatest timestamp that this process generated, or was advanced to; `Timestamp(0, 0)` before the first one.
    pub fn last_time(&self) -> Timestamp {
        to_timestamp(clock::last())
    }

    /// Generates a timestamp, greater than all before: the first one of the current second, or the greatest so far plus one, whichever is later.
    pub fn next_time(&self) -> Timestamp {
        to_timestamp(clock::timestamp(clock::now_millis()))
    }

    /// Returns whether changes are logged.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn logs_changes(&self) -> Result<bool> {
        self.handle().limits().check()?;
        Ok(self.handle().catalog()?.change_log().is_some())
    }

    fn set_change_log(&self, log: Option<ChangeLog>) -> Result<()> {
        self.scope().write(&self.begin_call(), |writer| writer.set_change_log(log))
    }
}

fn to_timestamp(number: u64) -> Timestamp {
    let half = |half: u64| u32::try_from(half & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    Timestamp { time: half(number >> 32), increment: half(number) }
}
