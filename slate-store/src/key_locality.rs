//! Key locality: ascending keys that are close together are read by stepping a cursor from one to the next, which is
//! cheaper than a lookup for each.

use crate::{Keyspace, Result};

/// Minimum number of keys to read by stepping. Finding out how close fewer keys are costs as much as a few lookups.
const MIN_KEYS: usize = 8;

/// Maximum steps per key. More steps cost about as much as a lookup.
pub(crate) const STEPS_PER_KEY: usize = 4;

/// How close together the keys of earlier loads were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyLocality {
    /// Close, or not known yet.
    #[default]
    Near,
    Far,
}

impl KeyLocality {
    /// Returns whether reading these keys by stepping is worth a try.
    pub(crate) fn allows_stepping(self, keys: &[(Keyspace, &[u8])]) -> bool {
        self == Self::Near && keys.len() >= MIN_KEYS
    }
}

/// A forward walk over the entries of one keyspace.
pub(crate) trait SteppedCursor {
    /// Returns the current key; `None` after the last entry.
    fn key(&self) -> Option<&[u8]>;

    /// Moves to the next entry.
    fn step(&mut self) -> Result<()>;

    /// Steps forward to the first key at or after `key`, and subtracts the steps from `steps`. Returns `false` if none
    /// are left before that key.
    fn step_to(&mut self, key: &[u8], steps: &mut usize) -> Result<bool> {
        while self.key().is_some_and(|current| current < key) {
            if *steps == 0 {
                return Ok(false);
            }
            *steps -= 1;
            self.step()?;
        }
        Ok(true)
    }
}
