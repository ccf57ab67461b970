//! Finds, counts and distinct values over views. A request becomes an aggregation of the collection that the view reads;
//! its pipeline is the view's pipeline, followed by stages for the request.

use bson::{doc, rawdoc};
use slate_query::{
    Code,
    expression::Bindings,
    path::Path,
    pattern::Direction,
    pipeline::{self, Stage},
    raw::{Doc, Kind, Value},
    sort::Sort,
};

use super::{
    definitions::Definitions,
    request::{Request, RequestSource},
};
use crate::{
    Error, IntoDocument, Result,
    metrics::OperationKind,
    plan::{Query, Window},
};

impl Request {
    /// Returns the query of a `find` over the view that the request reads. Fails for an option that an aggregation does not
    /// have.
    pub(super) fn find_over_view(&self, defined: &Definitions<'_>) -> Result<Query> {
        if let Some(name) = self.of_index_keys().or(self.find.unlike_aggregate) {
            let message = format!("Option '{name}' not supported in aggregation.");
            return Err(Error::invalid(Code::INVALID_PIPELINE_OPERATOR, message).at(name));
        }
        let bindings = self.bindings_of(defined)?;
        let mut stages = self.matches_in_view(defined, bindings)?;
        stages.extend(self.order_in_view(bindings)?);
        stages.extend(window(self.window));
        if let Some(projection) = self.projection.as_ref().filter(|projection| !Doc::from(*projection).is_empty()) {
            stages.extend(parse([rawdoc! { "$project": projection.clone() }], bindings)?);
        }
        Ok(Query { kind: OperationKind::Find, ..self.pipeline_query(defined, stages, bindings)? })
    }

    /// Returns the query of a count over the view.
    pub(super) fn count_over_view(&self, defined: &Definitions<'_>) -> Result<Query> {
        let bindings = self.bindings_of(defined)?;
        let mut stages = self.matches_in_view(defined, bindings)?;
        stages.extend(window(self.window));
        stages.push(Stage::Count("n".into()));
        Ok(Query { kind: OperationKind::Count, ..self.pipeline_query(defined, stages, bindings)? })
    }

    /// Returns the query of the distinct values at a path of the view's documents.
    pub(super) fn distinct_over_view(
        &self,
        defined: &Definitions<'_>,
        path: &Path,
        direction: Direction,
    ) -> Result<Query> {
        let bindings = self.bindings_of(defined)?;
        let mut stages = self.matches_in_view(defined, bindings)?;
        // An array within an array stays an array when the outer one is unwound, and `distinct` finds no fields in it.
        let (mut unwinds, mut within, mut outer) = (Vec::new(), Vec::new(), String::new());
        for part in path.as_str().split('.') {
            if !outer.is_empty() {
                within.push(doc! { "$eq": [{ "$type": format!("${outer}") }, "object"] });
                outer.push('.');
            }
            outer.push_str(part);
            let unwind = doc! { "path": format!("${outer}"), "preserveNullAndEmptyArrays": true };
            unwinds.push(doc! { "$unwind": unwind });
        }
        stages.extend(parse(unwinds, bindings)?);
        let grouped = [
            doc! { "$match": { path.as_str(): { "$exists": true }, "$expr": { "$and": within } } },
            doc! { "$group": { "_id": format!("${path}") } },
            // Sorts by a document, within which an array is compared as a whole. A sort by the array would compare
            // its elements.
            doc! { "$project": { "_id": 0, "key": { "v": "$_id" } } },
            doc! { "$sort": { "key": direction.sign() } },
        ];
        stages.extend(parse(grouped, bindings)?);
        stages.extend(window(self.window));
        stages.extend(parse([doc! { "$project": { "v": "$key.v" } }], bindings)?);
        Ok(Query { kind: OperationKind::Distinct, ..self.pipeline_query(defined, stages, bindings)? })
    }

    /// Returns the stages of the view, and a `$match` unless the filter is empty.
    fn matches_in_view(&self, defined: &Definitions<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
        self.check()?;
        let mut stages = defined.view_stages(bindings)?;
        if let Some(filter) = self.filter.as_ref().filter(|filter| !Doc::from(*filter).is_empty()) {
            stages.extend(parse([rawdoc! { "$match": filter.clone() }], bindings)?);
        }
        Ok(stages)
    }

    fn order_in_view(&self, bindings: &Bindings) -> Result<Vec<Stage>> {
        let Some(sort) = self.sort.as_ref().filter(|sort| !Doc::from(*sort).is_empty()) else {
            return Ok(Vec::new());
        };
        if Sort::parse(sort.into())?.natural().is_some() {
            if let RequestSource::Given(_) = self.source {
                // The given documents were put into this order before.
                return Ok(Vec::new());
            }
            let message = "$natural is not supported in the sort of a view";
            return Err(Error::invalid(Code::INVALID_PIPELINE_OPERATOR, message).at("sort"));
        }
        parse([rawdoc! { "$sort": sort.clone() }], bindings)
    }
}

fn window(Window { skip, limit }: Window) -> impl Iterator<Item = Stage> {
    let skip = (skip > 0).then_some(Stage::Skip(skip));
    skip.into_iter().chain(limit.map(Stage::Limit))
}

fn parse(stages: impl IntoIterator<Item = impl IntoDocument>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let stages = stages.into_iter().map(IntoDocument::into_document).collect::<Result<Vec<_>>>()?;
    let stages = stages.iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
    Ok(pipeline::parse(stages, bindings)?)
}
