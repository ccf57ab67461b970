use slate_query::{
    pipeline::{Lookup, Stage},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    work,
};
use slate_store::View;

use super::{foreign::Foreign, join_stages, join_table::JoinTable, lookup_batches::Batches, wanted_rows::WantedRows};
use crate::{
    Result,
    exec::{
        Meter, Packed, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::Optimization,
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
    strategy: Strategy,
    /// The rows of the current document's own query, if the stage returns a document per match.
    streamed: Option<BoxedRows<'v>>,
    /// The matching documents of the other collection that are in memory.
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
enum Strategy {
    Undecided,
    /// All documents in memory match every document.
    Constant,
    Hash(JoinTable),
    Batches(Batches),
    /// A query per document.
    PerDocument,
}

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
            _ => Strategy::PerDocument,
        };
        Self {
            input,
            lookup,
            foreign,
            strategy,
            streamed: None,
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

    /// Writes the document for the next match of the current document. Returns `false` after the last match.
    fn next_match(&mut self) -> Result<bool> {
        let is_found = match &mut self.streamed {
            Some(rows) => rows.advance()?,
            None => self.returned < self.matches.len(),
        };
        let document = match &self.strategy {
            Strategy::Batches(batches) => batches.current(),
            _ => self.input.current(),
        };
        let found = match &self.streamed {
            Some(rows) => rows.current().map(Doc::bytes),
            None => self.matches.get(self.returned).and_then(|number| self.documents.get(*number)),
        };
        let (true, Some(document), Some(found)) = (is_found, document, found) else { return Ok(false) };
        self.returned += 1;
        self.lookup.write(document, Value::new(Kind::Document, found), &mut self.scratch, &mut self.row);
        Ok(true)
    }

    /// Writes the current document with all its matches.
    fn write_array(&mut self) -> Result<()> {
        work::take(self.matches.len())?;
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

    /// Moves past at most `most` equal documents of the input, and finds their matches. Returns `false` after the last document.
    fn next_document(&mut self, most: u64) -> Result<bool> {
        // Ends the query for the previous document.
        self.streamed = None;
        match &self.strategy {
            Strategy::Undecided => return self.first_document(most),
            Strategy::Batches(_) => return self.next_in_batch(most),
            Strategy::PerDocument | Strategy::Constant | Strategy::Hash(_) => {}
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
        match (&self.strategy, self.lookup.join()) {
            (Strategy::Hash(table), Some(join)) => {
                table.find(join, document, &mut self.scratch, &mut self.matches)?;
            }
            (Strategy::PerDocument, _) => {
                let rows = self.foreign.open(join_stages::of_document(&self.lookup, document)?)?;
                self.take_matches(rows)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Sets the matches of the current document to `rows`. They are not held in memory if the stage returns a document per match.
    fn take_matches(&mut self, mut rows: BoxedRows<'v>) -> Result<()> {
        if self.lookup.is_unwound() {
            self.documents = Packed::default();
            self.streamed = Some(rows);
            return Ok(());
        }
        self.documents.clear();
        let mut bytes = 0;
        while rows.advance()? {
            let Some(document) = rows.current() else { break };
            bytes += document.bytes().len();
            self.lookup.check_size(bytes)?;
            self.documents.push(document.bytes());
        }
        self.matches.clear();
        self.matches.extend(0..self.documents.len());
        Ok(())
    }

    /// Chooses how to find matches. Reads the other collection, or the matches of all documents, if they can be held in memory.
    fn decide(&mut self) -> Result<()> {
        if self.lookup.is_constant() && self.read_once()? {
            self.strategy = Strategy::Constant;
            return Ok(());
        }
        self.strategy = match self.lookup.join() {
            Some(join) if !self.lookup.has_pipeline() => {
                let filter = join_stages::usual(&self.lookup, join)?;
                let is_indexed = filter.is_some_and(|filter| self.foreign.is_indexed(join.foreign(), &filter));
                match if is_indexed { None } else { self.read_all()? } {
                    Some(table) => Strategy::Hash(table),
                    None => Strategy::Batches(Batches::new(is_indexed)),
                }
            }
            _ => Strategy::PerDocument,
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
                self.documents = Packed::default();
                return Ok(false);
            }
        }
        self.matches.extend(0..self.documents.len());
        Ok(true)
    }

    /// Opens all documents of the other collection, in the order of `_id`. Only those of a view must be sorted for this.
    fn open_all(&self) -> Result<BoxedRows<'v>> {
        let order = if self.foreign.is_view() { vec![join_stages::by_id()?] } else { Vec::new() };
        self.foreign.open(order)
    }

    /// Reads the other collection into a hash table. Returns `None` if it exceeds the memory.
    fn read_all(&mut self) -> Result<Option<JoinTable>> {
        let Some(join) = self.lookup.join() else { return Ok(None) };
        let (mut table, mut key) = (JoinTable::default(), Vec::new());
        self.documents.clear();
        let mut rows = self.open_all()?;
        while rows.advance()? {
            self.interrupt.tick()?;
            let Some(document) = rows.current() else { break };
            let number = self.documents.push(document.bytes());
            table.add(join, document, number, &mut key)?;
            if self.documents.memory() + table.memory() > self.foreign.memory_limit() {
                self.documents = Packed::default();
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    fn next_in_batch(&mut self, most: u64) -> Result<bool> {
        loop {
            let (Strategy::Batches(batches), Some(join)) = (&mut self.strategy, self.lookup.join()) else {
                return Ok(false);
            };
            if let Some(document) = batches.batch.get(batches.next) {
                batches.table.find(join, Doc::new(document), &mut self.scratch, &mut self.matches)?;
                batches.next += 1;
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
                // The table may take all of the memory.
                batches.clear();
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
            if !self.join_batch()? {
                self.join_alone()?;
                return Ok(true);
            }
        }
    }

    /// Reads the next batch of input documents. Returns `false` at the end of the input.
    fn fill_batch(&mut self) -> Result<bool> {
        let (Strategy::Batches(batches), Some(join)) = (&mut self.strategy, self.lookup.join()) else {
            return Ok(false);
        };
        let most = batches.most();
        batches.clear();
        // The batch takes half of the memory; the other half is for the matches.
        while batches.batch.len() < most && batches.memory <= self.foreign.memory_limit() / 2 {
            self.interrupt.tick()?;
            let document: Box<[u8]> = match batches.pending.pop() {
                Some(document) => document,
                None if self.input.advance()? => self.input.current().map(Doc::bytes).unwrap_or_default().into(),
                None => break,
            };
            work::take_copied(document.len())?;
            if !batches.add(join, document) {
                break;
            }
        }
        batches.count_joined(batches.batch.len());
        Ok(!batches.batch.is_empty())
    }

    /// Finds the matches of a batch. If they exceed the memory, joins the first half of its documents only. Returns `false` if one
    /// document is left, and its values or matches exceed the memory.
    fn join_batch(&mut self) -> Result<bool> {
        let Some(join) = self.lookup.join() else { return Ok(true) };
        let mut key = Vec::new();
        loop {
            let Strategy::Batches(batches) = &mut self.strategy else { return Ok(true) };
            if batches.has_many_values {
                return Ok(false);
            }
            let mut rows = if batches.is_indexed {
                let stages = join_stages::of_values(&self.lookup, join, &mut batches.values, OwnedValue::as_value)?;
                if let Some(Stage::Match(filter)) = stages.first()
                    && !self.foreign.is_indexed(join.foreign(), filter)
                {
                    // Each such batch reads all documents, so before the next one a hash table of all of them is tried.
                    batches.count_joined(usize::MAX);
                }
                self.foreign.open(stages)?
            } else {
                self.open_all()?
            };
            let Strategy::Batches(batches) = &mut self.strategy else { return Ok(true) };
            self.documents.clear();
            let mut is_too_large = false;
            while !is_too_large && rows.advance()? {
                self.interrupt.tick()?;
                let Some(document) = rows.current() else { break };
                if batches.table.add_wanted(join, document, self.documents.len(), &mut key)? {
                    self.documents.push(document.bytes());
                    let memory = self.documents.memory() + batches.table.memory();
                    is_too_large = memory > self.foreign.memory_limit() / 2;
                }
            }
            if !is_too_large {
                return Ok(true);
            }
            if batches.batch.len() == 1 {
                return Ok(false);
            }
            batches.halve(join);
        }
    }

    /// Joins the only document of the batch by a query of its own.
    fn join_alone(&mut self) -> Result<()> {
        let (Strategy::Batches(batches), Some(join)) = (&mut self.strategy, self.lookup.join()) else { return Ok(()) };
        batches.next = 1;
        self.times = 1;
        let Strategy::Batches(batches) = &self.strategy else { return Ok(()) };
        let Some(document) = batches.current() else { return Ok(()) };
        let rows: BoxedRows<'v> = if batches.has_many_values {
            Box::new(WantedRows::new(self.open_all()?, join, document, self.interrupt.clone())?)
        } else {
            self.foreign.open(join_stages::of_document(&self.lookup, document)?)?
        };
        self.take_matches(rows)
    }
}

impl<'v, V: View + 'v> Rows for LookupRows<'v, V> {
    fn park(&mut self) {
        self.input.park();
        if let Some(rows) = &mut self.streamed {
            rows.park();
        }
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
