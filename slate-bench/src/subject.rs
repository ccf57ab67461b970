//! What a database implements to run the workload.

use bson::RawDocument;
use slate_bench_harness::{About, Result, Unsupported};

use crate::{Change, Fetched, Query, records::id_of};

/// How the rows of an answer are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consume {
    /// Each is looked at where the database lends it, and its `_id` is read; nothing is kept.
    Lent,
    /// All are collected as documents of the caller's own, then their `_id`s are read.
    Owned,
}

impl Consume {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Lent, Self::Owned];

    /// As a row's variant is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lent => "lent",
            Self::Owned => "owned",
        }
    }
}

/// What came of a question, in little: made while the clock runs, so cheap. The sums depend on which `_id`s there were,
/// and not on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// How many rows or values; for a count, what was counted.
    pub count: u64,
    /// The sum of the `_id`s.
    pub sum: u64,
    /// The sum of their squares.
    pub squares: u64,
}

impl Answer {
    /// Of so many that have no `_id`s.
    pub fn counted(count: u64) -> Self {
        Self { count, ..Self::default() }
    }

    /// A row of this `_id`.
    #[inline]
    pub fn see(&mut self, id: i64) {
        let id = id.cast_unsigned();
        self.count += 1;
        self.sum = self.sum.wrapping_add(id);
        self.squares = self.squares.wrapping_add(id.wrapping_mul(id));
    }

    /// A row that is this document. One without an `_id` where the workload's documents have it counts, and spoils the
    /// sums.
    #[inline]
    pub fn see_document(&mut self, document: &RawDocument) {
        self.see(id_of(document).unwrap_or(i64::MIN));
    }
}

impl FromIterator<i64> for Answer {
    fn from_iter<I: IntoIterator<Item = i64>>(ids: I) -> Self {
        let mut answer = Self::default();
        ids.into_iter().for_each(|id| answer.see(id));
        answer
    }
}

/// What a database did for a question, as it tells itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Keys it looked at.
    pub keys: u64,
    /// Documents it read.
    pub documents: u64,
    /// Its plan, in a line.
    pub plan: String,
}

/// A database with one collection per user, numbered from 0, each with an index on `status` and one on `contacts_count`,
/// which are there from the beginning.
///
/// Whatever it cannot do, it says by an error that is [`Unsupported`]: that row is reported as such, and the run goes on.
pub trait Subject: Sized + Send {
    /// A question of one collection in the database's own terms: what is done once, however often it is asked. What each
    /// asking must do anew (parse, plan) is left to [`run`](Subject::run).
    type Query;

    /// Records as the database's calls take them: bytes, documents, JSON. Made before the clock runs.
    type Batch;

    /// Its name, version and settings.
    fn about(&self) -> About;

    /// Translates records and fields of records. They are made one by one as they are asked for, so that they take no
    /// memory beside what they become.
    ///
    /// # Errors
    /// The database's own.
    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Self::Batch>;

    /// Inserts new records and commits once; how many.
    ///
    /// # Errors
    /// The database's own.
    fn insert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Replaces records whole by their `_id`s, inserts those that are not there, and commits once; how many records.
    ///
    /// # Errors
    /// The database's own.
    fn upsert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Writes fields over records by their `_id`s, inserts those that are not there, and commits once; how many records.
    ///
    /// # Errors
    /// The database's own.
    fn merge(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Deletes records by their `_id`s. It is not measured: it restores what writes changed.
    ///
    /// # Errors
    /// The database's own.
    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()>;

    /// Translates a question.
    ///
    /// # Errors
    /// The database's own.
    fn prepare(&mut self, user: usize, query: &Query) -> Result<Self::Query>;

    /// Asks a question and consumes its answer. Only [`Query::Find`] and [`Query::Lookups`] have rows to consume.
    ///
    /// # Errors
    /// The database's own.
    fn run(&mut self, query: &Self::Query, consume: Consume) -> Result<Answer>;

    /// Asks a question for its whole answer. It is not measured: it is what is checked.
    ///
    /// # Errors
    /// The database's own.
    fn fetch(&mut self, query: &Self::Query) -> Result<Fetched>;

    /// What the database does for a question; `None` where it does not tell.
    ///
    /// # Errors
    /// The database's own.
    fn work(&mut self, user: usize, query: &Query) -> Result<Option<Work>> {
        let _ = (user, query);
        Ok(None)
    }

    /// Looks through the whole database for damage, by the database's own means.
    ///
    /// # Errors
    /// Damage; the database's own.
    fn verify(&mut self) -> Result<()> {
        Err(Unsupported::because("it has no check of integrity").into())
    }

    /// The bytes it takes on disk, everything committed being there; `None` in memory.
    ///
    /// # Errors
    /// The database's own.
    fn size(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Another handle on the same database, for another thread.
    ///
    /// # Errors
    /// The database's own.
    fn connect(&self) -> Result<Self> {
        Err(Unsupported::because("one thread at a time").into())
    }
}
