use std::{
    ops::Bound,
    sync::{Arc, mpsc},
};

use tokio::task::JoinSet;

use super::{
    after, error,
    read::{self, Direction, FIRST_PAGE, Page},
    snapshot::TikvSnapshot,
    value::Stored,
};
use crate::{
    Bounds, Cursor, Edge, Error, Keyspace, Result,
    bounds::{Landing, OwnedBounds},
};

/// A cursor that reads pages of growing size. From the second page in one direction on, it requests the next page ahead.
pub struct TikvCursor {
    snapshot: TikvSnapshot,
    keyspace: Keyspace,
    bounds: OwnedBounds,
    /// Adjacent entries in ascending order, by their stored keys.
    entries: Vec<(Vec<u8>, Stored)>,
    /// Whether the bounds may contain entries before, or after, `entries`.
    more_below: bool,
    more_above: bool,
    /// The direction and the key at which entries continue, if not directly beside `entries`.
    continued: Option<(Direction, Vec<u8>)>,
    /// The position of the current entry in `entries`.
    at: Option<usize>,
    /// The current value if it is stored in chunks. Only one is in memory at a time.
    large: Option<Stored>,
    /// The number of entries of the next page.
    next: u32,
    ahead: Option<Ahead>,
}

/// Assumed size in bytes of a short entry: determines how many entries several cursors request at first.
const SHORT_ENTRY: usize = 64;

/// A page that was requested ahead.
struct Ahead {
    direction: Direction,
    page: mpsc::Receiver<Result<Page>>,
}

impl TikvCursor {
    pub(super) fn new(snapshot: TikvSnapshot, keyspace: Keyspace, bounds: Bounds<'_>) -> Self {
        let bounds = OwnedBounds::of(bounds);
        let (entries, at, large, next, ahead) = (Vec::new(), None, None, FIRST_PAGE, None);
        Self {
            snapshot,
            keyspace,
            bounds,
            entries,
            more_below: false,
            more_above: false,
            continued: None,
            at,
            large,
            next,
            ahead,
        }
    }

