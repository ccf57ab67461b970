use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use slate_query::{Code, pipeline::GroupStates};

use super::arena::Arena;
use crate::{Error, ErrorKind, Result, metrics::Observer};

/// The memory limit of an operation, and the directory for rows beyond it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// `None` for [`DEFAULT_LIMIT`].
    limit: Option<usize>,
    disk: DiskUse,
    directory: Option<Arc<Path>>,
    /// Shared by all operations of a database.
    pool: Arc<BufferPool>,
    /// Counts what the operations of the database do.
    observer: Arc<Observer>,
}

/// The memory of one operation, where its caller has set it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// The limit in bytes; `None` for the database's limit.
    pub(crate) limit: Option<usize>,
    pub(crate) disk: DiskUse,
}

/// Whether rows beyond the memory limit may be written to temporary files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DiskUse {
    #[default]
    Allowed,
    /// The operation fails instead.
    Refused,
}

/// Default limit of an operation, in bytes: a sort of 100,000 typical documents stays in memory, and a hundred concurrent
/// operations do not exhaust a typical machine.
const DEFAULT_LIMIT: usize = 64 << 20;

/// The buffers of a finished operation, for the next one. Fresh memory comes from the operating system page by page, and
/// each page fault costs more than writing the rows that fit the page.
#[derive(Debug, Default)]
struct BufferPool {
    rows: Mutex<Arena>,
    groups: Mutex<GroupStates>,
    /// The bytes of rows that are parked in memory.
    parked: AtomicUsize,
}

/// Maximum number of bytes that all cursors of a database together may hold in memory between their batches, not counting the
/// cursors that hold at most [`SMALL_PARKED`] bytes: as many as one operation.
const MAX_PARKED: usize = DEFAULT_LIMIT;

/// Rows of up to this many bytes stay in memory: they are not worth a file of their own.
const SMALL_PARKED: usize = 16 << 10;

/// Memory of rows that are parked between two batches of their cursor, released when this is dropped.
#[derive(Debug)]
pub(super) struct ParkedCharge {
    pool: Arc<BufferPool>,
    bytes: usize,
}

