use std::{ops::ControlFlow, sync::Arc};

use crate::{Bounds, Edge, Keyspace, Result, Version};

/// A view that owns what it needs, so that it and everything opened on it can be kept and sent to any thread.
///
/// Implemented for every type that qualifies; a backend implements [`View`] only.
pub trait Snapshot: View<Cursor: Send + 'static, PointReader: Send + 'static> + Send + Sync + 'static {}

impl<V> Snapshot for V where V: View<Cursor: Send + 'static, PointReader: Send + 'static> + Send + Sync + 'static {}

/// A consistent state of the database to read: a snapshot, or a transaction's snapshot with its own writes applied.
///
/// The executor is generic over it. Cursors and point readers are plain associated types: those of a snapshot own
/// everything they need, those of a transaction borrow it. Cloning a view is cheap; a clone reads the same.
pub trait View: Clone {
    /// A position in a range of keys.
    type Cursor: Cursor;
    /// A reader of single keys.
    type PointReader: PointReader;

    /// The last commit that the view shows: exactly the commits up to this version are visible.
    fn version(&self) -> Version;

    /// A cursor confined to `bounds`, not yet positioned. Naming the bounds lets a backend prune and read ahead.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor>;

    /// A reader of single keys, of every keyspace. Opening one may cost more than a read: reuse it.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn point_reader(&self) -> Result<Self::PointReader>;

    /// Calls `visitor` with the value of one key; `None` if the key does not exist. For several keys, use a
    /// [`point_reader`](Self::point_reader).
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let mut reader = self.point_reader()?;
        reader.load(&[(keyspace, key)])?;
        Ok(reader.loaded(0).map(visitor))
    }

    /// Calls `visitor` with the keys and values within `bounds`, in ascending order, until it breaks; returns what it
    /// breaks with. On some backends this costs less than opening a [`cursor`](Self::cursor).
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        mut visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        let mut cursor = self.cursor(keyspace, bounds)?;
        let mut more = cursor.seek(Edge::First)?;
        while let Some((key, value)) = cursor.current().filter(|_| more) {
            if let ControlFlow::Break(broken) = visitor(key, value) {
                return Ok(Some(broken));
            }
            more = cursor.step_forward()?;
        }
        Ok(None)
    }

    /// The number of keys within `bounds`. A backend that counts by stepping calls `should_continue` with the number of
    /// keys counted so far before it counts another, and returns `None` once that returns false.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        count_steps(&mut self.cursor(keyspace, bounds)?, should_continue)
    }
}

/// Counts the entries within a cursor's bounds by stepping over them.
///
/// # Errors
///
/// As the backend's storage fails.
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

/// A position in a range of keys. `seek` and `step_*` move and return whether there is an entry; `current` lends it.
///
/// Moving and reading are two calls because a lending `next() -> Option<(&[u8], &[u8])>` cannot be returned out of a loop
/// that skips rows (the borrow checker's "problem case 3"), which is what every filter does.
///
/// Off either end, and after an error, the cursor has no position: `current` is `None`, a step returns `false`, and only
/// `seek` positions it again.
pub trait Cursor {
    /// Moves to the entry that `edge` names, within the bounds. Costs a descent of the tree.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool>;

    /// Moves to the next greater key.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn step_forward(&mut self) -> Result<bool>;

    /// Moves to the next smaller key.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn step_back(&mut self) -> Result<bool>;

    /// The key and the value at the cursor's position, lent until it moves.
    fn current(&self) -> Option<(&[u8], &[u8])>;

    /// The value at the cursor's position, shared instead of copied. `None` if there is no position, and always on
    /// backends that hold no values in memory: copy what [`current`](Self::current) lends there.
    fn shared(&self) -> Option<Arc<[u8]>> {
        None
    }
}

/// A reader of single keys that keeps the values of its last load alive.
pub trait PointReader {
    /// Reads many keys, of any keyspaces, in one round. Sorted keys are cheapest; keys may repeat, and need not exist.
    /// [`loaded`](Self::loaded)`(i)` then lends the value of `keys[i]` until the next `load`.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails; nothing is loaded then.
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()>;

    /// The value of the key at that index of the last [`load`](Self::load); `None` if the key does not exist, or the index
    /// is out of range.
    fn loaded(&self, index: usize) -> Option<&[u8]>;

    /// The same value, shared instead of copied; `None` where [`Cursor::shared`] is.
    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        let _ = index;
        None
    }
}
