use std::{fmt, sync::Arc, time::Duration};

use bson::{DateTime, doc};
use serde::{Deserialize, Serialize};
use slate_query::Code;

use crate::{
    Collection, Database, Error, ErrorKind, Isolation, ReadCollection, Result, Transaction, TransactionOptions,
    clock::now_millis,
};

/// The collection in which the completed steps are recorded: documents `{ _id: number of the step, name, at }`.
const RECORDS: &str = "slate.migrations";

/// How long a program waits by default while another thread migrates.
const WAIT: Duration = Duration::from_secs(600);

/// The steps that bring a database from one version of a program to the next; see [`Database::migrate`].
#[derive(Clone)]
#[must_use = "the steps are executed by `Database::migrate`"]
pub struct Migrations {
    steps: Vec<MigrationStep>,
    options: TransactionOptions,
}

#[derive(Clone)]
struct MigrationStep {
    name: String,
    run: Arc<RunMigration>,
}

type RunMigration = dyn Fn(&Transaction) -> Result<()> + Send + Sync;

/// The result of [`Database::migrate`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationResult {
    /// The version that the database now has: the number of its steps.
    pub version: u64,
    /// The names of the steps that this call has executed.
    pub applied: Vec<String>,
}

/// The record of a completed step.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The number of the step, from 1.
    #[serde(rename = "_id")]
    number: i64,
    name: String,
    /// When the step was executed.
    at: DateTime,
}

impl Default for Migrations {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            options: TransactionOptions::new().isolation(Isolation::Serializable).lock_timeout(WAIT),
        }
    }
}

impl Migrations {
    /// Creates a list without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step at the end. Steps are never removed, renamed or reordered once a program with them was used: the database
    /// records them by number and name.
    ///
    /// `run` is executed in a transaction, and again after a conflict, so it must have no effects outside of it. An index that it
    /// creates is built in that transaction, which holds the index's entries until the commit.
    pub fn step(mut self, name: &str, run: impl Fn(&Transaction) -> Result<()> + Send + Sync + 'static) -> Self {
        self.steps.push(MigrationStep { name: name.into(), run: Arc::new(run) });
        self
    }

