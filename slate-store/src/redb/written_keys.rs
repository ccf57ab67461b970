use super::open::Opened;
use crate::{Keyspace, counts::NotedKeys, moments::Writing};

/// The keys that a transaction wrote, as what is kept of what was read needs to know them.
#[derive(Default)]
pub(super) struct WrittenKeys {
    rows: Rows,
    counts: NotedKeys,
}

/// As the cache of rows knows them.
#[derive(Debug, PartialEq, Eq)]
enum Rows {
    /// Those of these hashes.
    Hashed(Vec<u64>),
    /// Ranges, of which nobody knows what was in them.
    Any,
}

/// More keys than the cache has rows, as a rule, are as good as any: 2 MiB of hashes.
const MOST: usize = 1 << 18;

impl WrittenKeys {
    #[inline]
    pub(super) fn note(&mut self, opened: &Opened, keyspace: Keyspace, key: &[u8]) {
        self.rows.note(opened.kept.rows.hash(keyspace, key));
        self.counts.note(&opened.kept.counts, keyspace, key);
    }

    /// Notes a range of a keyspace.
    pub(super) fn note_range(&mut self, keyspace: Keyspace) {
        self.rows = Rows::Any;
        self.counts.note_any(keyspace);
    }

    /// Notes the commit that writes them, before anybody can see it: see [`Moments::begin`](crate::moments::Moments::begin).
    pub(super) fn writing<'o>(&self, opened: &'o Opened) -> Writing<'o> {
        match &self.rows {
            Rows::Hashed(hashes) => opened.kept.writing(hashes, &self.counts),
            Rows::Any => opened.kept.writing_any(&self.counts),
        }
    }
}

impl Default for Rows {
    fn default() -> Self {
        Self::Hashed(Vec::new())
    }
}

impl Rows {
    fn note(&mut self, hash: u64) {
        match self {
            Self::Hashed(hashes) if hashes.len() == MOST => *self = Self::Any,
            Self::Hashed(hashes) => hashes.push(hash),
            Self::Any => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_kept_or_counts_as_any() {
        let mut rows = Rows::default();
        (0..7).for_each(|hash| rows.note(hash));
        assert_eq!(rows, Rows::Hashed((0..7).collect()));
        (7..u64::try_from(MOST).unwrap()).for_each(|hash| rows.note(hash));
        assert!(matches!(&rows, Rows::Hashed(hashes) if hashes.len() == MOST));
        rows.note(0);
        assert_eq!(rows, Rows::Any);
        rows.note(0);
        assert_eq!(rows, Rows::Any);
    }
}
