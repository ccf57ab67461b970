//! Who may still conflict with whom: the transactions that are open, and what has vanished since they began.
//!
//! Whether a key changed is seen by comparing two roots: every put makes a value of its own, so the same value means that
//! nobody wrote. Only a key that is in neither root may have been there in between. Such keys are noted here, for
//! as long as a transaction is open that began before they vanished.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{key::Key, value::Stamp};
use crate::Keyspace;

/// The most memory, in bytes, that the notes on vanished keys may take. Beyond it the oldest are forgotten, and
/// transactions from before then conflict where they would need them.
const BUDGET: usize = 64 << 20;

/// What one note costs beyond its key's own bytes: the key and its keyspace twice, in the map and in the queue.
const NOTE: usize = 128;

#[derive(Default)]
pub(super) struct OpenTransactions {
    /// The sequence numbers of the commits they read, in order, and how many read each.
    open: VecDeque<(u64, usize)>,
    deleted: HashMap<Keyspace, BTreeMap<Key, u64>>,
    /// The notes in `deleted`, oldest first, by the sequence number of the commit that deleted.
    order: VecDeque<(u64, Keyspace, Key)>,
    cost: usize,
    dropped: BTreeMap<Keyspace, u64>,
    /// How many were ever opened.
    opened: Stamp,
    /// Deletions of this commit and those before it may have been forgotten.
    forgotten: u64,
}

impl OpenTransactions {
    /// Notes one that reads the commit `base`, which is not before that of any other; gives it a number of its own.
    pub(super) fn opened(&mut self, base: u64) -> Stamp {
        match self.open.back_mut() {
            Some((last, count)) if *last == base => *count += 1,
            _ => self.open.push_back((base, 1)),
        }
        self.opened += 1;
        self.opened
    }

    pub(super) fn closed(&mut self, base: u64) {
        let Ok(place) = self.open.binary_search_by_key(&base, |(open, _)| *open) else { return };
        if let Some((_, count)) = self.open.get_mut(place) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(place);
                self.forget_what_nobody_asks();
            }
        }
    }

    /// Whether no transaction is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn deleted(&mut self, sequence: u64, keyspace: Keyspace, key: &Key) {
        self.deleted.entry(keyspace).or_default().insert(key.clone(), sequence);
        self.order.push_back((sequence, keyspace, key.clone()));
        self.cost = self.cost.saturating_add(cost(key));
        while self.cost > BUDGET
            && let Some(oldest) = self.forget_oldest()
        {
            self.forgotten = oldest;
        }
    }

    pub(super) fn dropped(&mut self, sequence: u64, keyspace: Keyspace) {
        self.dropped.insert(keyspace, sequence);
    }

    /// Whether a key that is there neither at commit `base` nor now was there in between, as far as is remembered.
    pub(super) fn may_have_vanished(&self, base: u64, keyspace: Keyspace, key: &Key) -> bool {
        base < self.forgotten
            || self.deleted.get(&keyspace).and_then(|keys| keys.get(key)).is_some_and(|deleted| *deleted > base)
    }

    pub(super) fn was_dropped(&self, base: u64, keyspace: Keyspace) -> bool {
        self.dropped.get(&keyspace).is_some_and(|dropped| *dropped > base)
    }

    fn forget_what_nobody_asks(&mut self) {
        if self.order.is_empty() && self.dropped.is_empty() && self.forgotten == 0 {
            return;
        }
        let Some(&(oldest, _)) = self.open.front() else {
            // Stamps tell puts apart for as long as there are any: they are never given twice.
            *self = Self { opened: self.opened, ..Self::default() };
            return;
        };
        while self.order.front().is_some_and(|(sequence, ..)| *sequence <= oldest) {
            self.forget_oldest();
        }
        self.dropped.retain(|_, sequence| *sequence > oldest);
    }

    fn forget_oldest(&mut self) -> Option<u64> {
        let (sequence, keyspace, key) = self.order.pop_front()?;
        self.cost = self.cost.saturating_sub(cost(&key));
        // A later deletion of the same key has a note of its own further on.
        if let Some(keys) = self.deleted.get_mut(&keyspace)
            && keys.get(&key) == Some(&sequence)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.deleted.remove(&keyspace);
            }
        }
        Some(sequence)
    }
}

fn cost(key: &Key) -> usize {
    NOTE + key.as_slice().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Keyspace = Keyspace(1);

    #[test]
    fn a_deletion_is_remembered_while_somebody_older_is_open() {
        let mut open = OpenTransactions::default();
        open.opened(3);
        open.opened(5);
        let key = Key::new(b"k");
        open.deleted(4, A, &key);
        open.dropped(4, Keyspace(2));
        assert!(open.may_have_vanished(3, A, &key) && !open.may_have_vanished(5, A, &key));
        assert!(open.was_dropped(3, Keyspace(2)) && !open.was_dropped(5, Keyspace(2)));
        open.closed(3);
        assert_eq!((open.order.len(), open.deleted.len(), open.dropped.len(), open.cost), (0, 0, 0, 0));
        open.closed(5);
        assert!(open.is_empty());
    }

    #[test]
    fn no_two_transactions_have_one_stamp_whatever_is_forgotten() {
        let mut open = OpenTransactions::default();
        let first = open.opened(0);
        open.deleted(1, A, &Key::new(b"k"));
        open.closed(0);
        assert!(open.order.is_empty() && open.opened(1) > first);
    }

    #[test]
    fn beyond_its_budget_it_forgets_and_then_suspects_everybody_older() {
        let mut open = OpenTransactions::default();
        open.opened(0);
        let long = vec![0; 60 << 10];
        for sequence in 1..=2_000u64 {
            open.deleted(sequence, A, &Key::new(&[&sequence.to_be_bytes()[..], &long].concat()));
        }
        assert!(open.cost <= BUDGET);
        let untouched = Key::new(b"untouched");
        assert!(open.may_have_vanished(0, A, &untouched), "who began before the forgotten ones conflicts");
        assert!(!open.may_have_vanished(1_999, A, &untouched));
        open.closed(0);
        assert_eq!(open.forgotten, 0);
    }
}
