use std::{borrow::Cow, sync::Arc};

use slate_query::{
    Code,
    collation::Collation,
    distinct,
    expression::Bindings,
    filter::Filter,
    pattern::Direction,
    pipeline::{self, Stage},
    projection::Projection,
    raw::{Doc, Kind, Value},
    sink::Sink,
    sort::Sort,
    update::Update,
};

use super::request::{FindResult, Request};
use crate::{
    Error, Result,
    catalog::{Catalog, CollectionInfo, ResolvedView, not_on_view},
    exec::Target,
    metrics::OperationKind,
    plan::{self, ForeignView, Hint, KeyLimits, Output, Query, Ties, Values, Window},
};

/// A request with the definitions of what it reads or writes, taken from the catalog of the snapshot on which it is executed.
pub(crate) struct BoundRequest<'r> {
    pub(super) request: &'r Request,
    catalog: &'r Catalog,
    /// The view that the request reads, if it reads a view.
    view: Option<Arc<ResolvedView>>,
    /// The collection that is read in the end; an empty one if it does not exist.
    source: Cow<'r, CollectionInfo>,
}

impl<'r> BoundRequest<'r> {
    pub(super) fn new(request: &'r Request, catalog: &'r Catalog, name: &str) -> Result<Self> {
        let view = match &request.own_documents {
            Some(documents) => Some(ResolvedView::of_documents(name, documents, request.natural_order())),
            None => catalog.resolved_view(name)?,
        };
        let view = view.map(Arc::new);
        let source = catalog.collection_or_empty(view.as_ref().map_or(name, |view| &view.collection));
        Ok(Self { request, catalog, view, source })
    }

    /// Returns the collection that the request reads in the end.
    pub(super) fn source(&self) -> &CollectionInfo {
        &self.source
    }

    /// Returns whether an update inserts a document if none matches.
    pub(crate) fn upserts(&self) -> bool {
        self.request.upsert
    }

    /// Returns whether strings are compared otherwise than by their bytes.
    pub(super) fn compares_by_collation(&self) -> bool {
        self.comparing().is_some()
    }

    /// Returns how strings are compared, if not by their bytes: as the request says, or else by the collation of the view or
    /// collection.
    fn comparing(&self) -> Option<&Collation> {
        let defined = || self.view.as_ref().map_or(&self.source.collation, |view| &view.collation);
        self.request.collation.as_ref().unwrap_or_else(defined).as_ref()
    }

    pub(crate) fn parse_projection(&self) -> Result<Option<Projection>> {
        let Some(projection) = &self.request.projection else { return Ok(None) };
        Ok(Some(Projection::parse(Doc::from(projection), &self.bindings()?)?))
    }

    /// Returns the variables of the operation, which begins now. Each variable can use the variables before it.
    pub(super) fn bindings(&self) -> Result<Bindings> {
        self.request.bindings(self.comparing())
    }

    fn parse_filter(&self) -> Result<Filter> {
        if self.request.variables.is_some() {
            // Returns the error of an invalid variable even if no expression uses it.
            self.bindings()?;
        }
        let Some(filter) = self.request.filter.as_ref().map(Doc::from) else { return Ok(Filter::all()) };
        match Filter::parse(filter) {
            Ok(_) if self.comparing().is_some() => Ok(Filter::parse_with(filter, &self.bindings()?)?),
            // Filters with expressions are rare, so the variables are computed only for these. As in MongoDB, the filter
            // of an upsert cannot use variables.
            Err(error) if error.code() == Code::QUERY_FEATURE_NOT_ALLOWED && !self.request.upsert => {
                Ok(Filter::parse_with(filter, &self.bindings()?)?)
            }
            parsed => Ok(parsed?),
        }
    }

    /// Parses an update, which is a document or an array.
    pub(crate) fn parse_update(&self, update: Value<'_>) -> Result<Update> {
        let bindings = match update.kind() {
            Kind::Array => self
                .request
                .constants
                .iter()
                .flat_map(|constants| Doc::from(constants).elements())
                .try_fold(self.bindings()?, |bindings, constant| {
                    let name = constant.display_name();
                    bindings.with(&name, Some(constant.value.to_owned())).map_err(|error| error.at(format!("c.{name}")))
                })?,
            _ => Bindings::default().with_collation(self.comparing().cloned()),
        };
        let array_filters: Vec<Doc<'_>> = self.request.array_filters.iter().map(Doc::from).collect();
        let update = Update::parse(update, &array_filters, &bindings)?;
        Ok(update)
    }

