use std::{ops::ControlFlow, sync::Arc};

use crate::{Bounds, Edge, Estimate, Keyspace, Result};

/// A view that owns what it needs, so that it and all it opens may be kept and sent anywhere.
///
/// Implemented by whatever qualifies; a backend writes [`View`] only.
pub trait Snapshot: View<Cursor: Send + 'static, Points: Send + 'static> + Send + Sync + 'static {}

impl<V> Snapshot for V where V: View<Cursor: Send + 'static, Points: Send + 'static> + Send + Sync + 'static {}

/// Something to read: a snapshot, or a transaction with its own writes laid over its snapshot.
///
/// What an executor is generic over. Its cursor and points are plain associated types, not generic ones: a snapshot's own
/// everything they need (`'static`), a transaction's borrow the transaction. Cloning a view is cheap and reads the same.
pub trait View: Clone {
    /// A place in a range of keys.
    type Cursor: Cursor;
    /// A reader of single keys.
    type Points: Points;

    /// A cursor confined to `bounds`, standing nowhere. Naming the bounds lets a backend prune and read ahead.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor>;

    /// A reader of single keys. Open one per keyspace and keep it: opening may cost more than a read.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn points(&self, keyspace: Keyspace) -> Result<Self::Points>;

    /// Hands the value of one key to `see`; `None` where it is not there. For one read only: for several, open
    /// [`points`](Self::points).
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn get<R>(&self, keyspace: Keyspace, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.points(keyspace)?.get(key)?.map(see))
    }

    /// Hands over the keys and values within `bounds`, in order, until `see` breaks; what it breaks with. For a walk forwards
    /// that nobody leaves and comes back to, which on some backends costs less than a [`cursor`](Self::cursor) does to open.
    /// Costs a descent, and a step for each entry.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn each<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        let mut cursor = self.cursor(keyspace, bounds)?;
        let mut more = cursor.seek(Edge::First)?;
        while let Some((key, value)) = cursor.current().filter(|_| more) {
            if let ControlFlow::Break(broken) = see(key, value) {
                return Ok(Some(broken));
            }
            more = cursor.step_forward()?;
        }
        Ok(None)
    }

    /// How many keys lie within `bounds`: counted up to `cap`, and "at least" beyond it. The answer is the same on every
    /// backend. Costs a seek and at most `cap` steps; on some backends less.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        count(&mut self.cursor(keyspace, bounds)?, cap)
    }

    /// How many keys lie within `bounds`. A backend that cannot tell at once asks `go_on` before each step that it takes from
    /// key to key, and gives up where that says no: `None`.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        count_steps(&mut self.cursor(keyspace, bounds)?, go_on)
    }

    /// The bytes of all keys and values in a keyspace, without what the backend takes to hold them. Costs a walk over all
    /// of it, unless the backend keeps count.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn bytes(&self, keyspace: Keyspace) -> Result<u64> {
        let mut bytes = 0_u64;
        self.each(keyspace, Bounds::ALL, |key, value| -> ControlFlow<()> {
            bytes = bytes.saturating_add(u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX));
            ControlFlow::Continue(())
        })?;
        Ok(bytes)
    }
}

/// Counts the entries of a cursor's range, up to `cap`.
pub(crate) fn count(cursor: &mut impl Cursor, cap: u64) -> Result<Estimate> {
    let mut more = cursor.seek(Edge::First)?;
    for counted in 0..cap {
        if !more {
            return Ok(Estimate::Exact(counted));
        }
        more = cursor.step_forward()?;
    }
    Ok(if more { Estimate::AtLeast(cap) } else { Estimate::Exact(cap) })
}

/// Counts the entries of a cursor's range, for as long as `go_on` says so before each.
pub(crate) fn count_steps(cursor: &mut impl Cursor, mut go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
    let (mut counted, mut more) = (0, cursor.seek(Edge::First)?);
    while more {
        if !go_on() {
            return Ok(None);
        }
        counted += 1;
        more = cursor.step_forward()?;
    }
    Ok(Some(counted))
}

/// A place in a range of keys. `seek` and `step_*` move and say whether there is an entry; `current` lends it.
///
/// Move and look are two calls because a lending `next() -> Option<(&[u8], &[u8])>` cannot be returned out of a loop that
/// skips rows (the borrow checker's "problem case 3"), which is what every filter does.
///
/// Off either end, or after an error, the cursor stands nowhere: `current` is `None`, a step answers `false`, and only
/// `seek` returns.
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

    /// The key and the value where the cursor stands, lent until it moves.
    fn current(&self) -> Option<(&[u8], &[u8])>;

    /// The value alone, which may be had for less.
    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.current().map(|(_, value)| value)
    }

    /// The value where the cursor stands, to be kept for as long as one likes at the cost of a count. `None` off either
    /// end, and always on backends that hold no values in memory: there, copy what [`current`](Self::current) lends.
    fn shared(&self) -> Option<Arc<[u8]>> {
        None
    }
}

/// A reader of single keys that keeps alive what it last read.
pub trait Points {
    /// The value of `key`, lent until the next call.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>>;

    /// Reads many keys in one round; sorted keys are cheapest. Keys may repeat and may be missing.
    /// [`loaded`](Self::loaded)`(i)` then lends the value of `keys[i]`, until the next `load`.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails; nothing is loaded then.
    fn load(&mut self, keys: &[&[u8]]) -> Result<()>;

    /// The value of the last [`load`](Self::load)'s key of that index; `None` where there was none, or no such index.
    fn loaded(&self, index: usize) -> Option<&[u8]>;

    /// What [`loaded`](Self::loaded) lends, to be kept; `None` where [`Cursor::shared`] says so.
    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        let _ = index;
        None
    }
}
