use std::collections::HashMap;

use ahash::RandomState;
use slate_query::{
    filter::Filter,
    pattern::Direction,
    pipeline::{Join, Lookup, Stage},
    raw::{Doc, Kind, SmallBytes, Value, Writer},
};
use slate_store::View;

use super::foreign::Foreign;
use crate::{
    Result,
    exec::{
        Resources,
        meter::Meter,
        packed::Packed,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::{self, Optimization},
};

/// Documents with their matches in another collection.
///
/// For an equality of fields, the other collection is read into a hash table if it has no index on its field or is
/// small. If it has an index or exceeds the memory limit, the documents are joined in batches: one query finds the
/// matches of all documents of a batch. With a pipeline, each document needs its own query, unless all have the same
/// matches.
pub(crate) struct LookupRows<'v, V: View> {
    input: BoxedRows<'v>,
    lookup: Lookup,
    foreign: Foreign<V>,
    strategy: Strategy<'v>,
    /// The matching documents of the other collection, as far as they are in memory.
    documents: Packed,
    /// The numbers of the documents in memory that the current document is joined with.
    matches: Vec<usize>,
    /// How many equal, consecutive documents the input's current document stands for.
    times: u64,
    /// How many of the matches were returned, if the stage returns a document per match.
    returned: usize,
    row: Vec<u8>,
    has_row: bool,
    scratch: Vec<u8>,
    interrupt: Interrupt,
}

/// How matches are found.
enum Strategy<'v> {
    Undecided,
    /// Every document has all of the documents in memory.
    Constant,
    Hash(HashMap<SmallBytes, Vec<usize>, RandomState>),
    Batches(Batches),
    /// A query per document. Contains the rows of the current document's query, if the stage returns a document per
    /// match.
    PerDocument(Option<BoxedRows<'v>>),
}

/// Documents of the input that are joined by one query.
struct Batches {
    batch: Vec<(Box<[u8]>, Vec<usize>)>,
    /// The position in the batch of the next input document.
    next: usize,
    /// Documents that were read and are not yet joined, the last to be joined first.
    pending: Vec<Box<[u8]>>,
    /// Whether an index finds the matches. Otherwise each batch reads the other collection.
    is_indexed: bool,
    /// The number of documents in all batches. `None` after the other collection proved to exceed the memory.
    joined: Option<u64>,
}

/// Number of documents in the first batch if an index finds the matches.
const FIRST_BATCH: usize = 128;

/// Number of documents in each later batch if an index finds the matches.
const BATCH: usize = 1_024;

/// A collection with fewer records than this many times the joined documents is read into a hash table, even if it has an index:
/// reading a record in order is cheaper than finding it by an index.
const HASH_RATIO: u64 = 8;