    /// Sets the options of each step's transaction. By default it is serializable, waits up to ten minutes for another
    /// transaction that migrates, and has no deadline.
    pub fn options(mut self, options: TransactionOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns the steps; limits that their options do not set become those of the handle.
    #[cfg(feature = "async")]
    pub(crate) fn limited(&self, database: &Database) -> Self {
        self.clone().options(database.limited(&self.options))
    }

    /// Returns the steps with a child of the caller's token, and that child.
    #[cfg(feature = "async")]
    pub(crate) fn cancellable(&self) -> (Self, crate::CancelToken) {
        let (options, token) = self.options.cancellable();
        (self.clone().options(options), token)
    }

    /// Checks that the recorded steps are the first steps of this program; returns how many they are.
    fn check(&self, records: &[Record]) -> Result<usize> {
        let mut numbers = 1..;
        for record in records {
            if numbers.next() != Some(record.number) {
                return Err(Error::corrupt(format!("{RECORDS} has a step {} without those before it", record.number)));
            }
        }
        for (record, step) in records.iter().zip(&self.steps) {
            if record.name != step.name {
                let Record { number, name, .. } = record;
                let message =
                    format!("migration step {number} of the database is {name:?}, and of this program {:?}", step.name);
                return Err(Error::invalid(Code::ILLEGAL_OPERATION, message));
            }
        }
        match records.get(self.steps.len()..) {
            Some([newer, ..]) => {
                let message = format!(
                    "the database has {} migration steps and this program {}: it does not know {:?}; use a newer program",
                    records.len(),
                    self.steps.len(),
                    newer.name
                );
                Err(Error::new(ErrorKind::NewerSchema, Code::ILLEGAL_OPERATION, message))
            }
            _ => Ok(records.len()),
        }
    }

    pub(crate) fn run(&self, database: &Database) -> Result<MigrationResult> {
        // Usually the database has all steps already, and no transaction is needed.
        let mut done = self.check(&records(&database.collection(RECORDS))?)?;
        let mut applied = Vec::new();
        while let Some(step) = self.steps.get(done) {
            let number = done + 1;
            let outcome = database.transact_with(&self.options, |transaction| self.run_step(transaction, number, step));
            match outcome.map_err(|error| error.of_step(number, &step.name))? {
                StepOutcome::Applied => {
                    applied.push(step.name.clone());
                    done = number;
                }
                StepOutcome::Recorded(steps) => done = steps,
            }
        }
        Ok(MigrationResult { version: done as u64, applied })
    }

    /// Executes and records a step, unless it is recorded already.
    fn run_step(&self, transaction: &Transaction, number: usize, step: &MigrationStep) -> Result<StepOutcome> {
        let collection: Collection<Record> = transaction.collection(RECORDS);
        let recorded = self.check(&records(&collection)?)?;
        if recorded >= number {
            return Ok(StepOutcome::Recorded(recorded));
        }
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        // The record is inserted before the step runs, so that a store that detects conflicts early detects them before
        // the work.
        collection.insert_one(&Record { number, name: step.name.clone(), at: DateTime::from_millis(now_millis()) })?;
        (step.run)(transaction)?;
        Ok(StepOutcome::Applied)
    }
}

enum StepOutcome {
    Applied,
    /// Another caller has executed the step. The value is the number of recorded steps.
    Recorded(usize),
}

/// Returns the completed steps, in order.
fn records(collection: &ReadCollection<Record>) -> Result<Vec<Record>> {
    collection.find(doc! {}).sort(doc! { "_id": 1 }).collect()
}

impl Database {
    /// Executes the steps that the database does not have yet, in order. Each step and its record are one transaction:
    /// after an error or a crash the database has all steps before the failed one, and nothing of the failed step.
    ///
    /// Completed steps are recorded in the collection `slate.migrations`, which is a collection like others: copies and backups contain it. If
    /// several threads migrate at the same time, each step is committed by one of them, and all return when the last step is committed. The same
    /// holds for several processes on a store that they share; on other stores only one process at a time can have the database open for writing.
    ///
    /// ```
    /// use bson::{Document, doc};
    /// use slate_core::{Database, Index, Migrations};
    ///
    /// let migrations = Migrations::new()
    ///     .step("mails are unique", |tx| {
    ///         tx.collection::<Document>("users").create_index(Index::on(doc! { "mail": 1 }).unique()).run().map(drop)
    ///     })
    ///     .step("users have roles", |tx| {
    ///         let users = tx.collection::<Document>("users");
    ///         users.update_many(doc! { "roles": null }, doc! { "$set": { "roles": ["reader"] } }).run().map(drop)
    ///     });
    ///
    /// let db = Database::open("memory:")?;
    /// assert_eq!(db.migrate(&migrations)?.applied, ["mails are unique", "users have roles"]);
    /// assert!(db.migrate(&migrations)?.applied.is_empty());
    /// assert_eq!(db.schema_version()?, 2);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: a read of `slate.migrations` if there is nothing to do.
    ///
    /// # Errors
    /// [`ErrorKind::NewerSchema`] if the database has steps that `migrations` lacks; [`ErrorKind::Invalid`] if a recorded
    /// step has another name. If a step fails, returns its error with the same kind, and a message that names the step.
    /// Also fails as [`transact_with`](Database::transact_with) does.
    pub fn migrate(&self, migrations: &Migrations) -> Result<MigrationResult> {
        migrations.run(self)
    }

    /// Returns the number of migration steps that the database has; see [`Database::migrate`]. A database that was never migrated
    /// has the version 0.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn schema_version(&self) -> Result<u64> {
        self.collection::<Record>(RECORDS).estimated_document_count()
    }
}

impl fmt::Debug for Migrations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.steps.iter().map(|step| &*step.name).collect();
        f.debug_struct("Migrations").field("steps", &names).finish_non_exhaustive()
    }
}