impl Drop for ParkedCharge {
    fn drop(&mut self) {
        self.pool.parked.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Maximum number of bytes that the pool holds of each kind: as many as one operation uses at the default limit.
const MAX_POOLED: usize = DEFAULT_LIMIT;

impl Default for Memory {
    fn default() -> Self {
        Self { limit: None, disk: DiskUse::Allowed, directory: None, pool: Arc::default(), observer: Arc::default() }
    }
}

impl Memory {
    /// Returns a copy with another limit, if one is given.
    pub(crate) fn limited(&self, limit: Option<usize>) -> Self {
        Self { limit: limit.or(self.limit), ..self.clone() }
    }

    /// Returns a copy for an operation with this budget.
    pub(crate) fn of(&self, budget: Budget) -> Self {
        Self { disk: budget.disk, ..self.limited(budget.limit) }
    }

    /// Returns a copy that creates temporary files in this directory instead of the operating system's.
    pub(crate) fn in_directory(&self, directory: &Path) -> Self {
        Self { directory: Some(directory.into()), ..self.clone() }
    }

    /// Returns a copy whose operations are counted by this observer.
    pub(crate) fn observed_by(&self, observer: Arc<Observer>) -> Self {
        Self { observer, ..self.clone() }
    }

    /// Returns the observer, which counts what the operations of the database do.
    pub(crate) fn observer(&self) -> &Arc<Observer> {
        &self.observer
    }

    /// Fails if the directory does not exist. Called when a database is opened, so that a sort does not fail later.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(directory) = self.directory.as_deref().filter(|directory| !directory.is_dir()) else { return Ok(()) };
        let message = format!("the directory for temporary files does not exist: {}", directory.display());
        Err(Error::new(ErrorKind::NotFound, Code::FILE_NOT_OPEN, message))
    }

    /// Returns a copy with an equal share of the limit for each of `holders`, which hold rows at the same time.
    pub(crate) fn shared_by(&self, holders: usize) -> Self {
        Self { limit: Some(self.limit() / holders.max(1)), ..self.clone() }
    }

    /// Returns the limit in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    /// Returns the limit that the caller or the opener of the database has set; `None` if neither has.
    pub(crate) fn given_limit(&self) -> Option<usize> {
        self.limit
    }

    /// Charges rows of this size, in bytes, for staying in memory between two batches. `None` if they exceed [`MAX_PARKED`] and must
    /// be written to a file.
    pub(super) fn park(&self, bytes: usize) -> Option<ParkedCharge> {
        let bytes = if bytes <= SMALL_PARKED { 0 } else { bytes };
        let charge = ParkedCharge { pool: Arc::clone(&self.pool), bytes };
        let before = self.pool.parked.fetch_add(bytes, Ordering::Relaxed);
        (before.saturating_add(bytes) <= MAX_PARKED || bytes == 0).then_some(charge)
    }

    /// Like [`park`](Self::park), for rows whose size has changed since `charge` was made. Returns whether they may stay in memory.
    pub(super) fn park_again(&self, charge: &mut Option<ParkedCharge>, bytes: usize) -> bool {
        // The previous charge is released first.
        *charge = None;
        *charge = self.park(bytes);
        charge.is_some()
    }

    /// Takes the pooled buffers for rows, or new ones if the pool has none.
    pub(super) fn take_buffers(&self) -> Arena {
        take(&self.pool.rows)
    }

    /// Returns buffers to the pool if they are larger than the pool's buffers and have at most [`MAX_POOLED`] bytes.
    pub(super) fn return_buffers(&self, mut arena: Arena) {
        arena.clear();
        put(&self.pool.rows, arena, Arena::capacity);
    }

    /// Takes the pooled buffers for groups, or new ones if the pool has none.
    pub(crate) fn take_groups(&self) -> GroupStates {
        take(&self.pool.groups)
    }

    /// Returns the buffers of groups to the pool, as [`return_buffers`](Self::return_buffers).
    pub(crate) fn return_groups(&self, mut groups: GroupStates) {
        groups.clear();
        put(&self.pool.groups, groups, GroupStates::capacity);
    }

    /// Creates an anonymous temporary file.
    ///
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` (292) if the caller has refused temporary files.
    pub(super) fn create_file(&self) -> Result<File> {
        if self.disk == DiskUse::Refused {
            let limit = self.limit();
            let message = format!("the query needs more than {limit} bytes of memory, and may not use temporary files");
            return Err(Error::new(
                ErrorKind::TooLarge,
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                message,
            ));
        }
        let created = match &self.directory {
            Some(directory) => tempfile::tempfile_in(directory),
            None => tempfile::tempfile(),
        };
        created.and_then(private).map_err(|error| {
            let default = std::env::temp_dir();
            let directory = self.directory.as_deref().unwrap_or(&default);
            Error::spill(&format!("no temporary file could be created in {}", directory.display()), error)
        })
    }
}

/// Makes a file readable and writable by its user alone. A file without a name can be opened only by processes of the same user
/// anyway, but some systems create it with a name.
fn private(file: File) -> io::Result<File> {
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

fn take<T: Default>(pooled: &Mutex<T>) -> T {
    pooled.try_lock().map(|mut pooled| std::mem::take(&mut *pooled)).unwrap_or_default()
}

fn put<T>(pooled: &Mutex<T>, buffers: T, capacity: impl Fn(&T) -> usize) {
    if capacity(&buffers) <= MAX_POOLED
        && let Ok(mut pooled) = pooled.try_lock()
        && capacity(&buffers) > capacity(&pooled)
    {
        *pooled = buffers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(payload: &[u8]) -> Arena {
        let mut arena = Arena::default();
        arena.push(b"key", b"tie", payload, usize::MAX).unwrap();
        arena
    }

    #[test]
    fn the_pool_holds_the_largest_buffers_within_its_limit() {
        let memory = Memory::default();
        for payload in [1_000, 50_000, 2_000] {
            memory.return_buffers(arena(&vec![7; payload]));
        }
        let taken = memory.limited(Some(10)).take_buffers();
        assert!(taken.is_empty() && taken.capacity() >= 50_000, "the limit of one operation does not change the pool");
        assert_eq!(memory.take_buffers().capacity(), 0, "buffers are taken once");
        memory.return_buffers(arena(&vec![7; MAX_POOLED]));
        assert_eq!(memory.take_buffers().capacity(), 0, "larger buffers are freed");
    }
}
