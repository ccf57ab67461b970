//! `returnKey` of a find: the keys of the index that the plan reads, in place of the documents.

use bson::{Bson, doc};
use slate_query::{
    expression::Bindings,
    pipeline::{self, Stage},
    raw::{OwnedValue, Value},
};

use super::{DocumentNode, Optimization};
use crate::{
    Error, Hint, Result,
    catalog::IndexInfo,
    plan::{IdPlan, Plan, Query, RawPlan},
};

/// Adds the node that replaces documents by their keys. A document that no index found has an empty key.
///
/// # Errors
/// Fails with `NotImplemented` (238) for an index that has several keys of a document: the plan does not know which of them found it.
pub(in crate::plan) fn add_to(nodes: &mut Vec<DocumentNode>, query: &Query, plan: &Plan) -> Result<()> {
    let Plan::Whole { input } = plan else { return Ok(()) };
    let names = match input.leaf() {
        RawPlan::Scan { bounds: None, .. } if !follows_id(query) => Vec::new(),
        RawPlan::Scan { .. } | RawPlan::Fetch { ids: IdPlan::Points(_) } => vec!["_id"],
        RawPlan::Fetch { ids: IdPlan::Index(scan) } => names(&scan.index)?,
        _ => Vec::new(),
    };
    let value = |name: &str| doc! { "k": { "$literal": name }, "v": { "$ifNull": [format!("${name}"), Bson::Null] } };
    let keys = match names.as_slice() {
        [] => doc! { "$literal": {} },
        names => doc! { "$arrayToObject": [names.iter().map(|name| value(name)).collect::<Vec<_>>()] },
    };
    let stage = OwnedValue::from(&Bson::Document(doc! { "$replaceWith": keys }));
    let stages: Vec<Stage> = pipeline::parse([stage.as_value()] as [Value<'_>; 1], &Bindings::default())?;
    nodes.extend(stages.into_iter().map(|stage| DocumentNode::of(stage, Optimization::On)));
    Ok(())
}

fn names(index: &IndexInfo) -> Result<Vec<&str>> {
    if index.is_multikey() || index.is_part() {
        return Err(Error::unsupported_by_name("returnKey of an index with several keys of a document").at("returnKey"));
    }
    Ok(index.pattern.fields().iter().map(|(path, _)| path.as_str()).collect())
}

/// Returns whether a scan of all documents counts as a scan of the index on `_id`: a hint names it, or the sort begins
/// with `_id`.
fn follows_id(query: &Query) -> bool {
    let is_hinted = match &query.hint {
        Some(Hint::Name(name)) => name == "_id_",
        Some(Hint::Keys(_)) => true,
        Some(Hint::Forward | Hint::Backward) | None => false,
    };
    let first = query.sort.as_ref().and_then(|sort| sort.fields().first());
    is_hinted || first.is_some_and(|(path, _)| path.as_str() == "_id")
}
