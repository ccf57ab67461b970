use std::collections::HashMap;

use ahash::RandomState;
use slate_query::{
    pipeline::Join,
    raw::{Doc, SmallBytes, Value},
    work,
};

use crate::{Result, spill::sort_counted};

/// A hash table over another collection: the numbers of its documents, by the values that join them.
#[derive(Debug, Default)]
pub(super) struct JoinTable {
    /// The numbers of the documents with a value, in ascending order, by the key of the value.
    numbers: HashMap<SmallBytes, Vec<usize>, RandomState>,
    /// The memory of the entries that were added, in bytes.
    memory: usize,
}

/// About how many bytes an entry takes in addition to its key.
pub(super) const ENTRY: usize = 64;

/// Maximum number of lists that are gathered for one document before repeated ones are removed: 16 KiB.
const MOST_LISTS: usize = 1_024;

impl JoinTable {
    /// Returns the memory of the added entries, in bytes, without the keys of [wanted](Self::want) values.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Adds a document of the other collection under each value of its joined field. Documents are added in the order of their numbers.
    pub(super) fn add(&mut self, join: &Join, document: Doc<'_>, number: usize, key: &mut Vec<u8>) -> Result<()> {
        work::take_copied(document.bytes().len())?;
        join.visit_foreign_keys(document, key, &mut |key| {
            self.memory += ENTRY + key.len();
            let numbers = match self.numbers.get_mut(key) {
                Some(numbers) => numbers,
                None => self.numbers.entry(key.into()).or_default(),
            };
            push_once(numbers, number);
        });
        Ok(())
    }

    /// Marks a value as wanted by [`add_wanted`](Self::add_wanted). Returns its key if it was not marked before.
    pub(super) fn want(&mut self, value: Value<'_>, key: &mut Vec<u8>) -> Option<SmallBytes> {
        encode(value, key);
        if self.numbers.contains_key(key.as_slice()) {
            return None;
        }
        let key = SmallBytes::from(key.as_slice());
        self.numbers.insert(key.clone(), Vec::new());
        Some(key)
    }

    /// Adds a document of the other collection under each [wanted](Self::want) value of its joined field. Returns whether it has one.
    pub(super) fn add_wanted(
        &mut self,
        join: &Join,
        document: Doc<'_>,
        number: usize,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        work::take_copied(document.bytes().len())?;
        let mut is_wanted = false;
        join.visit_foreign_keys(document, key, &mut |key| {
            if let Some(numbers) = self.numbers.get_mut(key) {
                is_wanted = true;
                self.memory += push_once(numbers, number);
            }
        });
        Ok(is_wanted)
    }

    /// Replaces `matches` by the numbers of the documents that a local document is equal to, in ascending order.
    pub(super) fn find(
        &self,
        join: &Join,
        document: Doc<'_>,
        key: &mut Vec<u8>,
        matches: &mut Vec<usize>,
    ) -> Result<()> {
        matches.clear();
        work::take_copied(document.bytes().len())?;
        // Most documents have one value, whose list needs no allocation.
        let (mut first, mut others): (&[usize], Vec<&[usize]>) = (&[], Vec::new());
        let (mut most, mut sorted) = (MOST_LISTS, Ok(()));
        join.visit_local(document, &mut |value| {
            encode(value, key);
            match self.numbers.get(key.as_slice()).filter(|numbers| !numbers.is_empty()) {
                Some(numbers) if first.is_empty() => first = numbers,
                Some(numbers) if others.last().unwrap_or(&first).as_ptr() == numbers.as_ptr() => {}
                Some(numbers) => others.push(numbers),
                None => {}
            }
            if others.len() >= most && sorted.is_ok() {
                sorted = keep_different(&mut others);
                most = 2 * others.len().max(MOST_LISTS);
            }
        });
        sorted?;
        matches.extend_from_slice(first);
        keep_different(&mut others)?;
        others.retain(|numbers| numbers.as_ptr() != first.as_ptr());
        for numbers in &others {
            work::take(numbers.len())?;
            matches.extend_from_slice(numbers);
        }
        if !others.is_empty() {
            sort_counted(matches, &mut Vec::new(), usize::cmp)?;
            matches.dedup();
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.memory = 0;
    }
}

/// Removes repeated lists. An array can have the same value many times, and equal values have one list.
fn keep_different(lists: &mut Vec<&[usize]>) -> Result<()> {
    sort_counted(lists, &mut Vec::new(), |a, b| a.as_ptr().cmp(&b.as_ptr()))?;
    lists.dedup_by_key(|numbers| numbers.as_ptr());
    Ok(())
}

/// Adds a number, unless it is the last of the list. Returns the memory that it takes, in bytes.
fn push_once(numbers: &mut Vec<usize>, number: usize) -> usize {
    if numbers.last() == Some(&number) {
        return 0;
    }
    numbers.push(number);
    size_of::<usize>()
}

/// Replaces `key` by the key of a value.
pub(super) fn encode(value: Value<'_>, key: &mut Vec<u8>) {
    key.clear();
    slate_query::key::encode(value, key);
}
