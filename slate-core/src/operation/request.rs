use std::{sync::Arc, time::Duration};

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    collation::Collation,
    distinct,
    expression::Interruption,
    filter::Filter,
    number::Number,
    pattern::Direction,
    pipeline::{self, Bindings, Sink, Stage},
    projection::Projection,
    raw::{Doc, Kind, Value, validate},
    sort::Sort,
    update::Update,
};

use crate::{
    CancelToken, Error, Explain, ExplainVerbosity, IntoDocument, Result, ReturnDocument,
    catalog::{Definitions, ResolvedView, not_on_view},
    clock::now_millis,
    exec::{Rows, Target},
    interrupt::{CallLimits, Interrupt},
    metrics::OperationKind,
    operation::write_op::WriteOptions,
    operation::{read_op::ReadOp, scope::Scope, sink},
    plan::{self, Force, ForeignView, Hint, KeyLimits, Optimization, Output, Query, Ties, Values, Window},
    spill::{Budget, DiskUse},
};

/// The arguments that a builder collects. They are parsed when the builder is run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// `None` matches every document, and is also used for an invalid argument.
    pub(super) filter: Option<RawDocumentBuf>,
    pub(super) sort: Option<RawDocumentBuf>,
    pub(super) projection: Option<RawDocumentBuf>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) hint: Option<Hint>,
    /// `min` and `max` of a find.
    pub(crate) min: Option<RawDocumentBuf>,
    pub(crate) max: Option<RawDocumentBuf>,
    pub(crate) find_result: FindResult,
    /// An option of a find that aggregations do not have. A find over a view does not support it either.
    pub(crate) unlike_aggregate: Option<&'static str>,
    pub(crate) force: Force,
    /// The stages of an aggregation.
    pipeline: Vec<RawDocumentBuf>,
    /// Whether the pipeline reads no collection.
    pub(crate) has_own_documents: bool,
    /// The variables of expressions.
    variables: Option<RawDocumentBuf>,
    /// How strings are compared. `Some(None)`: by their bytes, even if the collection has a collation.
    collation: Option<Option<Collation>>,
    /// The definitions with which the request is parsed.
    definitions: Definitions,
    /// Values of further variables, for an update given as a pipeline.
    pub(crate) constants: Option<RawDocumentBuf>,
    optimization: Optimization,
    pub(crate) write_options: WriteOptions,
    pub(crate) interrupt: Interrupt,
    pub(crate) memory: Budget,
    /// The conditions on array elements of an update.
    pub(crate) array_filters: Vec<RawDocumentBuf>,
    /// Whether an update inserts a document if none matches.
    pub(crate) upsert: bool,
    /// Which version of the document an update returns.
    pub(crate) returns: ReturnDocument,
    /// The error of the first invalid argument, returned when the builder is run.
    fault: Option<Fault>,
}

