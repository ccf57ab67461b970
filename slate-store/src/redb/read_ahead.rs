//! Reads ahead in the file where pages next to each other are read, independent of what the system would do.
//!
//! The pages of a table are in many short runs: commits put them where other pages were freed. The system's readahead grows with
//! each sequential read and reads far beyond the end of a run. If the memory for cached files is small, it evicts what it has read
//! before that is used, and reads several times as much as is needed. So it is turned off. Instead, the second read in a block
//! requests the rest of the block and the next one, and a read of the first page in a block that was requested requests the
//! block after it. Single pages are read alone.

use std::{
    fs::File,
    io,
    num::NonZeroU64,
    sync::{Mutex, TryLockError},
};

use rustix::fs::{Advice, fadvise};

/// The size in bytes of a block, the unit of reading ahead.
const BLOCK: u64 = 128 << 10;

/// The number of blocks that are remembered: a few for each cursor that scans.
const REMEMBERED: usize = 64;

/// Requests parts of a file before they are read.
#[derive(Debug)]
pub(super) struct ReadAhead {
    file: File,
    recent: Mutex<Recent>,
}

/// The blocks that were read or requested last.
#[derive(Debug)]
struct Recent {
    blocks: [Seen; REMEMBERED],
    /// The one that is replaced next.
    oldest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    block: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unused,
    /// A page was read.
    Read,
    /// The system was asked to read it.
    Requested,
    /// It was requested, and a page was read.
    Scanned,
}

impl ReadAhead {
    /// Turns the system's readahead of this file off. The file is not read otherwise.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        fadvise(file, 0, None, Advice::Random)?;
        let blocks = [Seen { block: u64::MAX, state: State::Unused }; REMEMBERED];
        Ok(Self { file: file.try_clone()?, recent: Mutex::new(Recent { blocks, oldest: 0 }) })
    }

    /// Requests what will probably be read after the bytes at `offset`.
    pub(super) fn before_read(&self, offset: u64) {
        let recent = match self.recent.try_lock() {
            Ok(mut recent) => recent.read(offset),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().read(offset),
            // Reading ahead is of less use than waiting costs.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some((from, to)) = recent {
            // Only a hint.
            let _ = fadvise(&self.file, from, NonZeroU64::new(to.saturating_sub(from)), Advice::WillNeed);
        }
    }
}

impl Recent {
    /// Records a read, and returns the range that should be requested.
    fn read(&mut self, offset: u64) -> Option<(u64, u64)> {
        let block = offset / BLOCK;
        let before = self.state(block);
        match before {
            State::Unused => {
                let follows = block > 0 && matches!(self.state(block - 1), State::Requested | State::Scanned);
                if !follows {
                    self.set(block, State::Read);
                    return None;
                }
            }
            State::Scanned => return None,
            State::Read | State::Requested => {}
        }
        self.set(block, State::Scanned);
        let from = if before == State::Requested { (block + 1) * BLOCK } else { offset };
        let next_is_known = matches!(self.state(block + 1), State::Requested | State::Scanned);
        if next_is_known {
            return (before != State::Requested).then_some((from, (block + 1) * BLOCK));
        }
        self.set(block + 1, State::Requested);
        Some((from, (block + 2) * BLOCK))
    }

    fn state(&self, block: u64) -> State {
        self.blocks.iter().find(|seen| seen.block == block).map_or(State::Unused, |seen| seen.state)
    }

    fn set(&mut self, block: u64, state: State) {
        if let Some(seen) = self.blocks.iter_mut().find(|seen| seen.block == block && seen.state != State::Unused) {
            seen.state = state;
            return;
        }
        if let Some(seen) = self.blocks.get_mut(self.oldest) {
            *seen = Seen { block, state };
        }
        self.oldest = (self.oldest + 1) % REMEMBERED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Reads pages, and returns what was requested, in blocks.
    fn requested(pages: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut recent = Recent { blocks: [Seen { block: u64::MAX, state: State::Unused }; REMEMBERED], oldest: 0 };
        let requests = pages.into_iter().filter_map(|page| recent.read(page * PAGE));
        requests.map(|(from, to)| (from / PAGE, to / PAGE)).collect()
    }

    #[test]
    fn pages_far_apart_request_nothing() {
        assert_eq!(requested((0..1_000).map(|page| page * 7_919 % 100_003 * 64)), []);
    }

    #[test]
    fn a_scan_requests_each_block_once_and_one_block_ahead() {
        assert_eq!(requested(0..96), [(1, 64), (64, 96), (96, 128)]);
        // Pages of other tables lie between.
        assert_eq!(requested((0..32).map(|page| page * 3)), [(3, 64), (64, 96), (96, 128)]);
    }

    #[test]
    fn a_scan_in_runs_requests_little_more_than_the_runs() {
        let runs = [4_000_u64, 900, 7_000, 12_000, 300];
        let requests = requested(runs.into_iter().flat_map(|start| start..start + 32));
        let pages: u64 = requests.iter().map(|(from, to)| to - from).sum();
        assert!(pages <= 3 * 32 * 5, "{pages}: {requests:?}");
    }

    #[test]
    fn two_scans_at_once_are_both_read_ahead() {
        let both = (0..64).flat_map(|page| [page, 10_000 + page]);
        let requests = requested(both);
        let covers = |page: u64| requests.iter().any(|(from, to)| (*from..*to).contains(&page));
        assert!((2..64).all(|page| covers(page) && covers(10_000 + page)), "{requests:?}");
    }
}
