//! Opens and sets up a database.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::Connection;
use slate_bench::{Field, Setup, harness::Result};

use crate::sql::{self, table};

/// Location of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, private to one connection.
    Memory,
    /// In a file, with a write-ahead log that is not synced by each commit.
    File,
}

/// Statistics of SQLite's planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// None: `ANALYZE` was never run.
    Absent,
    /// From `ANALYZE` after loading the records.
    Analyzed,
}

/// A SQLite database.
#[derive(Debug)]
pub struct Sqlite {
    pub(crate) connection: Connection,
    pub(crate) place: Place,
    pub(crate) statistics: Statistics,
    pub(crate) path: PathBuf,
    /// The size of the cache in bytes.
    pub(crate) cache: u64,
    /// Whether records were inserted since the last `ANALYZE`.
    pub(crate) stale: bool,
}

/// The default size of the cache in bytes.
const CACHE: u64 = 256 << 20;

/// Size of the cache of prepared statements: more than the workload has.
const CACHED_STATEMENTS: usize = 256;

impl Sqlite {
    /// Creates a new database in an empty directory, with a table and two indexes per user.
    ///
    /// # Errors
    /// Fails with SQLite's errors.
    pub fn open(place: Place, statistics: Statistics, folder: &Path, setup: Setup) -> Result<Self> {
        let path = folder.join("records.db");
        let cache = setup.cache.unwrap_or(CACHE);
        let connection = connect(place, &path, cache)?;
        for user in 0..setup.users {
            let table = table(user);
            connection.execute_batch(&format!("CREATE TABLE {table} (_id INTEGER PRIMARY KEY, doc BLOB NOT NULL)"))?;
            for field in Field::INDEXED {
                let (name, value) = (field.name(), sql::value(field));
                connection.execute_batch(&format!("CREATE INDEX {table}_{name} ON {table} ({value})"))?;
            }
        }
        Ok(Self { connection, place, statistics, path, cache, stale: true })
    }

    /// Opens another connection to the same file.
    ///
    /// # Errors
    /// Fails with SQLite's errors.
    pub(crate) fn another(&self) -> Result<Self> {
        let connection = connect(self.place, &self.path, self.cache)?;
        Ok(Self { connection, path: self.path.clone(), ..*self })
    }

    /// Runs `ANALYZE` if requested and records were inserted since the last time.
    ///
    /// # Errors
    /// Fails with SQLite's errors.
    pub(crate) fn analyze(&mut self) -> Result<()> {
        if std::mem::take(&mut self.stale) && self.statistics == Statistics::Analyzed {
            self.connection.execute_batch("ANALYZE")?;
        }
        Ok(())
    }
}

fn connect(place: Place, path: &Path, cache: u64) -> Result<Connection> {
    let connection = match place {
        Place::Memory => Connection::open_in_memory()?,
        Place::File => Connection::open(path)?,
    };
    // Also applies in memory: the cache size limits sorts that do not spill.
    connection.pragma_update(None, "cache_size", -i64::try_from(cache / 1024)?)?;
    match place {
        Place::Memory => connection.pragma_update(None, "temp_store", "memory")?,
        Place::File => {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.busy_timeout(Duration::from_secs(60))?;
        }
    }
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}
