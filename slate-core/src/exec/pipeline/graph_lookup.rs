use std::collections::{BTreeMap, HashSet};

use ahash::RandomState;
use slate_query::{
    Code, key,
    pipeline::GraphLookup,
    raw::{Doc, Kind, OwnedValue, SmallBytes, Value, Writer},
    work,
};
use slate_store::View;

use super::foreign::Foreign;
use crate::{
    Error, ErrorKind, Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::Optimization,
};

/// The documents of the input, each with an array of the documents that are reached from it in another collection, in the order of
/// `_id`.
///
/// Each step is one query for all values that the previous step found. An index on the field serves it.
pub(crate) struct GraphLookupRows<'v, V: View> {
    input: BoxedRows<'v>,
    graph: GraphLookup,
    foreign: Foreign<V>,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
}

/// The documents reached from one document may use this much memory, in bytes, even if the limit is lower.
const LEAST: usize = 16 << 20;

/// About how many bytes a value that was searched for takes in addition to its key.
const SEARCHED: usize = 64;

/// About how many bytes a value takes that the next step searches for: itself, as a part of the condition, and its bounds in an index.
const SOUGHT: usize = 192;

/// About how many bytes a document takes in addition to itself and the key of its `_id`.
const FOUND: usize = 64;

/// The documents reached from one document.
struct Reached {
    /// The documents by the keys of their `_id`s.
    documents: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The keys of the values that were searched for.
    searched: HashSet<SmallBytes, RandomState>,
    bytes: usize,
    /// How many values the current step searches for.
    sought: usize,
    /// Maximum memory, in bytes.
    limit: usize,
}

impl<'v, V: View + 'v> GraphLookupRows<'v, V> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        graph: GraphLookup,
        optimization: Optimization,
        view: &V,
        resources: &Resources,
        meter: &Meter,
    ) -> Self {
        let foreign = Foreign::new(graph.from(), optimization, view, resources, meter);
        Self { input, graph, foreign, row: Vec::new(), has_row: false, interrupt: resources.interrupt.clone() }
    }
}

impl<'v, V: View + 'v> Rows for GraphLookupRows<'v, V> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        self.interrupt.tick()?;
        if !self.input.advance()? {
            return Ok(false);
        }
        let Some(document) = self.input.current() else { return Ok(false) };
        let mut reached = Reached::new(self.foreign.memory_limit().max(LEAST));
        let mut frontier = Vec::new();
        self.graph.visit_start(document, &mut |value| reached.lead_to(value, &mut frontier))?;
        reached.check(&frontier)?;
        let mut depth = 0;
        while !frontier.is_empty() && depth <= self.graph.max_depth() {
            let values = std::mem::take(&mut frontier);
            reached.sought = values.len();
            let mut rows = self.foreign.open(self.graph.stages(values.iter().map(OwnedValue::as_value))?)?;
            while rows.advance()? {
                self.interrupt.tick()?;
                let Some(found) = rows.current() else { break };
                work::take_copied(found.bytes().len())?;
                if reached.add(&self.graph, found, depth) {
                    if depth < self.graph.max_depth() {
                        self.graph.visit_next(found, &mut |value| reached.lead_to(value, &mut frontier));
                    }
                    reached.check(&frontier)?;
                }
            }
            depth += 1;
        }
        let mut array = Writer::new();
        for (place, found) in reached.documents.values().enumerate() {
            array.append(place.to_string().as_bytes(), Value::new(Kind::Document, found));
        }
        self.graph.write(document, Value::new(Kind::Array, &array.finish()), &mut self.row);
        self.has_row = true;
        Ok(true)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}

impl Reached {
    fn new(limit: usize) -> Self {
        Self { documents: BTreeMap::new(), searched: HashSet::default(), bytes: 0, sought: 0, limit }
    }

    /// Returns whether the documents and values in memory exceed the limit.
    fn is_full(&self, frontier: &[OwnedValue]) -> bool {
        self.bytes + (self.sought + frontier.len()) * SOUGHT > self.limit
    }

    fn check(&self, frontier: &[OwnedValue]) -> Result<()> {
        if !self.is_full(frontier) {
            return Ok(());
        }
        let message =
            format!("what $graphLookup reaches from one document needs more than {} bytes of memory", self.limit);
        Err(Error::new(ErrorKind::TooLarge, Code(40_099), message))
    }

    /// Adds a value to those that are searched for next, unless it was searched for before or the limit is exceeded.
    fn lead_to(&mut self, value: Value<'_>, frontier: &mut Vec<OwnedValue>) {
        if self.is_full(frontier) {
            return;
        }
        let mut key = Vec::new();
        key::encode(value, &mut key);
        if self.searched.insert(key.as_slice().into()) {
            self.bytes += SEARCHED + key.len();
            frontier.push(value.to_owned());
        }
    }

    /// Adds a found document. Returns false if it was found before.
    fn add(&mut self, graph: &GraphLookup, found: Doc<'_>, depth: u64) -> bool {
        let mut id = Vec::new();
        key::encode(found.get("_id").unwrap_or(Value::NULL), &mut id);
        if self.documents.contains_key(&id) {
            return false;
        }
        let mut document = Vec::new();
        graph.write_found(found, depth, &mut document);
        self.bytes += FOUND + id.len() + document.len();
        self.documents.insert(id, document);
        true
    }
}