impl<'v, V: View + 'v> LookupRows<'v, V> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        lookup: Lookup,
        optimization: Optimization,
        view: &V,
        resources: &Resources,
        meter: &Meter,
    ) -> Self {
        let foreign = Foreign::new(lookup.from(), optimization, view, resources, meter);
        let strategy = match optimization {
            // Hashes and batches compare strings by their bytes.
            Optimization::On if lookup.collation().is_none() => Strategy::Undecided,
            _ => Strategy::PerDocument(None),
        };
        Self {
            input,
            lookup,
            foreign,
            strategy,
            documents: Packed::default(),
            matches: Vec::new(),
            times: 0,
            returned: 0,
            row: Vec::new(),
            has_row: false,
            scratch: Vec::new(),
            interrupt: resources.interrupt.clone(),
        }
    }

    fn next_row(&mut self, most: u64) -> Result<bool> {
        loop {
            self.interrupt.tick()?;
            if self.lookup.is_unwound() && self.next_match()? {
                return Ok(true);
            }
            if !self.next_document(most)? {
                return Ok(false);
            }
            self.returned = 0;
            if !self.lookup.is_unwound() {
                self.write_array()?;
                return Ok(true);
            }
        }
    }

    /// Writes the document for the next match of the current document.
    fn next_match(&mut self) -> Result<bool> {
        let is_found = match &mut self.strategy {
            Strategy::PerDocument(Some(rows)) => rows.advance()?,
            _ => self.returned < self.matches.len(),
        };
        let (document, found) = match &self.strategy {
            Strategy::PerDocument(Some(rows)) => (self.input.current(), rows.current().map(Doc::bytes)),
            strategy => {
                let found = self.matches.get(self.returned).and_then(|number| self.documents.get(*number));
                let batched = if let Strategy::Batches(batches) = strategy { Some(batches.current()) } else { None };
                (batched.unwrap_or_else(|| self.input.current()), found)
            }
        };
        let (true, Some(document), Some(found)) = (is_found, document, found) else { return Ok(false) };
        self.returned += 1;
        self.lookup.write(document, Value::new(Kind::Document, found), &mut self.scratch, &mut self.row);
        Ok(true)
    }

    /// Writes the current document with all its matches.
    fn write_array(&mut self) -> Result<()> {
        let (mut array, mut bytes) = (Writer::new(), 0);
        for (place, number) in self.matches.iter().enumerate() {
            let document = self.documents.get(*number).unwrap_or_default();
            bytes += document.len();
            self.lookup.check_size(bytes)?;
            array.append(place.to_string().as_bytes(), Value::new(Kind::Document, document));
        }
        let array = array.finish();
        let document = match &self.strategy {
            Strategy::Batches(batches) => batches.current(),
            _ => self.input.current(),
        };
        if let Some(document) = document {
            self.lookup.write(document, Value::new(Kind::Array, &array), &mut self.scratch, &mut self.row);
        }
        Ok(())
    }

    /// Moves to the next document of the input, or past `most` equal documents, and finds its matches.
    fn next_document(&mut self, most: u64) -> Result<bool> {
        match &mut self.strategy {
            Strategy::Undecided => return self.first_document(most),
            Strategy::Batches(_) => return self.next_in_batch(most),
            // Ends the query for the previous document.
            Strategy::PerDocument(rows) => *rows = None,
            Strategy::Constant | Strategy::Hash(_) => {}
        }
        self.times = self.input.advance_run(most)?;
        self.find_matches()
    }

    /// Moves to the first document of the input, chooses how to find matches, and finds its matches. If the input is
    /// empty, does not read the other collection.
    fn first_document(&mut self, most: u64) -> Result<bool> {
        self.times = u64::from(self.input.advance()?);
        if self.times == 0 {
            return Ok(false);
        }
        self.decide()?;
        if let (Strategy::Batches(batches), Some(first)) = (&mut self.strategy, self.input.current()) {
            batches.pending.push(first.bytes().into());
            return self.next_in_batch(most);
        }
        self.find_matches()
    }

    /// Finds the matches of the input's current document, unless all documents have the same matches. Returns `false` if the
    /// input has no current document.
    fn find_matches(&mut self) -> Result<bool> {
        let Some(document) = self.input.current().filter(|_| self.times > 0) else { return Ok(false) };
        match (&mut self.strategy, self.lookup.join()) {
            (Strategy::Hash(table), Some(join)) => {
                find(join, document, table, &mut self.scratch, &mut self.matches);
            }
            (Strategy::PerDocument(rows), join) => {
                let stages = stages(&self.lookup, join, document)?;
                let mut found = self.foreign.open(stages)?;
                if self.lookup.is_unwound() {
                    *rows = Some(found);
                } else {
                    self.documents.clear();
                    let mut bytes = 0;
                    while found.advance()? {
                        let Some(document) = found.current() else { break };
                        bytes += document.bytes().len();
                        self.lookup.check_size(bytes)?;
                        self.documents.push(document.bytes());
                    }
                    self.matches.clear();
                    self.matches.extend(0..self.documents.len());
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Chooses how to find matches.
    fn decide(&mut self) -> Result<()> {
        if self.lookup.is_constant() && self.read_once()? {
            self.strategy = Strategy::Constant;
            return Ok(());
        }
        self.strategy = match self.lookup.join() {
            Some(join) if !self.lookup.has_pipeline() => {
                // Some indexes have no entries for missing values, so the check for an index uses a number and a string.
                let values = [Value::new(Kind::Int32, &[0; 4]), Value::new(Kind::String, &[1, 0, 0, 0, 0])];
                let filter = equality(&self.lookup, join, values.into_iter())?;
                let is_indexed = filter.is_some_and(|filter| self.foreign.is_indexed(join.foreign(), &filter));
                match if is_indexed { None } else { self.read_all()? } {
                    Some(table) => Strategy::Hash(table),
                    None => Strategy::Batches(Batches::new(is_indexed)),
                }
            }
            _ => Strategy::PerDocument(None),
        };
        Ok(())
    }

    /// Reads the matches, which are the same for every document. Returns `false` if they exceed the memory.
    fn read_once(&mut self) -> Result<bool> {
        let mut rows = self.foreign.open(self.lookup.stages(Doc::EMPTY)?)?;
        while rows.advance()? {
            let Some(document) = rows.current() else { break };
            self.documents.push(document.bytes());
            if self.documents.memory() > self.foreign.memory_limit() {
                self.documents.clear();
                return Ok(false);
            }
        }
        self.matches.extend(0..self.documents.len());
        Ok(true)
    }

    /// Reads the other collection into a hash table. Returns `None` if it exceeds the memory.
    fn read_all(&mut self) -> Result<Option<HashMap<SmallBytes, Vec<usize>, RandomState>>> {
        let Some(join) = self.lookup.join() else { return Ok(None) };
        let mut table: HashMap<SmallBytes, Vec<usize>, RandomState> = HashMap::default();
        let (mut key, mut used) = (Vec::new(), 0);
        // Matches are in the order of `_id`, as in batches. Only the documents of a view must be sorted for this.
        let order = match self.foreign.is_view() {
            true => vec![Stage::Sort(plan::sort_by_id(Direction::Ascending)?)],
            false => Vec::new(),
        };
        let mut rows = self.foreign.open(order)?;
        self.documents.clear();
        while rows.advance()? {
            self.interrupt.tick()?;
            let Some(document) = rows.current() else { break };
            let number = self.documents.push(document.bytes());
            join.visit_foreign_keys(document, &mut key, &mut |key| {
                used += ENTRY + key.len();
                let numbers = match table.get_mut(key) {
                    Some(numbers) => numbers,
                    None => table.entry(key.into()).or_default(),
                };
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            });
            if self.documents.memory() + used > self.foreign.memory_limit() {
                self.documents.clear();
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    fn next_in_batch(&mut self, most: u64) -> Result<bool> {
        loop {
            let Strategy::Batches(batches) = &mut self.strategy else { return Ok(false) };
            if let Some((_, matches)) = batches.batch.get_mut(batches.next) {
                batches.next += 1;
                self.matches = std::mem::take(matches);
                self.times = 1;
                return Ok(true);
            }
            let is_small = match batches.joined {
                Some(joined @ 1..) if batches.is_indexed && batches.pending.is_empty() => {
                    self.foreign.has_fewer_records(joined.saturating_mul(HASH_RATIO))?
                }
                _ => false,
            };
            if is_small {
                if let Some(table) = self.read_all()? {
                    self.strategy = Strategy::Hash(table);
                    return self.next_document(most);
                }
                if let Strategy::Batches(batches) = &mut self.strategy {
                    batches.joined = None;
                }
            }
            if !self.fill_batch()? {
                return Ok(false);
            }
            self.join_batch()?;
        }
    }

    /// Reads the next batch of input documents. Returns `false` at the end of the input.
    fn fill_batch(&mut self) -> Result<bool> {
        let Strategy::Batches(batches) = &mut self.strategy else { return Ok(false) };
        let most = match (batches.is_indexed, batches.joined) {
            (false, _) => usize::MAX,
            (true, Some(0)) => FIRST_BATCH,
            (true, _) => BATCH,
        };
        batches.batch.clear();
        batches.next = 0;
        let mut bytes = 0;
        // The batch takes half of the memory; the other half is for the matches.
        while batches.batch.len() < most && bytes <= self.foreign.memory_limit() / 2 {
            self.interrupt.tick()?;
            let document: Box<[u8]> = match batches.pending.pop() {
                Some(document) => document,
                None if self.input.advance()? => self.input.current().map(Doc::bytes).unwrap_or_default().into(),
                None => break,
            };
            bytes += document.len() + ENTRY;
            batches.batch.push((document, Vec::new()));
        }
        batches.count_joined(u64::try_from(batches.batch.len()).unwrap_or(u64::MAX));
        Ok(!batches.batch.is_empty())
    }

    /// Finds the matches of a batch. If they exceed the memory, joins the first half of its documents only.
    fn join_batch(&mut self) -> Result<()> {
        let Strategy::Batches(batches) = &mut self.strategy else { return Ok(()) };
        let Some(join) = self.lookup.join() else { return Ok(()) };
        loop {
            let mut wanted: HashMap<SmallBytes, Vec<usize>, RandomState> = HashMap::default();
            for (place, (document, _)) in batches.batch.iter().enumerate() {
                join.visit_local(Doc::new(document), &mut |value| {
                    wanted.entry(key_of(value, &mut self.scratch)).or_default().push(place);
                });
            }
            let documents = batches.batch.iter().map(|(document, _)| Doc::new(document));
            let stages = if batches.is_indexed { batch_stages(&self.lookup, join, documents)? } else { Vec::new() };
            if let Some(Stage::Match(filter)) = stages.first()
                && !self.foreign.is_indexed(join.foreign(), filter)
            {
                // A batch that reads all documents costs as much as joining all of them.
                batches.count_joined(u64::MAX);
            }
            let mut rows = self.foreign.open(stages)?;
            self.documents.clear();
            let (mut key, mut places) = (Vec::new(), Vec::new());
            let mut is_too_large = false;
            while rows.advance()? {
                self.interrupt.tick()?;
                let Some(document) = rows.current() else { break };
                places.clear();
                join.visit_foreign_keys(document, &mut key, &mut |key| {
                    places.extend(wanted.get(key).into_iter().flatten().copied());
                });
                if places.is_empty() {
                    continue;
                }
                let number = self.documents.push(document.bytes());
                places.sort_unstable();
                places.dedup();
                for place in &places {
                    if let Some((_, matches)) = batches.batch.get_mut(*place) {
                        matches.push(number);
                    }
                }
                is_too_large = self.documents.memory() > self.foreign.memory_limit() / 2 && batches.batch.len() > 1;
                if is_too_large {
                    break;
                }
            }
            if !is_too_large {
                return Ok(());
            }
            let half = batches.batch.split_off(batches.batch.len().div_ceil(2));
            batches.pending.extend(half.into_iter().rev().map(|(document, _)| document));
            batches.batch.iter_mut().for_each(|(_, matches)| matches.clear());
        }
    }
}

impl<'v, V: View + 'v> Rows for LookupRows<'v, V> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_run(1)? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        // A limit can end between the matches of one document.
        let most = if most == u64::MAX { most } else { 1 };
        self.has_row = self.next_row(most)?;
        Ok(if self.has_row { self.times } else { 0 })
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}

impl Batches {
    fn new(is_indexed: bool) -> Self {
        Self { batch: Vec::new(), next: 0, pending: Vec::new(), is_indexed, joined: Some(0) }
    }

    fn count_joined(&mut self, documents: u64) {
        self.joined = self.joined.map(|joined| joined.saturating_add(documents));
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.batch.get(self.next.checked_sub(1)?).map(|(document, _)| Doc::new(document))
    }
}

/// About how many bytes an entry of a table or of a batch takes in addition to its key or document.
const ENTRY: usize = 64;

/// Replaces `matches` by the numbers of the documents that a document is equal to, in ascending order.
fn find(
    join: &Join,
    document: Doc<'_>,
    table: &HashMap<SmallBytes, Vec<usize>, RandomState>,
    key: &mut Vec<u8>,
    matches: &mut Vec<usize>,
) {
    matches.clear();
    let mut values = 0_usize;
    join.visit_local(document, &mut |value| {
        values += 1;
        key.clear();
        slate_query::key::encode(value, key);
        matches.extend(table.get(key.as_slice()).into_iter().flatten().copied());
    });
    if values > 1 {
        matches.sort_unstable();
        matches.dedup();
    }
}

fn key_of(value: Value<'_>, buffer: &mut Vec<u8>) -> SmallBytes {
    buffer.clear();
    slate_query::key::encode(value, buffer);
    buffer.as_slice().into()
}

/// Returns the stages that find the matches of one document.
fn stages(lookup: &Lookup, join: Option<&Join>, document: Doc<'_>) -> Result<Vec<Stage>> {
    let mut stages = if lookup.has_pipeline() { lookup.stages(document)? } else { Vec::new() };
    if let Some(join) = join {
        // A stage with its own documents must stay first.
        let place = usize::from(stages.first().is_some_and(Stage::is_source));
        stages.splice(place..place, batch_stages(lookup, join, std::iter::once(document))?);
    }
    Ok(stages)
}

/// Returns the stages that find the documents that any of the documents is equal to, in the order of `_id`.
fn batch_stages<'d>(lookup: &Lookup, join: &Join, documents: impl Iterator<Item = Doc<'d>>) -> Result<Vec<Stage>> {
    let mut values: Vec<(SmallBytes, Value<'_>)> = Vec::new();
    let mut buffer = Vec::new();
    for document in documents {
        join.visit_local(document, &mut |value| values.push((key_of(value, &mut buffer), value)));
    }
    values.sort_by(|(a, _), (b, _)| a.as_slice().cmp(b.as_slice()));
    values.dedup_by(|(a, _), (b, _)| a.as_slice() == b.as_slice());
    let filter = equality(lookup, join, values.iter().map(|(_, value)| *value))?;
    let by_id = Stage::Sort(plan::sort_by_id(Direction::Ascending)?);
    Ok(filter.map(Stage::Match).into_iter().chain([by_id]).collect())
}

/// Returns the condition that the foreign field is equal to one of the values.
fn equality<'v>(
    lookup: &Lookup,
    join: &Join,
    values: impl Iterator<Item = Value<'v>> + Clone,
) -> Result<Option<Filter>> {
    let filter = join.filter(values);
    let filter = filter.as_value().as_document();
    Ok(filter.map(|filter| Filter::parse_with(filter, lookup.bindings())).transpose()?)
}
