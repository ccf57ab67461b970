use std::{ops::ControlFlow, sync::Arc};

use crate::{Ahead, Bounds, Edge, Keyspace, Result, Version};

/// Called during a read; an error, usually [`Interrupted`](crate::Error::Interrupted), ends the read.
pub type ReadEnd = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// A view that owns its data, so that it and everything opened on it can be stored and sent to another thread.
///
/// Implemented for every view that qualifies. A backend implements only [`View`].
pub trait Snapshot: View<Cursor: 'static, PointReader: 'static> + Sync + 'static {}

impl<V> Snapshot for V where V: View<Cursor: 'static, PointReader: 'static> + Sync + 'static {}

/// A consistent state of the database: a snapshot, or a transaction's snapshot with its own writes applied.
///
/// The executor is generic over this trait. Cursors and point readers of a snapshot own everything they need, those of
/// a transaction borrow it. Both can be sent to another thread. Cloning a view is cheap, and the clone shows the same state.
pub trait View: Clone + Send {
    /// A position in a range of keys.
    type Cursor: Cursor + Send;
    /// A reader of single keys.
    type PointReader: PointReader + Send;

    /// Returns the version of the last commit that the view shows: exactly the commits up to this version are visible.
    fn version(&self) -> Version;

    /// Returns how many round trips this view, its clones and everything opened on them have made; concurrent ones count as one. `None`, the
    /// default, for a store on this machine.
    fn round_trips(&self) -> Option<u64> {
        None
    }

    /// Returns how many requests this view, its clones and everything opened on them have made; concurrent ones count each. `None` as for
    /// [`round_trips`](Self::round_trips).
    fn requests(&self) -> Option<u64> {
        None
    }

    /// Opens a cursor confined to `bounds`, not yet positioned. A backend can use the bounds to skip files and to read
    /// ahead.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor>;

    /// Opens cursors over the first of these ranges of a keyspace, at least one, in one round trip: each is at the entry that `edge` names in its
    /// range. A store on a network overrides this, because it can read the first entries of many ranges concurrently; it reads about `bytes` of
    /// keys and values for all of them together. `None`, the default, where that has no advantage; then open each range with
    /// [`cursor`](Self::cursor). A store that overrides this returns an empty list for no ranges.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Option<Vec<Self::Cursor>>> {
        let _ = (keyspace, ranges, edge, bytes);
        Ok(None)
    }

    /// Sends a read of all keys and values within `bounds`, which should be few, and does not wait for the answer: it is concurrent with the
    /// following reads, and costs no round trip of its own. `None`, the default, where a read does not wait for a network, and where the view has
    /// writes of its own in the keyspace; then use [`scan`](Self::scan).
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn scan_ahead(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Option<Ahead>> {
        let _ = (keyspace, bounds);
        Ok(None)
    }

    /// Returns the same view, whose cursors call `end` while they pass a long range without keys on a store on a network, and fail with its error.
    /// By default, and where a cursor finds its next key at once, `end` is not called.
    #[must_use]
    fn ended_by(&self, end: ReadEnd) -> Self {
        let _ = end;
        self.clone()
    }

    /// Opens a reader of single keys of all keyspaces. Opening one may cost more than a read, so reuse it.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn point_reader(&self) -> Result<Self::PointReader>;

    /// Calls `visitor` with the value of one key. Returns `None` if the key does not exist. Use a
    /// [`point_reader`](Self::point_reader) for several keys.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let mut reader = self.point_reader()?;
        reader.load(&[(keyspace, key)])?;
        Ok(reader.loaded(0).map(visitor))
    }

    /// Calls `visitor` with the keys and values within `bounds`, in ascending order, until it breaks. Returns the value
    /// of the break. On some backends this costs less than a [`cursor`](Self::cursor).
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        scan_steps(&mut self.cursor(keyspace, bounds)?, visitor)
    }

    /// Returns the number of keys within `bounds`. A backend that counts by stepping calls `should_continue` with the number of keys counted so far
    /// before each key, and returns `None` once that returns false. One on a network may call it again with the same number after each answer
    /// without keys.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        count_steps(&mut self.cursor(keyspace, bounds)?, should_continue)
    }

    /// Calls `read`, and returns its result and the bytes that the backend meanwhile read from its files, because its own cache did not have them,
    /// or received over a network. They may come from the operating system's page cache. A backend that cannot distinguish queries includes the
    /// reads of other threads. `None`, the default: unknown.
    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        (read(), None)
    }
}

