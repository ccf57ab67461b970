use super::CountCache;
use crate::Keyspace;

/// The keys that a transaction writes, as counts need to know them.
#[derive(Default)]
pub(crate) struct NotedKeys {
    keyspaces: Vec<(Keyspace, Noted)>,
}

/// What is known of the keys of one keyspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// These, end to end.
    Keys(Run),
    /// Any of them may be written.
    Any,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Of more keys it is not told where they lie: they would take more room than the counts, and longer than a millisecond.
pub(super) const MOST: usize = if cfg!(test) { 16 } else { 4_096 };

impl NotedKeys {
    /// Notes a key that is written.
    #[inline]
    pub(crate) fn note(&mut self, counts: &CountCache, keyspace: Keyspace, key: &[u8]) {
        match self.of(counts, keyspace) {
            Some(Noted::Keys(run)) if run.ends.len() < MOST => run.push(key),
            Some(noted) => *noted = Noted::Any,
            None => {}
        }
    }

    /// Notes that any key of a keyspace may be written.
    pub(crate) fn note_any(&mut self, keyspace: Keyspace) {
        self.keyspaces.retain(|(noted, _)| *noted != keyspace);
        self.keyspaces.push((keyspace, Noted::Any));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    #[inline]
    fn of(&mut self, counts: &CountCache, keyspace: Keyspace) -> Option<&mut Noted> {
        // Most keys are of the keyspace of the one before.
        let known = self.keyspaces.iter().rposition(|(noted, _)| *noted == keyspace);
        let at = known.unwrap_or_else(|| {
            // Of a keyspace that nobody counted, single keys tell nothing.
            let noted = if counts.is_counted(keyspace) { Noted::Keys(Run::default()) } else { Noted::Any };
            self.keyspaces.push((keyspace, noted));
            self.keyspaces.len() - 1
        });
        self.keyspaces.get_mut(at).map(|(_, noted)| noted)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (Keyspace, &Noted)> {
        self.keyspaces.iter().map(|(keyspace, noted)| (*keyspace, noted))
    }
}

impl Run {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.bytes.get(start..*end))
    }
}
