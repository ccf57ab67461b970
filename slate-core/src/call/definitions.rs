//! Binds requests to the definitions of the collections and views that they name, and parses them with these definitions.

use std::{borrow::Cow, cell::OnceCell, sync::Arc};

use slate_query::{
    Code,
    collation::Collation,
    distinct,
    expression::Bindings,
    filter::{BindingsSource, Filter},
    pattern::Direction,
    pipeline::{self, Stage},
    projection::Projection,
    raw::{Doc, Kind, Value},
    sink::Sink,
    sort::Sort,
    update::Update,
};

use super::request::{FindResult, Request, RequestSource};
use crate::{
    Error, Hint, Result,
    catalog::{Catalog, CollectionInfo, ResolvedView, not_on_view},
    exec::Target,
    metrics::OperationKind,
    plan::{self, ForeignView, KeyLimits, Nodes, Output, Query, Ties, Values},
};

/// The definitions that a request uses, from the catalog of the snapshot on which it is executed.
pub(crate) struct Definitions<'c> {
    catalog: &'c Catalog,
    /// The view that the request reads, or its [given](RequestSource::Given) documents as a view; `None` for a collection.
    view: Option<Arc<ResolvedView>>,
    /// The collection that is read, or on which the view is defined; an empty one if it does not exist.
    source: Cow<'c, CollectionInfo>,
    /// The variables of the request; computed at the first use.
    bindings: OnceCell<Bindings>,
}

impl<'c> Definitions<'c> {
    pub(super) fn of(request: &Request, catalog: &'c Catalog, name: &str) -> Result<Self> {
        let view = match &request.source {
            RequestSource::Given(documents) => {
                Some(ResolvedView::of_documents(name, documents, request.natural_order()))
            }
            RequestSource::Stored | RequestSource::Pipeline => {
                catalog.view(name).map(|view| catalog.resolved(view)).transpose()?
            }
        };
        let view = view.map(Arc::new);
        let source = catalog.collection_or_empty(view.as_ref().map_or(name, |view| &view.collection));
        Ok(Self { catalog, view, source, bindings: OnceCell::new() })
    }

    /// Returns the collection that the request reads, directly or through a view.
    pub(super) fn source(&self) -> &CollectionInfo {
        &self.source
    }

    /// Returns the stages of the view that the request reads, as documents; none for a collection.
    fn view_documents(&self) -> impl Iterator<Item = Value<'_>> {
        let pipeline = self.view.iter().flat_map(|view| &view.pipeline);
        pipeline.map(|stage| Value::new(Kind::Document, stage.as_bytes()))
    }

    /// Returns the parsed stages of the view that the request reads; none for a collection.
    pub(super) fn view_stages(&self, bindings: &Bindings) -> Result<Vec<Stage>> {
        Ok(pipeline::parse(self.view_documents(), bindings)?)
    }
}

/// Computes the variables of a request when a parser needs them.
struct RequestVariables<'r, 'c> {
    request: &'r Request,
    defined: &'r Definitions<'c>,
}

impl BindingsSource for RequestVariables<'_, '_> {
    fn bindings(&self) -> slate_query::Result<&Bindings> {
        self.request.bindings_of(self.defined)
    }
}

/// Parses a request with the definitions that it is bound to.
impl Request {
    /// Returns whether strings are compared by a collation rather than by their bytes.
    pub(super) fn compares_by_collation(&self, defined: &Definitions<'_>) -> bool {
        self.comparing(defined).is_some()
    }