    /// Opens cursors over several ranges, each at an edge of its range. The first pages, of about `bytes` in total, are read concurrently.
    pub(super) fn open_several(
        snapshot: &TikvSnapshot,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Vec<Self>> {
        let each = u32::try_from(bytes / SHORT_ENTRY / ranges.len().max(1)).unwrap_or(FIRST_PAGE).clamp(1, FIRST_PAGE);
        let mut cursors = Vec::with_capacity(ranges.len());
        let mut wanted = Vec::with_capacity(ranges.len());
        for bounds in ranges {
            let mut cursor = Self::new(snapshot.clone(), keyspace, *bounds);
            cursor.next = each;
            let landing = bounds.confine(edge);
            if let Some(range) = cursor.range(landing) {
                wanted.push((cursors.len(), direction(landing), range));
            }
            cursors.push(cursor);
        }
        if wanted.is_empty() {
            return Ok(cursors);
        }
        snapshot.count_trips(1);
        let (cluster, at, read_end) = (Arc::clone(&snapshot.cluster), snapshot.at, snapshot.end.clone());
        let pages = async move {
            let mut pages = JoinSet::new();
            for (number, direction, range) in wanted {
                let page = read::page(Arc::clone(&cluster), at, range, direction, each, read_end.clone());
                pages.spawn(async move { page.await.map(|page| (number, direction, page)) });
            }
            let mut read = Vec::with_capacity(pages.len());
            while let Some(page) = pages.join_next().await {
                read.push(page.map_err(error::unanswered)??);
            }
            Ok(read)
        };
        for (number, direction, page) in snapshot.checked(|| snapshot.cluster.runtime.wait(pages))? {
            snapshot.count_page(&page);
            if let Some(cursor) = cursors.get_mut(number) {
                cursor.enter(page, direction)?;
            }
        }
        Ok(cursors)
    }

    fn prefix(&self) -> usize {
        self.snapshot.cluster.layout.entry_prefix()
    }

    /// Makes the entry at this position the current one, and reads its value if that is large. Returns whether there is one.
    fn settle(&mut self, at: Option<usize>) -> Result<bool> {
        (self.at, self.large) = (None, None);
        let prefix = self.prefix();
        let Some((key, stored)) = at.and_then(|at| self.entries.get(at)) else { return Ok(false) };
        if matches!(stored, Stored::Chunks(_)) {
            let key = key.get(prefix..).unwrap_or_default();
            self.large = Some(self.snapshot.assemble(self.keyspace, key, stored.clone())?);
        }
        self.at = at;
        Ok(true)
    }

    /// Returns the range of keys from `landing` to the end of the bounds in its direction; `None` if it is empty.
    fn range(&self, landing: Landing<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        let layout = &self.snapshot.cluster.layout;
        let (mut start, mut end) = layout.range(self.keyspace, self.bounds.bounds())?;
        match landing {
            Landing::Up(Bound::Included(key)) => start = layout.entry(self.keyspace, key),
            Landing::Up(Bound::Excluded(key)) => start = after(layout.entry(self.keyspace, key)),
            Landing::Down(Bound::Included(key)) => end = after(layout.entry(self.keyspace, key)),
            Landing::Down(Bound::Excluded(key)) => end = layout.entry(self.keyspace, key),
            Landing::Up(Bound::Unbounded) | Landing::Down(Bound::Unbounded) => {}
        }
        (start < end).then_some((start, end))
    }

    /// Moves to the first entry from `landing` in its direction. Returns whether there is one.
    fn land(&mut self, landing: Landing<'_>) -> Result<bool> {
        self.forget();
        self.next = FIRST_PAGE;
        let Some(range) = self.range(landing) else { return Ok(false) };
        let direction = direction(landing);
        let page = self.fetch(range, direction)?;
        self.enter(page, direction)
    }

    fn forget(&mut self) {
        (self.at, self.large, self.ahead, self.continued) = (None, None, None, None);
        self.entries.clear();
        (self.more_below, self.more_above) = (false, false);
    }

    fn request(&self, range: (Vec<u8>, Vec<u8>), direction: Direction) -> impl Future<Output = Result<Page>> + use<> {
        self.snapshot.count_trips(1);
        let TikvSnapshot { cluster, at, end, .. } = &self.snapshot;
        read::page(Arc::clone(cluster), *at, range, direction, self.next, end.clone())
    }

    fn fetch(&self, range: (Vec<u8>, Vec<u8>), direction: Direction) -> Result<Page> {
        self.snapshot.page(|| self.snapshot.cluster.runtime.wait(self.request(range, direction)))
    }

    /// Makes `page` the current page, and its first entry in `direction` the position.
    fn enter(&mut self, page: Page, direction: Direction) -> Result<bool> {
        let Page { entries, has_more, end, next, .. } = page;
        (self.entries, self.next) = (entries, next);
        self.continued = end.map(|end| (direction, end));
        let Some(last) = self.entries.len().checked_sub(1) else {
            self.forget();
            return Ok(false);
        };
        match direction {
            Direction::Up => {
                (self.more_below, self.more_above) = (true, has_more);
                self.settle(Some(0))
            }
            Direction::Down => {
                (self.more_below, self.more_above) = (has_more, true);
                self.settle(Some(last))
            }
        }
    }

    /// Returns the range beyond the current page; `None` if it has no entries.
    fn range_beyond(&self, direction: Direction) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, end) = self.snapshot.cluster.layout.range(self.keyspace, self.bounds.bounds())?;
        let continued = self.continued.as_ref().filter(|(continued, _)| *continued == direction);
        let continued = continued.map(|(_, at)| at.clone());
        let range = match direction {
            Direction::Up => (continued.or_else(|| Some(after(self.entries.last()?.0.clone())))?, end),
            Direction::Down => (start, continued.or_else(|| Some(self.entries.first()?.0.clone()))?),
        };
        (range.0 < range.1).then_some(range)
    }

    /// Moves to the next page in `direction`. Returns whether it has an entry.
    fn turn_page(&mut self, direction: Direction) -> Result<bool> {
        let ahead = self.ahead.take().filter(|ahead| ahead.direction == direction);
        let ahead = ahead.map(|ahead| ahead.page.recv().unwrap_or_else(|error| Err(error::unanswered(error))));
        // An error that the deadline of an earlier batch caused is discarded, and the page is read again.
        let ahead = ahead.filter(|page| !matches!(page, Err(Error::Interrupted(_))) || !self.snapshot.goes_on());
        let page = match ahead {
            Some(page) => self.snapshot.page(|| page),
            None => match self.range_beyond(direction) {
                Some(range) => self.fetch(range, direction),
                None => {
                    self.forget();
                    return Ok(false);
                }
            },
        };
        let page = page.inspect_err(|_| self.forget())?;
        let has_more = page.has_more;
        let found = self.enter(page, direction)?;
        if has_more && let Some(range) = self.range_beyond(direction) {
            let page = self.snapshot.cluster.runtime.begin(self.request(range, direction));
            self.ahead = Some(Ahead { direction, page });
        }
        Ok(found)
    }

    /// Returns the position among `entries` of the first entry from `landing`; `None` if it may be on another page.
    fn find(&self, landing: Landing<'_>) -> Option<usize> {
        let prefix = self.prefix();
        let key = |at: usize| self.entries.get(at).and_then(|(key, _)| key.get(prefix..));
        let (first, last) = (key(0)?, key(self.entries.len().checked_sub(1)?)?);
        let below = |bound: &[u8]| self.entries.partition_point(|(key, _)| key.get(prefix..) < Some(bound));
        match landing {
            Landing::Up(Bound::Included(bound)) if first <= bound && bound <= last => Some(below(bound)),
            Landing::Down(Bound::Excluded(bound)) if first < bound && bound <= last => below(bound).checked_sub(1),
            _ => None,
        }
    }
}

fn direction(landing: Landing<'_>) -> Direction {
    match landing {
        Landing::Up(_) => Direction::Up,
        Landing::Down(_) => Direction::Down,
    }
}

impl Cursor for TikvCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = self.bounds.clone();
        let landing = bounds.bounds().confine(edge);
        match self.find(landing) {
            Some(at) => self.settle(Some(at)),
            None => self.land(landing),
        }
    }

    fn step_forward(&mut self) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        if at + 1 < self.entries.len() {
            self.settle(Some(at + 1))
        } else if self.more_above {
            self.turn_page(Direction::Up)
        } else {
            self.at = None;
            Ok(false)
        }
    }

    fn step_back(&mut self) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        match at.checked_sub(1) {
            Some(before) => self.settle(Some(before)),
            None if self.more_below => self.turn_page(Direction::Down),
            None => {
                self.at = None;
                Ok(false)
            }
        }
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        let (key, stored) = self.entries.get(self.at?)?;
        Some((key.get(self.prefix()..)?, self.large.as_ref().unwrap_or(stored).inline()?))
    }
}
