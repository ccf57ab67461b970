use std::{fmt, sync::Arc};

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    collation::Collation,
    expression::Bindings,
    number::Number,
    pattern::Direction,
    raw::{Doc, Value, validate},
    sink::Sink,
    sort::Sort,
};

use super::{definitions::Definitions, engine::RecordVisitor, measured::Cursor, scope::Scope, sink};
use crate::{
    Error, Explain, ExplainVerbosity, Hint, IntoDocument, Result, ReturnDocument,
    call_context::CallContext,
    catalog::Catalog,
    clock::now_millis,
    entry::only_id,
    interrupt::CallLimits,
    namespace,
    plan::{Force, Optimization, Query, Window},
    stage_names,
};

/// Where the documents of a request come from.
#[derive(Clone, Debug, Default)]
pub(crate) enum RequestSource {
    /// From a stored collection or a view.
    #[default]
    Stored,
    /// From a collection that is not stored: these documents.
    Given(Arc<[RawDocumentBuf]>),
    /// From the first stage of the pipeline, `$documents`.
    Pipeline,
}

/// The arguments that a builder collects. When the builder is run they are bound to the definitions of what it reads or
/// writes, and then parsed; see [`Definitions`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// `None` matches every document, and is also used for an invalid argument.
    pub(super) filter: Option<RawDocumentBuf>,
    pub(super) sort: Option<RawDocumentBuf>,
    pub(super) projection: Option<RawDocumentBuf>,
    pub(crate) window: Window,
    pub(crate) hint: Option<Hint>,
    pub(crate) find: FindArguments,
    pub(crate) update: UpdateArguments,
    pub(super) force: Force,
    /// The stages of an aggregation.
    pub(super) pipeline: Vec<RawDocumentBuf>,
    pub(crate) source: RequestSource,
    /// The variables of `let`.
    pub(super) variables: Option<RawDocumentBuf>,
    /// How strings are compared. `Some(None)`: by their bytes, even if the collection has a collation.
    pub(super) collation: Option<Option<Collation>>,
    pub(super) optimization: Optimization,
    pub(crate) call: CallContext,
    /// The error of the first invalid argument, returned when the builder is run.
    fault: Option<Fault>,
}

/// The arguments that only MongoDB's command `find` has, not the builder.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FindArguments {
    pub(crate) min: Option<RawDocumentBuf>,
    pub(crate) max: Option<RawDocumentBuf>,
    pub(crate) result: FindResult,
    /// The name of an option of the find that aggregations do not have: over a view, the find fails.
    pub(crate) unlike_aggregate: Option<&'static str>,
}

/// The arguments that only updates have.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpdateArguments {
    /// The conditions on array elements.
    pub(crate) array_filters: Vec<RawDocumentBuf>,
    /// Values of further variables (the command's `c`), if the update is a pipeline.
    pub(crate) constants: Option<RawDocumentBuf>,
    /// Whether a document is inserted if none matches.
    pub(crate) upsert: bool,
    /// Which version of the document is returned.
    pub(crate) returns: ReturnDocument,
}

/// The arguments that the builder of a call collects, with the collection and the scope in which it is executed.
#[derive(Clone)]
pub(crate) struct ScopedRequest {
    pub(crate) scope: Scope,
    pub(crate) collection: Arc<str>,
    pub(crate) request: Request,
}

impl ScopedRequest {
    /// Creates the arguments of a call that begins now, within the limits of its handle.
    pub(crate) fn new(scope: Scope, collection: &Arc<str>, limits: &CallLimits, mut request: Request) -> Self {
        request.call = CallContext::begin(limits);
        Self { scope, collection: Arc::clone(collection), request }
    }
}

impl fmt::Debug for ScopedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("collection", &self.collection).field("request", &self.request).finish()
    }
}

/// The part of a document that a find returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FindResult {
    /// The document, or its projection.
    #[default]
    Document,
    /// Its key in the index that the plan uses: `returnKey`.
    Key,
}