/// What a find returns of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FindResult {
    /// The document, or its projection.
    #[default]
    Document,
    /// Its key in the index that found it: `returnKey`.
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
        let whole = |document: RawDocumentBuf| validate(document.as_bytes()).map(drop).map(|()| document);
        self.accept(document.into_document().and_then(|document| Ok(whole(document)?)))
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

    pub(crate) fn sort(&mut self, sort: impl IntoDocument) {
        self.sort = self.take(sort);
    }

    pub(crate) fn projection(&mut self, projection: impl IntoDocument) {
        self.projection = self.take(projection);
    }

    pub(crate) fn skip(&mut self, documents: u64) {
        self.skip = documents;
    }

    pub(crate) fn limit(&mut self, documents: u64) {
        self.limit = Some(documents);
    }

    pub(crate) fn hint(&mut self, hint: crate::Hint) {
        self.hint = Some(hint.into());
    }

    pub(crate) fn memory_limit(&mut self, bytes: usize) {
        self.memory.limit = Some(bytes);
    }

    pub(crate) fn allow_disk_use(&mut self, is_allowed: bool) {
        self.memory.disk = if is_allowed { DiskUse::Allowed } else { DiskUse::Refused };
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
        self.array_filters = filters.into_iter().filter_map(|filter| self.take(filter)).collect();
    }

    pub(crate) fn bypass_document_validation(&mut self, is_bypassed: bool) {
        self.write_options.bypass_document_validation(is_bypassed);
    }

    pub(crate) fn bypass_empty_ts_replacement(&mut self, is_bypassed: bool) {
        self.write_options.bypass_empty_ts_replacement(is_bypassed);
    }

    pub(crate) fn upsert(&mut self) {
        self.upsert = true;
    }

    pub(crate) fn return_document(&mut self, returns: ReturnDocument) {
        self.returns = returns;
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) fn force(&mut self, candidate: usize) {
        self.force = Force::Candidate(candidate);
    }

    pub(crate) fn pipeline(&mut self, stages: impl IntoIterator<Item = impl IntoDocument>) {
        self.pipeline = stages.into_iter().filter_map(|stage| self.take(stage)).collect();
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) fn unoptimized(&mut self) {
        self.optimization = Optimization::Off;
    }

    pub(crate) fn limit_by(&mut self, limits: &CallLimits) {
        self.interrupt.limit_by(limits);
    }

    pub(crate) fn deadline(&mut self, within: Duration) {
        self.interrupt.deadline(within);
    }

    pub(crate) fn cancel(&mut self, token: CancelToken) {
        self.interrupt.cancel(token);
    }

    #[cfg(feature = "async")]
    pub(crate) fn child_token(&mut self) -> CancelToken {
        self.interrupt.child_token()
    }

    /// Returns how strings are compared, if not by their bytes.
    fn comparing(&self) -> Option<&Collation> {
        self.collation.as_ref().unwrap_or(&self.definitions.collation).as_ref()
    }

    /// Returns the collection's collation, if the request has none of its own and is parsed with it.
    fn inherited(&self) -> Option<Option<Collation>> {
        self.collation.is_none().then(|| self.definitions.collation.clone())
    }

    /// Returns the request with the definitions of what it reads or writes.
    pub(crate) fn with_definitions(&self, definitions: &Definitions) -> Self {
        Self { definitions: definitions.clone(), ..self.clone() }
    }

    /// Calls `work`, which parses and executes the request, and calls it again with the definitions of what it reads if
    /// they differ from those that the request was parsed with. Most requests concern a collection without a collation,
    /// so the definitions are not looked up before the first call.
    pub(crate) fn resolved<R>(&self, mut work: impl FnMut(&Self) -> Result<R>) -> Result<R> {
        let mut result = work(self);
        while let Some((_, definitions)) = result.as_ref().err().and_then(Error::definitions) {
            let request = self.with_definitions(definitions);
            result = work(&request);
        }
        result
    }

    /// Fails with the error of the first invalid argument, if there is one.
    pub(crate) fn check(&self) -> Result<()> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(fault.0.again()))
    }

    pub(crate) fn parse_projection(&self) -> Result<Option<Projection>> {
        let Some(projection) = &self.projection else { return Ok(None) };
        Ok(Some(Projection::parse(Doc::from(projection), &self.bindings()?)?))
    }

    /// Returns the variables of the operation, which begins now. Each variable can use the variables before it.
    pub(super) fn bindings(&self) -> Result<Bindings> {
        let variables = self.variables.as_ref().map(Doc::from);
        let interrupt = self.interrupt.clone();
        let interruption = Interruption::new(move || interrupt.check_evaluation());
        let empty = Bindings::new(now_millis()).with_collation(self.comparing().cloned());
        let empty = empty.with_interruption(interruption);
        Ok(variables.into_iter().flat_map(Doc::elements).try_fold(empty, |bindings, variable| {
            let name = variable.display_name();
            bindings.define(&name, variable.value).map_err(|error| error.at(format!("let.{name}")))
        })?)
    }

    fn parse_filter(&self) -> Result<Filter> {
        if self.variables.is_some() {
            // Returns the error of an invalid variable even if no expression uses it.
            self.bindings()?;
        }
        let Some(filter) = self.filter.as_ref().map(Doc::from) else { return Ok(Filter::all()) };
        match Filter::parse(filter) {
            Ok(_) if self.comparing().is_some() => Ok(Filter::parse_with(filter, &self.bindings()?)?),
            // Filters with expressions are rare, so the variables are computed only for these. As in MongoDB, the filter
            // of an upsert cannot use variables.
            Err(error) if error.code() == Code::QUERY_FEATURE_NOT_ALLOWED && !self.upsert => {
                Ok(Filter::parse_with(filter, &self.bindings()?)?)
            }
            parsed => Ok(parsed?),
        }
    }

    /// Parses an update, which is a document or an array.
    pub(crate) fn parse_update(&self, update: Value<'_>) -> Result<Update> {
        let bindings = match update.kind() {
            Kind::Array => self.constants.iter().flat_map(|constants| Doc::from(constants).elements()).try_fold(
                self.bindings()?,
                |bindings, constant| {
                    let name = constant.display_name();
                    bindings.with(&name, Some(constant.value.to_owned())).map_err(|error| error.at(format!("c.{name}")))
                },
            )?,
            _ => Bindings::default().with_collation(self.comparing().cloned()),
        };
        let array_filters: Vec<Doc<'_>> = self.array_filters.iter().map(Doc::from).collect();
        let update = Update::parse(update, &array_filters, &bindings)?;
        Ok(update)
    }

    /// Parses everything except the projection.
    pub(crate) fn parse(&self, output: Output, ties: Ties) -> Result<Query> {
        self.check()?;
        let mut query = Query::of(self.parse_filter()?);
        let sort = |sort| Ok::<_, Error>(Sort::parse(Doc::from(sort))?.with_collation(self.comparing().cloned()));
        query.sort = self.sort.as_ref().map(sort).transpose()?;
        query.skip = self.skip;
        query.limit = self.limit;
        query.hint = self.hint.clone();
        if let Some(direction) = query.sort.as_ref().and_then(Sort::natural) {
            (query.sort, query.hint) = match ties {
                Ties::Any => (None, Some(Hint::Natural(direction))),
                // The document that a write to one document changes depends on the sort, never on the plan.
                Ties::ById => (Some(plan::sort_by_id(direction)?), query.hint),
            };
        }
        query.force = self.force;
        query.inherited = self.inherited();
        query.output = output;
        query.ties = ties;
        query.memory = self.memory;
        Ok(query)
    }

    /// Finds the rows of the query.
    pub(crate) fn find(&self, scope: &Scope, collection: &str) -> Result<Box<dyn Rows + Send>> {
        self.resolved(|request| scope.find(collection, &request.parse_find()?, &request.interrupt))
    }

    /// Explains the query that `parse` returns.
    pub(crate) fn explain(
        &self,
        scope: &Scope,
        collection: &str,
        verbosity: ExplainVerbosity,
        parse: impl Fn(&Self) -> Result<Query>,
    ) -> Result<Explain> {
        self.resolved(|request| {
            let (query, interrupt) = (&parse(request)?, &request.interrupt);
            scope.read(collection, ReadOp::Explain { query, verbosity, interrupt }).map(Explain::new)
        })
    }

    /// Parses the query for the targets of a write.
    pub(crate) fn parse_targets(&self, target: Target) -> Result<Query> {
        let mut query = self.parse(Output::Whole, Ties::ById)?;
        if target == Target::One && query.order().is_some() {
            query.limit = Some(1);
        }
        Ok(query)
    }

    /// Returns the skip and the limit.
    pub(super) fn window(&self) -> Window {
        Window { skip: self.skip, limit: self.limit }
    }

    /// Parses a query that returns its rows.
    pub(crate) fn parse_find(&self) -> Result<Query> {
        self.check()?;
        if self.definitions.view.is_some() {
            return self.find_over_view();
        }
        let output = match (self.parse_projection()?, &self.projection) {
            _ if self.find_result == FindResult::Key => Output::Key,
            (Some(projection), Some(document)) => Output::Project { projection, document: document.clone() },
            _ => Output::Whole,
        };
        let mut query = self.parse(output, Ties::Any)?;
        query.limits = self.key_limits()?.map(Arc::new);
        match &query.output {
            Output::Project { projection, .. } if projection.needs_position() => {
                if query.filter.has_expression() {
                    let message = "$expr is not allowed with a positional projection";
                    return Err(Error::invalid(Code::QUERY_FEATURE_NOT_ALLOWED, message).at("$expr"));
                }
                Ok(query)
            }
            _ => Ok(query),
        }
    }

    /// Returns the limits of the hinted index's keys.
    fn key_limits(&self) -> Result<Option<KeyLimits>> {
        let (min, max) = (self.min.clone(), self.max.clone());
        if min.is_none() && max.is_none() {
            return Ok(None);
        }
        if let (Some(min), Some(max)) = (&min, &max) {
            let names = |limit| Doc::from(limit).elements().map(|element| element.name);
            if !names(min).eq(names(max)) {
                let message = "min and max must have the same field names";
                return Err(Error::invalid(Code(51_176), message).at("min"));
            }
        }
        if self.hint.is_none() {
            let message = "When using min()/max() a hint of which index to use must be provided";
            return Err(Error::invalid(Code(51_173), message).at("hint"));
        }
        Ok(Some(KeyLimits { min, max, collation: self.comparing().cloned() }))
    }

    /// Executes an aggregation: finds its rows, or writes them and returns none.
    pub(crate) fn aggregate(&self, scope: &Scope, collection: &str) -> Result<Box<dyn Rows + Send>> {
        self.resolved(|request| match request.parse_aggregate()? {
            (query, None) => scope.find(collection, &query, &request.interrupt),
            (_, Some(Sink::Merge(_))) if request.comparing().is_some() => {
                Err(Error::unsupported_by_name("collation in $merge").at("collation"))
            }
            (query, Some(sink)) => {
                sink::write(scope, collection, &query, &sink, request.write_options, &request.interrupt)?;
                Ok(Box::new(NoRows) as Box<dyn Rows + Send>)
            }
        })
    }

    /// Returns whether an aggregation writes its documents into a collection.
    #[cfg(feature = "async")]
    pub(crate) fn writes(&self) -> bool {
        let name = self.pipeline.last().and_then(|last| Doc::from(last).elements().next().map(|first| first.name));
        matches!(name, Some(b"$out" | b"$merge"))
    }

    /// Parses an aggregation.
    pub(crate) fn parse_aggregate(&self) -> Result<(Query, Option<Sink>)> {
        self.check()?;
        let bindings = self.bindings()?;
        let last = self.pipeline.last().map(|last| Sink::parse(Doc::from(last), &bindings)).transpose()?.flatten();
        let stages = self.pipeline.len() - usize::from(last.is_some());
        let stages = self.pipeline.iter().take(stages).map(|stage| Value::new(Kind::Document, stage.as_bytes()));
        if let (Some(view), Some(first)) = (&self.definitions.view, self.pipeline.first())
            && Doc::from(first).get("$collStats").is_some()
        {
            return Err(not_on_view(view.name()).at("$collStats"));
        }
        let stages = pipeline::parse(self.view_documents().chain(stages), &bindings)?;
        if matches!(stages.first(), Some(Stage::Documents(_))) != self.has_own_documents {
            let message = match self.has_own_documents {
                true => "an aggregation of no collection begins with $documents",
                false => {
                    "$documents is only valid in an aggregation of no collection: {aggregate: 1}, Database::aggregate"
                }
            };
            return Err(Error::invalid(Code::INVALID_NAMESPACE, message).at("$documents"));
        }
        Ok((self.pipeline_query(stages, &bindings)?, last))
    }

    /// Returns the stages of the view that the request reads, as documents.
    fn view_documents(&self) -> impl Iterator<Item = Value<'_>> {
        let pipeline = self.definitions.view.iter().flat_map(|view| &view.pipeline);
        pipeline.map(|stage| Value::new(Kind::Document, stage.as_bytes()))
    }

    /// Returns the parsed stages of the view that the request reads.
    pub(super) fn view_stages(&self, bindings: &Bindings) -> Result<Vec<Stage>> {
        Ok(pipeline::parse(self.view_documents(), bindings)?)
    }

    /// Builds the query that executes these stages.
    pub(super) fn pipeline_query(&self, stages: Vec<Stage>, bindings: &Bindings) -> Result<Query> {
        let Definitions { view, others, .. } = &self.definitions;
        for view in view.iter().chain(others) {
            if view.collation.as_ref() != self.comparing() {
                let message = format!("the collation of the view {} cannot be overridden", view.name());
                return Err(Error::invalid(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message).at("collation"));
            }
        }
        let foreign = |definition: &Arc<ResolvedView>| {
            let stages = definition.pipeline.iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
            Ok(ForeignView { definition: Arc::clone(definition), stages: pipeline::parse(stages, bindings)? })
        };
        let mut query = plan::pipeline_query(stages, self.optimization);
        query.view.clone_from(view);
        query.others = others.iter().map(foreign).collect::<Result<_>>()?;
        if self.comparing().is_some() && query.sort.is_none() && !matches!(query.output, Output::Count) {
            // The first of several equal strings represents them, whatever the plan.
            query.sort = Some(plan::sort_by_id(Direction::Ascending)?);
        }
        query.kind = OperationKind::Aggregate;
        query.inherited = self.inherited();
        query.hint = self.hint.clone();
        query.force = self.force;
        query.memory = self.memory;
        Ok(query)
    }

    pub(crate) fn parse_count(&self) -> Result<Query> {
        if self.definitions.view.is_some() {
            return self.count_over_view();
        }
        let mut query = self.parse(Output::Count, Ties::Any)?;
        query.kind = OperationKind::Count;
        Ok(query)
    }

    pub(crate) fn parse_distinct(&self, path: &str) -> Result<Query> {
        let path = distinct::parse(path)?;
        let mut query = self.parse(Output::Count, Ties::Any)?;
        let direction = match query.sort.as_ref().map(Sort::fields) {
            None | Some([]) => Direction::Ascending,
            Some([(by, direction)]) if *by == path => *direction,
            Some(_) => {
                let message = format!("the distinct values of {path} can only be sorted by {path}");
                return Err(Error::invalid(Code::BAD_VALUE, message).at("sort"));
            }
        };
        if self.definitions.view.is_some() {
            return self.distinct_over_view(&path, direction);
        }
        // Sort, skip and limit apply to the values, not to the documents.
        let window = std::mem::replace(&mut query.skip, 0);
        let window = Window { skip: window, limit: query.limit.take() };
        query.sort = None;
        query.kind = OperationKind::Distinct;
        query.output =
            Output::Distinct { path, values: Values { direction, window, collation: self.comparing().cloned() } };
        Ok(query)
    }

    /// Counts the documents, after skip and limit.
    pub(crate) fn count(&self, scope: &Scope, collection: &str) -> Result<u64> {
        let mut rows = self.resolved(|request| scope.find(collection, &request.parse_count()?, &request.interrupt))?;
        rows.advance()?;
        let counted = rows.current().and_then(|row| row.get("n")).and_then(Number::of);
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
        let mut rows =
            self.resolved(|request| scope.find(collection, &request.parse_distinct(path)?, &request.interrupt))?;
        while rows.advance()? {
            if let Some(value) = rows.current().and_then(|row| row.get("v")) {
                visitor(value);
            }
        }
        Ok(())
    }
}

/// The rows of an aggregation that has written its documents.
struct NoRows;

impl Rows for NoRows {
    fn advance(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn current(&self) -> Option<Doc<'_>> {
        None
    }
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
            assert!(request.parse_find().is_err(), "{request:?}");
        }
    }
}
