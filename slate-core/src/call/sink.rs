//! Writes the documents of a pipeline into a collection, in the transaction that reads them.

use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    path::Path,
    raw::Doc,
    sink::{Merge, MergedNulls, Sink, WhenMatched, WhenNotMatched},
};

use super::{
    engine::{ReadSet, Writer},
    measured::Cursor,
    request::Request,
};
use crate::{
    Error, Result,
    call_context::CallContext,
    document::borrowed,
    exec::{Rows, Target},
    plan::{Output, Query, Ties},
    spill::Budget,
    write::{CollectionSpec, InsertMode, PutKind, UpdateKind, UpdateRequest},
};

/// Executes the pipeline of an aggregation that ends with `$out` or `$merge`, and writes its documents: all of them or none.
pub(super) fn write(writer: &mut dyn Writer, source: &str, request: &Request) -> Result<()> {
    let catalog = Arc::clone(writer.catalog());
    let defined = request.bind(&catalog, source)?;
    let (query, sink) = request.parse_aggregate(&defined)?;
    let Some(sink) = &sink else { return Ok(()) };
    if matches!(sink, Sink::Merge(_)) && request.compares_by_collation(&defined) {
        return Err(Error::unsupported_by_name("collation in $merge").at("collation"));
    }
    // A transaction reads all rows before it returns the first one, so the source can be the target.
    let reader = writer.reading(ReadSet::Query(source, &query))?;
    let mut rows = reader.find(defined.source(), &query, &request.call)?;
    // The memory limit is for the pipeline. Writes have their own.
    let call = CallContext { memory: Budget::default(), ..request.call.clone() };
    let mut target = Destination { writer, into: sink.into(), call, has_written: false };
    let written = match sink {
        Sink::Out(_) => target.replace(&mut rows),
        Sink::Merge(merge) => target.merge(merge, rows),
    };
    if let Err(error) = &written
        && target.has_written
    {
        // Otherwise the caller could commit a part of the documents.
        target.writer.end(&format!("a pipeline failed after it had written some of its documents: {error}"));
    }
    written
}

/// The collection that is written to.
struct Destination<'w> {
    writer: &'w mut dyn Writer,
    into: &'w str,
    call: CallContext,
    /// Whether the collection was created or a document merged: a failure then has to end the transaction.
    has_written: bool,
}

impl Destination<'_> {
    /// Creates the collection if it does not exist.
    fn create(&mut self) -> Result<()> {
        if self.writer.collection(self.into)?.is_none() {
            self.writer.create_collection(self.into, &CollectionSpec::default())?;
            self.has_written = true;
        }
        Ok(())
    }

    fn replace(&mut self, rows: &mut Cursor) -> Result<()> {
        self.create()?;
        self.writer.replace_all(self.into, rows, &self.call).map(drop)
    }

    fn merge(&mut self, merge: &Merge, rows: Cursor) -> Result<()> {
        let nulls = self.check_unique(merge.on())?;
        self.create()?;
        let mut rows = Arranged { rows, merge, arranged: None };
        let kind = match (merge.on(), merge.matched(), merge.not_matched()) {
            ([id], WhenMatched::Merge, WhenNotMatched::Insert) if id.as_str() == "_id" => Some(PutKind::Merge),
            ([id], WhenMatched::Replace, WhenNotMatched::Insert) if id.as_str() == "_id" => Some(PutKind::Replace),
            _ => None,
        };
        if let Some(kind) = kind {
            return self.writer.put_rows(self.into, &mut rows, kind, &self.call).map(drop);
        }
        while rows.advance()? {
            let Some(document) = rows.current() else { break };
            self.merge_one(merge, document, nulls)?;
            self.has_written = true;
        }
        Ok(())
    }

    /// Fails unless a unique index lets each document match at most one stored document. `Refused` if only sparse indexes
    /// do: they ensure it only for documents with the fields. Partial indexes do not count, nor those with a collation,
    /// which compare otherwise than `$merge`.
    fn check_unique(&mut self, on: &[Path]) -> Result<MergedNulls> {
        if matches!(on, [only] if only.as_str() == "_id") {
            return Ok(MergedNulls::Matched);
        }
        let collection = self.writer.collection(self.into)?;
        let indexes = collection.iter().flat_map(|collection| collection.indexes.iter());
        let unique = indexes.filter(|index| {
            let fields = index.pattern.fields();
            let is_plain = index.unique && index.partial.is_none() && index.collation.is_none();
            is_plain && fields.len() == on.len() && fields.iter().all(|(path, _)| on.contains(path))
        });
        let are_all_sparse = unique.map(|index| index.sparse).reduce(|one, other| one && other);
        match are_all_sparse {
            Some(true) => Ok(MergedNulls::Refused),
            Some(false) => Ok(MergedNulls::Matched),
            None => {
                let message = format!("{} has no unique index on the fields of 'on' of $merge", self.into);
                Err(Error::invalid(Code(51_183), message).at("on"))
            }
        }
    }

    fn merge_one(&mut self, merge: &Merge, document: Doc<'_>, nulls: MergedNulls) -> Result<()> {
        if let Some(filter) = merge.filter(document, nulls)? {
            let query = Query { output: Output::Whole, ties: Ties::ById, ..Query::of(filter) };
            let request =
                UpdateRequest::new(query, merge.update(Some(document))?, UpdateKind::Either, Target::One, false)?;
            let updated = self.writer.update(self.into, &request, &self.call)?;
            if updated.matched > 0 {
                return match merge.matched() {
                    // The insert fails as a duplicate.
                    WhenMatched::Fail => self.insert_one(document),
                    _ => Ok(()),
                };
            }
        }
        match merge.not_matched() {
            WhenNotMatched::Insert => self.insert_one(document),
            WhenNotMatched::Discard => Ok(()),
            WhenNotMatched::Fail => {
                let message =
                    "$merge could not find a matching document in the target collection for at least one document";
                Err(Error::invalid(Code::MERGE_STAGE_NO_MATCHING_DOCUMENT, message))
            }
        }
    }

    fn insert_one(&mut self, document: Doc<'_>) -> Result<()> {
        let document = RawDocumentBuf::from_bytes(document.bytes().to_vec()).map_err(Error::conversion)?;
        let inserted = self.writer.insert(self.into, &borrowed(&[document]), InsertMode::AllOrNone, &self.call)?;
        inserted.refused.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The rows of a `$merge`, with their fields in the order in which it writes them.
struct Arranged<'m> {
    rows: Cursor,
    merge: &'m Merge,
    /// The current row, if its fields have another order.
    arranged: Option<Vec<u8>>,
}

impl Rows for Arranged<'_> {
    fn advance(&mut self) -> Result<bool> {
        let advanced = self.rows.advance()?;
        self.arranged = self.rows.document().and_then(|document| self.merge.arranged(document));
        Ok(advanced)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.arranged.as_deref().map(Doc::new).or_else(|| self.rows.document())
    }
}