/// An error that is returned each time the builder or a clone of it is run.
#[derive(Clone, Debug)]
struct Fault(Arc<Error>);

impl Request {
    pub(crate) fn new(filter: impl IntoDocument) -> Self {
        let mut request = Self::default();
        request.filter(filter);
        request
    }

    pub(crate) fn filter(&mut self, filter: impl IntoDocument) {
        self.filter = self.take(filter);
    }

    /// Returns the document; if it is invalid, stores the error and returns `None`.
    pub(crate) fn take(&mut self, document: impl IntoDocument) -> Option<RawDocumentBuf> {
        // Validates the bytes of raw documents here; all later code relies on it.
        let whole = |document: RawDocumentBuf| {
            check_size(document.as_bytes().len())?;
            validate(document.as_bytes())?;
            Ok(document)
        };
        self.accept(document.into_document().and_then(whole))
    }

    /// Returns the argument; if it is an error, stores the error and returns `None`.
    pub(crate) fn accept<T>(&mut self, argument: Result<T>) -> Option<T> {
        argument.map_err(|error| self.fault(error)).ok()
    }

    /// Stores an error about an option that the call does not support.
    pub(crate) fn refuse(&mut self, message: &str, option: &str) {
        self.fault(Error::invalid(Code::INVALID_OPTIONS, message).at(option));
    }

    fn fault(&mut self, error: Error) {
        self.fault.get_or_insert_with(|| Fault(Arc::new(error)));
    }

