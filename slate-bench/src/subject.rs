//! The trait that a database implements to run the workload.

use bson::RawDocument;
use slate_bench_harness::{About, Repeat, Result, Row, Unsupported};

use crate::{
    Change, Fetched, Query, TypedTask,
    aggregation::{Company, Question, Rows},
    records::id_of,
};

/// How a run consumes the rows of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consume {
    /// Reads the `_id` of each row where the database lends it, without copying.
    Lent,
    /// Collects all rows as owned documents, then reads their `_id`s.
    Owned,
}

impl Consume {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Lent, Self::Owned];

    /// Returns the word that distinguishes the two rows of a query in reports: `lent` or `owned`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lent => "lent",
            Self::Owned => "owned",
        }
    }
}

/// The summary of a result. It is computed while the clock runs, so it is cheap. The sums depend on the set of `_id`s,
/// not on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Number of rows or values; for a count, the count.
    pub count: u64,
    /// Sum of the `_id`s.
    pub sum: u64,
    /// Sum of the squared `_id`s.
    pub squares: u64,
}

impl Answer {
    /// Creates a summary of this many values without `_id`s.
    pub fn counted(count: u64) -> Self {
        Self { count, ..Self::default() }
    }

    /// Adds a row with this `_id`.
    #[inline]
    pub fn see(&mut self, id: i64) {
        let id = id.cast_unsigned();
        self.count += 1;
        self.sum = self.sum.wrapping_add(id);
        self.squares = self.squares.wrapping_add(id.wrapping_mul(id));
    }

    /// Adds a document. A document without a readable `_id` is counted and makes the sums wrong.
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

/// The work that a database reports for a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Keys read.
    pub keys: u64,
    /// Documents read.
    pub documents: u64,
    /// The plan, in one line.
    pub plan: String,
}

/// A database with one collection per user, numbered from 0. Each collection has an index on `status` and one on
/// `contacts_count` from the beginning.
///
/// A method returns [`Unsupported`] for an operation that the database cannot do. The row is reported as unsupported, and the run
/// continues.
pub trait Subject: Sized + Send {
    /// A query of one collection in the database's own form. It is prepared once. Work that every execution must
    /// repeat, such as parsing and planning, belongs to [`run`](Subject::run).
    type Query;

    /// Records in the form that the database's calls take: bytes, documents, JSON. They are built before the clock
    /// starts.
    type Batch;

    /// Returns the name, version and settings.
    fn about(&self) -> About;

    /// Converts records and merged fields. The iterator generates them one at a time, so only the converted form takes
    /// memory.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Self::Batch>;

    /// Inserts new records in one commit. Returns their number.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn insert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Replaces records by `_id`, inserts missing ones, in one commit. Returns the number of records.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn upsert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Merges fields into records by `_id`, inserts missing records, in one commit. Returns the number of records.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn merge(&mut self, user: usize, batch: &Self::Batch) -> Result<u64>;

    /// Deletes records by `_id`. Not measured: it undoes writes.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()>;

    /// Prepares a query.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn prepare(&mut self, user: usize, query: &Query) -> Result<Self::Query>;

    /// Executes a query and consumes its result. Only [`Query::Find`] and [`Query::Lookups`] have rows to consume.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn run(&mut self, query: &Self::Query, consume: Consume) -> Result<Answer>;

    /// Executes a query and returns the complete result. Not measured: it is compared with the expected result.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn fetch(&mut self, query: &Self::Query) -> Result<Fetched>;

    /// Returns the work that the database reports for a query. `None` if it reports nothing.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn work(&mut self, user: usize, query: &Query) -> Result<Option<Work>> {
        let _ = (user, query);
        Ok(None)
    }

    /// Stores the companies twice, once with an index on `code`.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn load_companies(&mut self, companies: &[Company]) -> Result<()> {
        let _ = companies;
        Err(Unsupported::because("aggregations are not measured for it").into())
    }

    /// Answers a question about the records of the first user.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn aggregate(&mut self, question: &Question) -> Result<Rows> {
        let _ = question;
        Err(Unsupported::because("aggregations are not measured for it").into())
    }

    /// Executes an operation on the collection of typed documents. Returns the number of documents and the sum of their
    /// `_id`s.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn typed(&mut self, task: TypedTask<'_>) -> Result<Answer> {
        let _ = task;
        Err(Unsupported::because("typed documents are not measured for it").into())
    }

    /// Measures the rows that only this database has, on the collection of typed documents, which has `size` documents. Returns
    /// titles of sections and rows.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn own_rows(&mut self, size: u64, repeat: Repeat) -> Result<Vec<(&'static str, Row)>> {
        let _ = (size, repeat);
        Ok(Vec::new())
    }

    /// Measures writes with and without a log of changes. The records have this seed.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn logged_rows(&mut self, seed: u64, repeat: Repeat) -> Result<Vec<Row>> {
        let _ = (seed, repeat);
        Ok(Vec::new())
    }

    /// Checks the whole database for damage with the database's own tools.
    ///
    /// # Errors
    /// Fails if there is damage, and with the database's own errors.
    fn verify(&mut self) -> Result<()> {
        Err(Unsupported::because("it has no check of integrity").into())
    }

    /// Returns the space of deleted data to the file system.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn compact(&mut self) -> Result<()> {
        Err(Unsupported::because("it does not compact its files").into())
    }

    /// Returns the bytes on disk after all commits. `None` for a database in memory.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn size(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns another handle of the same database, for another thread. Unsupported if a database has only one handle.
    ///
    /// # Errors
    /// Fails with the database's own errors.
    fn connect(&self) -> Result<Self> {
        Err(Unsupported::because("one thread at a time").into())
    }
}
