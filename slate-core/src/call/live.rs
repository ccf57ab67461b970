//! A live query: its result, updated from the log of changes.
//!
//! The rows of the result are held in their order, each with its sort key. A changed document is tested by the filter and inserted at the position of
//! its sort key. The query is executed again, on the snapshot whose log was read, if a limited result loses a row or a row may have moved behind its
//! end, if the collection was dropped, if the log was trimmed, or if applying the changes would cost more. The steps are the difference between the
//! old and the new list of rows.

use std::{collections::VecDeque, ops::ControlFlow, sync::Arc};

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    filter::Filter,
    raw::{Doc, SmallBytes},
    sort::Sort,
    work,
};

use super::{
    DatabaseHandle, Request, SharedReader,
    change_stream::{Follower, ReadOutcome, not_logged},
    live_change::LiveStep,
    live_steps::steps_between,
};
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::not_on_view,
    changes::{Event, EventKind, Position, Watched},
    document::as_raw,
    entry::record_key,
    plan::{self, Output, Query, Ties},
};

/// A row of the result.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The sort key, followed by the key of the record, which orders rows with equal sort keys.
    pub(super) order: SmallBytes,
    pub(super) id: SmallBytes,
    pub(super) document: Arc<RawDocumentBuf>,
}

/// Maximum rows to examine per update: more cost as much as executing the query again.
const MOST_LOOKED_AT: usize = 1 << 24;

/// A query, parsed by the current definition.
struct Parsed {
    query: Query,
    filter: Filter,
    sort: Option<Sort>,
}

/// The state of a live query.
pub(crate) struct LiveState {
    database: DatabaseHandle,
    collection: Arc<str>,
    watched: Watched,
    request: Request,
    parsed: Parsed,
    log: u32,
    position: Position,
    rows: Vec<Row>,
    steps: VecDeque<LiveStep>,
}

impl LiveState {
    /// Opens a live query: executes the query, whose rows are the first steps.
    ///
    /// # Errors
    /// 40573 if changes are not logged; 166 for a view; 72 for options that a live query does not have; the errors of the query.
    pub(crate) fn open(database: &DatabaseHandle, collection: &Arc<str>, request: Request) -> Result<Self> {
        let reader = database.reader(&request.call)?;
        let log = reader.catalog().change_log().ok_or_else(not_logged)?.id;
        let parsed = parse(&reader, collection, &request)?;
        let position = reader.last_change()?;
        let mut live = Self {
            database: database.clone(),
            collection: Arc::clone(collection),
            watched: Watched::Collection((&**collection).into()),
            request,
            parsed,
            log,
            position,
            rows: Vec::new(),
            steps: VecDeque::new(),
        };
        live.rows = live.execute(&reader)?;
        let added = live.rows.iter().enumerate();
        live.steps
            .extend(added.map(|(position, row)| LiveStep::Added { position, document: Arc::clone(&row.document) }));
        Ok(live)
    }

    /// Executes the query on a snapshot.
    fn execute(&self, reader: &SharedReader) -> Result<Vec<Row>> {
        let source = reader.catalog().collection_or_empty(&self.collection);
        let mut rows = reader.find(&source, &self.parsed.query, &self.request.call)?;
        let mut found = Vec::new();
        while rows.advance()? {
            if let Some(document) = rows.document() {
                found.push(self.row(document)?);
            }
        }
        // A query without a limit may return rows with equal sort keys in any order.
        found.sort_by(|a, b| a.order.as_slice().cmp(&b.order));
        Ok(found)
    }

    fn row(&self, document: Doc<'_>) -> Result<Row> {
        let id = record_key(document.get("_id").unwrap_or(slate_query::raw::Value::NULL))?;
        let mut order = Vec::new();
        if let Some(sort) = &self.parsed.sort {
            sort.key(document, &mut order)?;
        }
        order.extend_from_slice(&id);
        let document = Arc::new(as_raw(document.bytes())?.to_owned());
        Ok(Row { order: order.as_slice().into(), id: id.as_slice().into(), document })
    }

    /// Whether the rows are certainly all matching documents: fewer than the limit.
    fn has_all(&self, rows: &[Row]) -> bool {
        self.request.window.limit.is_none_or(|limit| u64::try_from(rows.len()).unwrap_or(u64::MAX) < limit)
    }

