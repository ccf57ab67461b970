use std::{
    fs::File,
    ops::AddAssign,
    path::Path,
    sync::{Arc, Mutex},
};

use slate_query::Code;

use super::arena::Arena;
use crate::{Error, ErrorKind, Result};

/// How many bytes of rows may be held in memory, and where the rest is put.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    limit: usize,
    directory: Option<Arc<Path>>,
    /// Of all questions to a database.
    spare: Arc<Spare>,
}

/// Unless the caller says otherwise: a sort of 100,000 usual documents stays in memory, and a hundred operations at once
/// do not exhaust a usual machine.
const DEFAULT_LIMIT: usize = 64 << 20;

/// The buffers of the last question that needed many: memory asked of the operating system anew comes page by page, and
/// each page costs more than the rows in it.
#[derive(Debug, Default)]
struct Spare(Mutex<Arena>);

/// The most bytes that are kept for the next question: as many as it may hold, unless the caller says otherwise.
const LARGEST_SPARE: usize = DEFAULT_LIMIT;

impl Default for Memory {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, directory: None, spare: Arc::default() }
    }
}

impl Memory {
    /// With another limit, where one is given.
    pub(crate) fn limited(&self, limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(self.limit), ..self.clone() }
    }

    /// With temporary files in that folder instead of the operating system's.
    pub(crate) fn in_directory(&self, directory: &Path) -> Self {
        Self { directory: Some(directory.into()), ..self.clone() }
    }

    /// An error where the folder is none: better told when the database is opened than in the middle of a sort.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(directory) = self.directory.as_deref().filter(|directory| !directory.is_dir()) else { return Ok(()) };
        let message = format!("the folder for temporary files is none: {}", directory.display());
        Err(Error::new(ErrorKind::NotFound, Code(38), message))
    }

    /// What each has where `holders` hold rows at the same time.
    pub(crate) fn shared_by(&self, holders: usize) -> Self {
        Self { limit: self.limit / holders.max(1), ..self.clone() }
    }

    /// The bytes that may be held.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Buffers for rows: those of a question that is over, where they are not in use.
    pub(super) fn take_spare(&self) -> Arena {
        self.spare.0.try_lock().map(|mut spare| std::mem::take(&mut *spare)).unwrap_or_default()
    }

    /// Leaves buffers to the next question.
    pub(super) fn leave_spare(&self, mut arena: Arena) {
        arena.clear();
        if arena.capacity() <= LARGEST_SPARE
            && let Ok(mut spare) = self.spare.0.try_lock()
            && arena.capacity() > spare.capacity()
        {
            *spare = arena;
        }
    }

    /// An empty file that has no name, or none that outlives it.
    pub(super) fn create_file(&self) -> Result<File> {
        let created = match &self.directory {
            Some(directory) => tempfile::tempfile_in(directory),
            None => tempfile::tempfile(),
        };
        created.map_err(|error| {
            let default = std::env::temp_dir();
            let directory = self.directory.as_deref().unwrap_or(&default);
            Error::spill(&format!("no temporary file could be created in {}", directory.display()), error)
        })
    }
}

/// What an operation wrote to temporary files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spilled {
    /// Stretches of rows written out because memory was full.
    pub(crate) runs: u64,
    /// Bytes written, those written again by a merge in several passes included.
    pub(crate) bytes: u64,
}

impl AddAssign for Spilled {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.bytes += other.bytes;
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
    fn the_largest_buffers_that_may_be_kept_are_left_to_the_next_question() {
        let memory = Memory::default();
        for payload in [1_000, 50_000, 2_000] {
            memory.leave_spare(arena(&vec![7; payload]));
        }
        let taken = memory.limited(Some(10)).take_spare();
        assert!(taken.is_empty() && taken.capacity() >= 50_000, "all questions of a database share them");
        assert_eq!(memory.take_spare().capacity(), 0, "none are taken twice");
        memory.leave_spare(arena(&vec![7; LARGEST_SPARE]));
        assert_eq!(memory.take_spare().capacity(), 0, "more is given back to the system");
    }
}