/// Visits the entries within a cursor's bounds by stepping over them.
///
/// # Errors
/// Any failure of the backend's storage.
pub(crate) fn scan_steps<B>(
    cursor: &mut impl Cursor,
    mut visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> Result<Option<B>> {
    let mut more = cursor.seek(Edge::First)?;
    while let Some((key, value)) = cursor.current().filter(|_| more) {
        if let ControlFlow::Break(broken) = visitor(key, value) {
            return Ok(Some(broken));
        }
        more = cursor.step_forward()?;
    }
    Ok(None)
}

/// Counts the entries within a cursor's bounds by stepping over them; `None` once `should_continue` returns false.
///
/// # Errors
/// Any failure of the backend's storage.
pub(crate) fn count_steps(
    cursor: &mut impl Cursor,
    mut should_continue: impl FnMut(u64) -> bool,
) -> Result<Option<u64>> {
    let (mut counted, mut more) = (0, cursor.seek(Edge::First)?);
    while more {
        if !should_continue(counted) {
            return Ok(None);
        }
        counted += 1;
        more = cursor.step_forward()?;
    }
    Ok(Some(counted))
}

/// A position in a range of keys. `seek` and `step_*` move and return whether an entry was found; `current` lends it.
///
/// Moving and reading are two calls because a lending `next() -> Option<(&[u8], &[u8])>` cannot be returned out of a loop
/// that skips rows, as every filter does (the borrow checker's "problem case 3").
///
/// Beyond either end and after an error, the cursor has no position: `current` returns `None`, a step returns `false`, and
/// only `seek` positions it again.
pub trait Cursor {
    /// Moves to the entry that `edge` names, within the bounds. Costs a descent of the tree.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool>;

    /// Moves to the next greater key.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn step_forward(&mut self) -> Result<bool>;

    /// Moves to the next smaller key.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn step_back(&mut self) -> Result<bool>;

    /// Returns the key and the value at the cursor's position, lent until it moves.
    fn current(&self) -> Option<(&[u8], &[u8])>;

    /// Returns the value at the cursor's position, shared instead of copied. `None` without a position, for a value that the transaction itself
    /// wrote, and always on backends that hold no values in memory: then copy the value that [`current`](Self::current) lends.
    fn shared(&self) -> Option<Arc<[u8]>> {
        None
    }
}

/// A reader of single keys that holds the values of its last load.
pub trait PointReader {
    /// Reads many keys, of any keyspaces, in one round trip at most. Sorted keys are cheapest; keys may repeat, and need not exist.
    /// [`loaded`](Self::loaded)`(i)` then lends the value of `keys[i]` until the next `load`.
    ///
    /// # Errors
    /// Any failure of the backend's storage; nothing is loaded then.
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()>;

    /// Sends the next [`load`](Self::load), and does not wait for the answer: it is concurrent with other reads. If the next load has the same
    /// keys, it receives this answer; otherwise the answer is dropped. Several readers of a view can have sent loads at the same time. Returns
    /// whether it was sent: `false`, the default, where a read does not wait for a network.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn load_ahead(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        let _ = keys;
        Ok(false)
    }

    /// Returns the value of the key at position `index` of the last [`load`](Self::load). `None` if the key does not exist or the position is out
    /// of range.
    fn loaded(&self, index: usize) -> Option<&[u8]>;

    /// Returns the same value, shared instead of copied. `None` on the same backends as [`Cursor::shared`], and for a value that the
    /// transaction itself wrote.
    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        let _ = index;
        None
    }
}