    /// Returns the name of an option of this request that a live query does not have; `None` if there is none.
    pub(crate) fn unlike_live(&self) -> Option<&'static str> {
        let own = [("skip", self.window.skip > 0), ("projection", self.projection.is_some())];
        first_given(own).or_else(|| self.of_index_keys())
    }

    /// Returns the name of an option of this request about index keys, which a view does not have; `None` if there is none.
    pub(super) fn of_index_keys(&self) -> Option<&'static str> {
        let returns_key = self.find.result == FindResult::Key;
        first_given([("min", self.find.min.is_some()), ("max", self.find.max.is_some()), ("returnKey", returns_key)])
    }

    /// Returns the stages of an aggregation.
    pub(crate) fn stages(&self) -> &[RawDocumentBuf] {
        &self.pipeline
    }

    /// Returns the direction of a `$natural` sort; ascending without one.
    pub(super) fn natural_order(&self) -> Direction {
        let sort = self.sort.as_ref().and_then(|sort| Sort::parse(Doc::from(sort)).ok());
        sort.and_then(|sort| sort.natural()).unwrap_or(Direction::Ascending)
    }

    pub(crate) fn sort(&mut self, sort: impl IntoDocument) {
        self.sort = self.take(sort);
    }

    pub(crate) fn projection(&mut self, projection: impl IntoDocument) {
        self.projection = self.take(projection);
    }

    pub(crate) fn skip(&mut self, documents: u64) {
        self.window.skip = documents;
    }

    pub(crate) fn limit(&mut self, documents: u64) {
        self.window.limit = Some(documents);
    }

    pub(crate) fn hint(&mut self, hint: Hint) {
        self.hint = Some(hint);
    }

    pub(crate) fn collation(&mut self, collation: impl IntoDocument) {
        let Some(collation) = self.take(collation) else { return };
        let collation = Collation::parse(Doc::from(&collation)).map_err(Error::from);
        self.collation = self.accept(collation);
    }

    pub(crate) fn let_variables(&mut self, variables: impl IntoDocument) {
        self.variables = self.take(variables);
    }

    pub(crate) fn array_filters(&mut self, filters: impl IntoIterator<Item = impl IntoDocument>) {
        self.update.array_filters = filters.into_iter().filter_map(|filter| self.take(filter)).collect();
    }

    pub(crate) fn upsert(&mut self) {
        self.update.upsert = true;
    }

    pub(crate) fn return_document(&mut self, returns: ReturnDocument) {
        self.update.returns = returns;
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) fn force(&mut self, candidate: usize) {
        self.force = Force::Candidate(candidate);
    }

    pub(crate) fn pipeline(&mut self, stages: impl IntoIterator<Item = impl IntoDocument>) {
        self.pipeline = stages.into_iter().filter_map(|stage| self.take(stage)).collect();
        self.accept(check_size(self.pipeline.iter().map(|stage| stage.as_bytes().len()).sum()));
    }

    /// Replaces the names of collections in the pipeline, which are names within `database`, by stored names.
    pub(crate) fn name_collections(&mut self, database: &str) {
        // In the default database both names are equal, except in a stage that writes, which can name another database.
        if database != namespace::DEFAULT_DATABASE || self.writes() {
            let stored = stage_names::stored_stages(database, &self.pipeline);
            self.pipeline = self.accept(stored).unwrap_or_default();
        }
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) fn unoptimized(&mut self) {
        self.optimization = Optimization::Off;
    }

    /// Looks up the definitions that the request needs in `catalog`.
    ///
    /// # Errors
    /// Fails as [`Catalog::resolved`] does.
    pub(crate) fn bind<'c>(&self, catalog: &'c Catalog, name: &str) -> Result<Definitions<'c>> {
        Definitions::of(self, catalog, name)
    }

    /// Returns the variables of the operation, with `NOW` as the current time. Each variable can use the ones before it.
    pub(super) fn bindings(&self, collation: Option<&Collation>) -> slate_query::Result<Bindings> {
        let variables = self.variables.as_ref().map(Doc::from);
        variables.map_or(Ok(()), Bindings::check_names)?;
        let empty = Bindings::new(now_millis()).with_collation(collation.cloned());
        variables.into_iter().flat_map(Doc::elements).try_fold(empty, |bindings, variable| {
            let name = variable.display_name();
            bindings.define(&name, variable.value).map_err(|error| error.at(format!("let.{name}")))
        })
    }

    /// Returns the variables of a change stream, which compares strings by their bytes unless the request has a collation of its own.
    pub(crate) fn stream_bindings(&self) -> Result<Bindings> {
        Ok(self.bindings(self.collation.as_ref().and_then(Option::as_ref))?)
    }

    /// Fails with the error of the first invalid argument, if there is one.
    pub(crate) fn check(&self) -> Result<()> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(fault.0.again()))
    }

    /// Executes a find and returns its rows.
    pub(crate) fn find(&self, scope: &Scope, collection: &str) -> Result<Cursor> {
        self.rows(scope, collection, Self::parse_find)
    }

    /// Executes a find of one document by reading its key, on a store on a network: that is one round trip, while a query takes another one for its
    /// snapshot. Calls `visitor` with the document if it exists. Returns false, having done nothing, if a query is needed, for example on another
    /// store or for a filter other than a plain `_id`.
    pub(crate) fn look_up(&self, scope: &Scope, collection: &str, visitor: RecordVisitor<'_>) -> Result<bool> {
        let is_remote = matches!(scope, Scope::Database(database) if database.is_remote());
        let Some(id) = is_remote.then(|| self.only_id()).flatten() else { return Ok(false) };
        self.call.check()?;
        Ok(scope.look_up(collection, id, visitor, self.call.interrupt.budget())?.is_some())
    }

    /// Returns the `_id` in the filter, if the filter is a plain `_id` and no other argument affects the result of a find of one document.
    fn only_id(&self) -> Option<Value<'_>> {
        let Self {
            filter: Some(filter),
            sort: None,
            projection: None,
            window: Window { skip: 0, limit: Some(1) },
            hint: None,
            find,
            force: Force::No,
            source: RequestSource::Stored,
            variables: None,
            collation: None,
            fault: None,
            // Arguments of other operations, and of planning.
            pipeline: _,
            update: _,
            optimization: _,
            call: _,
        } = self
        else {
            return None;
        };
        if *find == FindArguments::default() { only_id(Doc::new(filter.as_bytes())) } else { None }
    }

    /// Returns the rows of the query that `parse` returns.
    fn rows(
        &self,
        scope: &Scope,
        collection: &str,
        parse: impl Fn(&Self, &Definitions<'_>) -> Result<Query>,
    ) -> Result<Cursor> {
        scope.query(collection, self, parse, |reader, source, query| reader.find(source, query, &self.call))
    }

    /// Explains the query that `parse` returns.
    pub(crate) fn explain(
        &self,
        scope: &Scope,
        collection: &str,
        verbosity: ExplainVerbosity,
        parse: impl Fn(&Self, &Definitions<'_>) -> Result<Query>,
    ) -> Result<Explain> {
        scope.query(collection, self, parse, |reader, source, query| {
            let explain = reader.explain(source, query, verbosity, &self.call)?.draw();
            // If the limits of the call have ended it, the result is not complete.
            self.call.check()?;
            Ok(explain)
        })
    }

    /// Executes an aggregation: returns its rows; no rows if its last stage writes them.
    pub(crate) fn aggregate(&self, scope: &Scope, collection: &str) -> Result<Cursor> {
        if !self.writes() {
            return self.rows(scope, collection, Self::parse_pipeline);
        }
        scope.write(&self.call, |writer| sink::write(writer, collection, self))?;
        Ok(Cursor::empty(collection))
    }

    /// Returns whether an aggregation writes its documents into a collection.
    pub(crate) fn writes(&self) -> bool {
        self.pipeline.last().is_some_and(|last| Sink::is(Doc::from(last)))
    }

    /// Counts the documents, after skip and limit.
    pub(crate) fn count(&self, scope: &Scope, collection: &str) -> Result<u64> {
        let mut rows = self.rows(scope, collection, Self::parse_count)?;
        rows.advance()?;
        let counted = rows.document().and_then(|row| row.get("n")).and_then(Number::of);
        Ok(counted.and_then(Number::to_i64).and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default())
    }

    /// Calls `visitor` with each distinct value at `path`, in order.
    pub(crate) fn distinct(
        &self,
        scope: &Scope,
        collection: &str,
        path: &str,
        mut visitor: impl FnMut(Value<'_>),
    ) -> Result<()> {
        let mut rows = self.rows(scope, collection, |request, defined| request.parse_distinct(defined, path))?;
        while rows.advance()? {
            if let Some(value) = rows.document().and_then(|row| row.get("v")) {
                visitor(value);
            }
        }
        Ok(())
    }
}

fn first_given<const N: usize>(options: [(&'static str, bool); N]) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Maximum size of an argument in bytes: MongoDB's limit for documents. Parsing uses several times as much memory.
const MAX_ARGUMENT: usize = 16 << 20;

/// Fails with `BSONObjectTooLarge` (10334) above [`MAX_ARGUMENT`].
fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MAX_ARGUMENT {
        return Ok(());
    }
    Err(Error::too_large(format!("an argument of a call has {bytes} bytes, and the most is {MAX_ARGUMENT}")))
}

#[cfg(test)]
mod tests {
    use bson::{doc, rawdoc};

    use super::*;

    #[test]
    fn an_argument_that_is_not_a_document_fails_the_call() {
        let broken = || bson::RawDocumentBuf::from_bytes(vec![9, 0, 0, 0, 16, b'a', 0, 1, 0]).unwrap();
        let (mut sorted, mut projected) = (Request::new(doc! { "a": 5 }), Request::new(doc! { "a": 5 }));
        sorted.sort(broken());
        projected.projection(broken());
        let undefined = Request::new(rawdoc! { "a": bson::RawBson::Undefined });
        for request in [Request::new(broken()), sorted, projected, undefined] {
            let catalog = Catalog::default();
            assert!(request.parse_find(&request.bind(&catalog, "c").unwrap()).is_err(), "{request:?}");
        }
    }
}