    /// Applies a change to the rows. Returns `false` if the query has to be executed again. `had_all`: no matching document is outside the rows.
    fn apply(&self, rows: &mut Vec<Row>, had_all: bool, event: &Event<'_>) -> Result<bool> {
        let Some(id) = event.id() else { return Ok(false) };
        let id = record_key(id)?;
        let held = rows.iter().position(|row| *row.id == *id);
        let is_there = event.kind != EventKind::Delete && self.parsed.filter.evaluate(event.document)?;
        if let Some(held) = held {
            rows.remove(held);
        }
        if !is_there {
            return Ok(held.is_none() || had_all);
        }
        let row = self.row(event.document)?;
        let at = rows.partition_point(|other| *other.order < *row.order);
        if at == rows.len() && !had_all {
            // Sorts after all rows of the limited result.
            return Ok(held.is_none());
        }
        rows.insert(at, row);
        if let Some(limit) = self.request.window.limit.and_then(|limit| usize::try_from(limit).ok()) {
            rows.truncate(limit);
        }
        Ok(true)
    }

    /// Applies the changes after the position. Returns the new rows; `None` if the query has to be executed again.
    fn follow(&self, reader: &SharedReader, call: &CallContext) -> Result<Option<Vec<Row>>> {
        if self.position < reader.trimmed_changes()? {
            return Ok(None);
        }
        let (mut rows, mut had_all) = (self.rows.clone(), self.has_all(&self.rows));
        let (mut interrupt, mut looked_at) = (call.interrupt.clone(), 0);
        let stopped = reader.changes(self.position, &mut |_, _, event| {
            interrupt.tick()?;
            let is_ours = self.watched.includes(event.source.name) || event.renamed_to() == Some(&self.collection);
            if !is_ours || matches!(event.kind, EventKind::CreateIndexes | EventKind::DropIndexes) {
                return Ok(ControlFlow::Continue(()));
            }
            work::take(rows.len())?;
            looked_at += rows.len();
            if looked_at > MOST_LOOKED_AT || !self.apply(&mut rows, had_all, event)? {
                return Ok(ControlFlow::Break(()));
            }
            had_all = had_all && self.has_all(&rows);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(stopped.is_none().then_some(rows))
    }
}

impl Follower for LiveState {
    type Item = LiveStep;

    fn take(&mut self) -> Option<LiveStep> {
        self.steps.pop_front()
    }

    fn is_over(&self) -> bool {
        false
    }

    fn read_further(&mut self, call: &CallContext) -> Result<ReadOutcome> {
        if !self.steps.is_empty() {
            return Ok(ReadOutcome::Ready);
        }
        let reader = self.database.reader(call)?;
        let log = reader.catalog().change_log().ok_or_else(not_logged)?.id;
        let end = reader.last_change()?;
        if log == self.log && end == self.position {
            return Ok(ReadOutcome::AtEnd);
        }
        let followed = if log == self.log { self.follow(&reader, call)? } else { None };
        let rows = match followed {
            Some(rows) => rows,
            None => {
                self.parsed = parse(&reader, &self.collection, &self.request)?;
                self.execute(&reader)?
            }
        };
        self.steps = steps_between(&self.rows, &rows)?;
        (self.log, self.position, self.rows) = (log, end, rows);
        Ok(if self.steps.is_empty() { ReadOutcome::AtEnd } else { ReadOutcome::Ready })
    }

    fn database(&self) -> &DatabaseHandle {
        &self.database
    }

    fn watched(&self) -> &Watched {
        &self.watched
    }
}

/// Parses the query by the definition of the collection in this snapshot.
fn parse(reader: &SharedReader, collection: &str, request: &Request) -> Result<Parsed> {
    if reader.catalog().view(collection).is_some() {
        return Err(not_on_view(collection));
    }
    let unsupported = request.unlike_live();
    if let Some(option) = unsupported {
        let message = format!("a live query has no {option}");
        return Err(Error::invalid(Code::INVALID_OPTIONS, message).at(option));
    }
    let defined = request.bind(reader.catalog(), collection)?;
    let mut query = request.parse(&defined, Output::Whole, Ties::ById)?;
    if query.sort.is_none() {
        query.sort = Some(plan::sort_by_id(slate_query::pattern::Direction::Ascending)?);
    }
    let (filter, sort) = (query.filter.clone(), query.sort.clone());
    Ok(Parsed { query, filter, sort })
}
