//! A database, opened and set up.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::Connection;
use slate_bench::{Field, harness::Result};

use crate::sql::{self, table};

/// Where the database lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, of one connection's own.
    Memory,
    /// In a file, with a write-ahead log that is not synced by each commit.
    File,
}

/// What the planner knows of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// Nothing: `ANALYZE` has never been run.
    Absent,
    /// What `ANALYZE` found once the records were loaded.
    Analyzed,
}

/// A database of SQLite's.
#[derive(Debug)]
pub struct Sqlite {
    pub(crate) connection: Connection,
    pub(crate) place: Place,
    pub(crate) statistics: Statistics,
    pub(crate) path: PathBuf,
    /// Whether records were inserted since `ANALYZE` was run.
    pub(crate) stale: bool,
}

/// More than the workload has.
const CACHED_STATEMENTS: usize = 256;

impl Sqlite {
    /// Makes a new database in an empty folder, with a table and two indexes per user.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(place: Place, statistics: Statistics, folder: &Path, users: usize) -> Result<Self> {
        let path = folder.join("records.db");
        let connection = connect(place, &path)?;
        for user in 0..users {
            let table = table(user);
            connection.execute_batch(&format!("CREATE TABLE {table} (_id INTEGER PRIMARY KEY, doc BLOB NOT NULL)"))?;
            for field in Field::INDEXED {
                let (name, value) = (field.name(), sql::value(field));
                connection.execute_batch(&format!("CREATE INDEX {table}_{name} ON {table} ({value})"))?;
            }
        }
        Ok(Self { connection, place, statistics, path, stale: true })
    }

    /// Another connection to the same file.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn another(&self) -> Result<Self> {
        let connection = connect(self.place, &self.path)?;
        Ok(Self { connection, path: self.path.clone(), ..*self })
    }

    /// Runs `ANALYZE`, where that is wanted and records were inserted since.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn analyze(&mut self) -> Result<()> {
        if std::mem::take(&mut self.stale) && self.statistics == Statistics::Analyzed {
            self.connection.execute_batch("ANALYZE")?;
        }
        Ok(())
    }
}

fn connect(place: Place, path: &Path) -> Result<Connection> {
    let connection = match place {
        Place::Memory => Connection::open_in_memory()?,
        Place::File => Connection::open(path)?,
    };
    // In memory too: the size of the cache is also that of a sort that need not spill.
    connection.pragma_update(None, "cache_size", -256 * 1024)?;
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