    /// Parses everything except the projection.
    pub(crate) fn parse(&self, output: Output, ties: Ties) -> Result<Query> {
        self.request.check()?;
        let mut query = Query::of(self.parse_filter()?);
        let sort = |sort| Ok::<_, Error>(Sort::parse(Doc::from(sort))?.with_collation(self.comparing().cloned()));
        query.sort = self.request.sort.as_ref().map(sort).transpose()?;
        query.skip = self.request.skip;
        query.limit = self.request.limit;
        query.hint = self.request.hint.clone();
        if let Some(direction) = query.sort.as_ref().and_then(Sort::natural) {
            (query.sort, query.hint) = match ties {
                Ties::Any => (None, Some(Hint::Natural(direction))),
                // The document that a write to one document changes depends on the sort, never on the plan.
                Ties::ById => (Some(plan::sort_by_id(direction)?), query.hint),
            };
        }
        query.force = self.request.force;
        query.output = output;
        query.ties = ties;
        Ok(query)
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
        Window { skip: self.request.skip, limit: self.request.limit }
    }

    /// Parses a query that returns its rows.
    pub(crate) fn parse_find(&self) -> Result<Query> {
        self.request.check()?;
        if self.view.is_some() {
            return self.find_over_view();
        }
        let output = match (self.parse_projection()?, &self.request.projection) {
            _ if self.request.find_result == FindResult::Key => Output::Key,
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
        let (min, max) = (self.request.min.clone(), self.request.max.clone());
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
        if self.request.hint.is_none() {
            let message = "When using min()/max() a hint of which index to use must be provided";
            return Err(Error::invalid(Code(51_173), message).at("hint"));
        }
        Ok(Some(KeyLimits { min, max, collation: self.comparing().cloned() }))
    }

    /// Parses an aggregation.
    pub(crate) fn parse_aggregate(&self) -> Result<(Query, Option<Sink>)> {
        self.request.check()?;
        let bindings = self.bindings()?;
        let last =
            self.request.pipeline.last().map(|last| Sink::parse(Doc::from(last), &bindings)).transpose()?.flatten();
        let stages = self.request.pipeline.len() - usize::from(last.is_some());
        let stages =
            self.request.pipeline.iter().take(stages).map(|stage| Value::new(Kind::Document, stage.as_bytes()));
        if let (Some(view), Some(first)) = (&self.view, self.request.pipeline.first())
            && Doc::from(first).get("$collStats").is_some()
        {
            return Err(not_on_view(view.name()).at("$collStats"));
        }
        let stages = pipeline::parse(self.view_documents().chain(stages), &bindings)?;
        let has_own = self.request.has_own_documents || self.request.own_documents.is_some();
        if matches!(stages.first(), Some(Stage::Documents(_))) != has_own {
            let message = match self.request.has_own_documents {
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
        let pipeline = self.view.iter().flat_map(|view| &view.pipeline);
        pipeline.map(|stage| Value::new(Kind::Document, stage.as_bytes()))
    }

    /// Returns the parsed stages of the view that the request reads.
    pub(super) fn view_stages(&self, bindings: &Bindings) -> Result<Vec<Stage>> {
        Ok(pipeline::parse(self.view_documents(), bindings)?)
    }

    /// Builds the query that executes these stages.
    pub(super) fn pipeline_query(&self, stages: Vec<Stage>, bindings: &Bindings) -> Result<Query> {
        let mut query = plan::pipeline_query(stages, self.request.optimization);
        let others = self.catalog.resolved_views(query.pipeline.collections().map(Box::from))?;
        for view in self.view.iter().chain(&others) {
            if view.collation.as_ref() != self.comparing() {
                let message = format!("the collation of the view {} cannot be overridden", view.name());
                return Err(Error::invalid(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message).at("collation"));
            }
        }
        let foreign = |definition: &Arc<ResolvedView>| {
            let stages = definition.pipeline.iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
            Ok(ForeignView { definition: Arc::clone(definition), stages: pipeline::parse(stages, bindings)? })
        };
        query.view.clone_from(&self.view);
        query.others = others.iter().map(foreign).collect::<Result<_>>()?;
        if self.comparing().is_some() && query.sort.is_none() && !matches!(query.output, Output::Count) {
            // The first of several equal strings represents them, whatever the plan.
            query.sort = Some(plan::sort_by_id(Direction::Ascending)?);
        }
        query.kind = OperationKind::Aggregate;
        query.hint = self.request.hint.clone();
        query.force = self.request.force;
        Ok(query)
    }

    pub(crate) fn parse_count(&self) -> Result<Query> {
        if self.view.is_some() {
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
        if self.view.is_some() {
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
}