    /// Returns the collation of the request, or else of the view or collection; `None` if strings are compared by their
    /// bytes.
    fn comparing<'d>(&'d self, defined: &'d Definitions<'_>) -> Option<&'d Collation> {
        let defined = || defined.view.as_ref().map_or(&defined.source.collation, |view| &view.collation);
        self.collation.as_ref().unwrap_or_else(defined).as_ref()
    }

    pub(crate) fn parse_projection(&self, defined: &Definitions<'_>) -> Result<Option<Projection>> {
        let Some(projection) = &self.projection else { return Ok(None) };
        Ok(Some(Projection::parse(Doc::from(projection), self.bindings_of(defined)?)?))
    }

    /// Returns the variables of the operation. The first call computes them, with `NOW` as the current time. Each variable can use the ones before
    /// it.
    pub(super) fn bindings_of<'d>(&self, defined: &'d Definitions<'_>) -> slate_query::Result<&'d Bindings> {
        if let Some(known) = defined.bindings.get() {
            return Ok(known);
        }
        let bindings = self.bindings(self.comparing(defined))?;
        Ok(defined.bindings.get_or_init(|| bindings))
    }

    fn parse_filter(&self, defined: &Definitions<'_>) -> Result<Filter> {
        if self.variables.is_some() {
            // Returns the error of an invalid variable even if no expression uses it.
            self.bindings_of(defined)?;
        }
        let Some(filter) = self.filter.as_ref().map(Doc::from) else { return Ok(Filter::all()) };
        // Filters with expressions are rare, so the variables are computed only for these. As in MongoDB, the filter of an upsert has none.
        let variables = RequestVariables { request: self, defined };
        let variables = (!self.update.upsert).then_some(&variables as &dyn BindingsSource);
        Ok(Filter::parse_lazily(filter, self.comparing(defined), variables)?)
    }

    /// Parses an update, which is a document or an array.
    pub(crate) fn parse_update(&self, defined: &Definitions<'_>, update: Value<'_>) -> Result<Update> {
        let bindings = match update.kind() {
            Kind::Array => self
                .update
                .constants
                .iter()
                .flat_map(|constants| Doc::from(constants).elements())
                .try_fold(self.bindings_of(defined)?.clone(), |bindings, constant| {
                    let name = constant.display_name();
                    bindings.with(&name, Some(constant.value.to_owned())).map_err(|error| error.at(format!("c.{name}")))
                })?,
            _ => Bindings::default().with_collation(self.comparing(defined).cloned()),
        };
        let array_filters: Vec<Doc<'_>> = self.update.array_filters.iter().map(Doc::from).collect();
        let update = Update::parse(update, &array_filters, &bindings)?;
        Ok(update)
    }

    /// Parses the filter, sort, window and hint. A sort by `$natural` becomes a hint, or with [`Ties::ById`] a sort by `_id`.
    pub(crate) fn parse(&self, defined: &Definitions<'_>, output: Output, ties: Ties) -> Result<Query> {
        self.check()?;
        let filter = self.parse_filter(defined)?;
        let parse =
            |sort| Ok::<_, Error>(Sort::parse(Doc::from(sort))?.with_collation(self.comparing(defined).cloned()));
        let (mut sort, mut hint) = (self.sort.as_ref().map(parse).transpose()?, self.hint.clone());
        if let Some(direction) = sort.as_ref().and_then(Sort::natural) {
            match ties {
                Ties::Any => (sort, hint) = (None, Some(Hint::natural(direction))),
                // Which document a write of one document changes must depend on the sort, never on the plan.
                Ties::ById => sort = Some(plan::sort_by_id(direction)?),
            }
        }
        Ok(Query {
            kind: OperationKind::Find,
            filter,
            sort: sort.filter(|sort| !sort.is_empty()),
            window: self.window,
            output,
            hint,
            limits: None,
            force: self.force,
            ties,
            pipeline: Nodes::default(),
            view: None,
            others: Arc::default(),
        })
    }

    /// Parses the query for the targets of a write. With [`Target::One`], a sorted query has the limit 1.
    pub(crate) fn parse_targets(&self, defined: &Definitions<'_>, target: Target) -> Result<Query> {
        let mut query = self.parse(defined, Output::Whole, Ties::ById)?;
        if target == Target::One && query.sort.is_some() {
            query.window.limit = Some(1);
        }
        Ok(query)
    }

    /// Parses a find, over a collection or a view.
    pub(crate) fn parse_find(&self, defined: &Definitions<'_>) -> Result<Query> {
        self.check()?;
        if defined.view.is_some() {
            return self.find_over_view(defined);
        }
        let output = match (self.parse_projection(defined)?, &self.projection) {
            _ if self.find.result == FindResult::Key => Output::Key,
            (Some(projection), Some(document)) => Output::Project { projection, document: document.clone() },
            _ => Output::Whole,
        };
        let mut query = self.parse(defined, output, Ties::Any)?;
        query.limits = self.key_limits(defined)?.map(Arc::new);
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

    /// Returns the limits of the hinted index's keys, `min` and `max`; `None` if neither is given. Fails with 51173 without a hint, with 51176 if the
    /// two have different fields.
    fn key_limits(&self, defined: &Definitions<'_>) -> Result<Option<KeyLimits>> {
        let (min, max) = (self.find.min.clone(), self.find.max.clone());
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
        Ok(Some(KeyLimits { min, max, collation: self.comparing(defined).cloned() }))
    }

    /// Parses an aggregation. Returns also its last stage if that stage writes.
    pub(crate) fn parse_aggregate(&self, defined: &Definitions<'_>) -> Result<(Query, Option<Sink>)> {
        self.check()?;
        let bindings = self.bindings_of(defined)?;
        let last = self.pipeline.last().map(|last| Sink::parse(Doc::from(last), bindings)).transpose()?.flatten();
        let stages = self.pipeline.len() - usize::from(last.is_some());
        let stages = self.pipeline.iter().take(stages).map(|stage| Value::new(Kind::Document, stage.as_bytes()));
        if let (Some(view), Some(first)) = (&defined.view, self.pipeline.first())
            && Doc::from(first).get("$collStats").is_some()
        {
            return Err(not_on_view(view.name()).at("$collStats"));
        }
        let stages = pipeline::parse(defined.view_documents().chain(stages), bindings)?;
        let reads_stored = matches!(self.source, RequestSource::Stored);
        if matches!(stages.first(), Some(Stage::Documents(_))) == reads_stored {
            let message = match self.source {
                RequestSource::Pipeline => "an aggregation of no collection begins with $documents",
                RequestSource::Stored | RequestSource::Given(_) => {
                    "$documents is only valid in an aggregation of no collection: {aggregate: 1}, Database::aggregate"
                }
            };
            return Err(Error::invalid(Code::INVALID_NAMESPACE, message).at("$documents"));
        }
        Ok((self.pipeline_query(defined, stages, bindings)?, last))
    }

    /// Parses an aggregation, and drops the last stage if it writes.
    pub(crate) fn parse_pipeline(&self, defined: &Definitions<'_>) -> Result<Query> {
        Ok(self.parse_aggregate(defined)?.0)
    }

    /// Builds the query that executes these stages. Fails with `OptionNotSupportedOnView` if a view that they read has another collation.
    pub(super) fn pipeline_query(
        &self,
        defined: &Definitions<'_>,
        stages: Vec<Stage>,
        bindings: &Bindings,
    ) -> Result<Query> {
        let mut query = plan::pipeline_query(stages, self.optimization);
        let others = match defined.catalog.has_views() {
            true => defined.catalog.resolved_views(query.pipeline.collections().map(Box::from))?,
            false => Vec::new(),
        };
        for view in defined.view.iter().chain(&others) {
            if view.collation.as_ref() != self.comparing(defined) {
                let message = format!("the collation of the view {} cannot be overridden", view.name());
                return Err(Error::invalid(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message).at("collation"));
            }
        }
        let foreign = |definition: &Arc<ResolvedView>| {
            let stages = definition.pipeline.iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
            Ok(ForeignView { definition: Arc::clone(definition), stages: pipeline::parse(stages, bindings)? })
        };
        query.view.clone_from(&defined.view);
        query.others = others.iter().map(foreign).collect::<Result<_>>()?;
        if self.comparing(defined).is_some() && query.sort.is_none() && !matches!(query.output, Output::Count) {
            // Strings that are equal by the collation may differ: which one represents them must not depend on the plan.
            query.sort = Some(plan::sort_by_id(Direction::Ascending)?);
        }
        query.kind = OperationKind::Aggregate;
        query.hint = self.hint.clone();
        query.force = self.force;
        Ok(query)
    }

    pub(crate) fn parse_count(&self, defined: &Definitions<'_>) -> Result<Query> {
        if defined.view.is_some() {
            return self.count_over_view(defined);
        }
        let mut query = self.parse(defined, Output::Count, Ties::Any)?;
        query.kind = OperationKind::Count;
        Ok(query)
    }

    pub(crate) fn parse_distinct(&self, defined: &Definitions<'_>, path: &str) -> Result<Query> {
        let path = distinct::parse(path)?;
        let mut query = self.parse(defined, Output::Count, Ties::Any)?;
        let direction = match query.sort.as_ref().map(Sort::fields) {
            None => Direction::Ascending,
            Some([(by, direction)]) if *by == path => *direction,
            Some(_) => {
                let message = format!("the distinct values of {path} can only be sorted by {path}");
                return Err(Error::invalid(Code::BAD_VALUE, message).at("sort"));
            }
        };
        if defined.view.is_some() {
            return self.distinct_over_view(defined, &path, direction);
        }
        // Sort, skip and limit apply to the values, not to the documents.
        let window = std::mem::take(&mut query.window);
        query.sort = None;
        query.kind = OperationKind::Distinct;
        query.output = Output::Distinct {
            path,
            values: Values { direction, window, collation: self.comparing(defined).cloned() },
        };
        Ok(query)
    }
}
