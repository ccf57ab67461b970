use slate_query::{
    pipeline::Join,
    raw::{Doc, OwnedValue},
};

use super::{
    join_stages::JoinValue,
    join_table::{ENTRY, JoinTable},
};

/// Documents of the input that are joined by one query.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) batch: Vec<Box<[u8]>>,
    /// The position in the batch of the next input document.
    pub(super) next: usize,
    /// Documents that were read and are not yet joined, the last to be joined first.
    pub(super) pending: Vec<Box<[u8]>>,
    /// Whether an index finds the matches. Otherwise each batch reads the other collection.
    pub(super) is_indexed: bool,
    /// The number of documents in all batches. `None` after the other collection proved to exceed the memory.
    pub(super) joined: Option<u64>,
    /// The matches of the values of the batch.
    pub(super) table: JoinTable,
    /// The values of the batch, each once, if an index finds their matches.
    pub(super) values: Vec<JoinValue<OwnedValue>>,
    /// The memory of the batch before it is joined, in bytes.
    pub(super) memory: usize,
    /// Whether the batch is one document with more than [`MOST_VALUES`] values.
    pub(super) has_many_values: bool,
    key: Vec<u8>,
}

/// Number of documents in the first batch if an index finds the matches.
const FIRST_BATCH: usize = 128;

/// Number of documents in each later batch if an index finds the matches.
const BATCH: usize = 1_024;

/// About how many bytes a document of a batch takes in addition to its own.
const DOCUMENT: usize = 64;

/// About how many bytes a value takes that an index is searched for: itself, as a part of the condition, and its bounds.
const SEARCHED: usize = 192;

/// The most values of one document that an index is searched for: they take 16 MiB. For a document with more of them, all documents
/// of the other collection are read.
const MOST_VALUES: usize = (16 << 20) / (SEARCHED + ENTRY);

/// The fewest bytes of an element of an array: its type, its name of one digit, and no value.
const SHORTEST_ELEMENT: usize = 3;

impl Batches {
    pub(super) fn new(is_indexed: bool) -> Self {
        Self {
            batch: Vec::new(),
            next: 0,
            pending: Vec::new(),
            is_indexed,
            joined: Some(0),
            table: JoinTable::default(),
            values: Vec::new(),
            memory: 0,
            has_many_values: false,
            key: Vec::new(),
        }
    }

    /// Returns the maximum number of documents in the next batch.
    pub(super) fn most(&self) -> usize {
        match (self.is_indexed, self.joined) {
            (false, _) => usize::MAX,
            (true, Some(0)) => FIRST_BATCH,
            (true, _) => BATCH,
        }
    }

    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.next = 0;
        self.table.clear();
        self.values.clear();
        self.memory = 0;
        self.has_many_values = false;
    }

    /// Adds a document to the batch. Returns `false` if the batch is complete: a document with more than [`MOST_VALUES`] values is a batch of
    /// its own, without its values, and is pending if the batch has others.
    pub(super) fn add(&mut self, join: &Join, document: Box<[u8]>) -> bool {
        let has_many_values = has_many_values(join, &document);
        if has_many_values && !self.batch.is_empty() {
            self.pending.push(document);
            return false;
        }
        self.memory += document.len() + DOCUMENT;
        if !has_many_values {
            join.visit_local(Doc::new(&document), &mut |value| {
                if let Some(key) = self.table.want(value, &mut self.key) {
                    self.memory += ENTRY + key.len();
                    if self.is_indexed {
                        self.memory += SEARCHED;
                        self.values.push((key, value.to_owned()));
                    }
                }
            });
        }
        self.batch.push(document);
        self.has_many_values = has_many_values;
        !has_many_values
    }

    /// Reduces the batch to its first half. The rest is pending.
    pub(super) fn halve(&mut self, join: &Join) {
        let half = self.batch.split_off(self.batch.len().div_ceil(2));
        self.pending.extend(half.into_iter().rev());
        let batch = std::mem::take(&mut self.batch);
        self.clear();
        batch.into_iter().for_each(|document| {
            self.add(join, document);
        });
    }

    pub(super) fn count_joined(&mut self, documents: usize) {
        let documents = u64::try_from(documents).unwrap_or(u64::MAX);
        self.joined = self.joined.map(|joined| joined.saturating_add(documents));
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.batch.get(self.next.checked_sub(1)?).map(|document| Doc::new(document))
    }
}

fn has_many_values(join: &Join, document: &[u8]) -> bool {
    if document.len() / SHORTEST_ELEMENT <= MOST_VALUES {
        return false;
    }
    let mut values = 0;
    join.visit_local(Doc::new(document), &mut |_| values += 1);
    values > MOST_VALUES
}
