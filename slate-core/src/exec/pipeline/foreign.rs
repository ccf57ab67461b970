use std::sync::Arc;

use slate_query::{
    filter::Filter,
    path::Path,
    pipeline::{Stage, not_first},
};
use slate_store::{Bounds, View};

use crate::{
    Result,
    catalog::CollectionInfo,
    exec::{BoxedRows, Meter, Resources, open},
    plan::{self, Optimization},
};

/// Another collection or view that a stage reads, in the same view of the store. What its queries read is counted as read by the
/// stage.
pub(super) struct Foreign<V: View> {
    view: V,
    /// The name of the collection.
    name: Box<str>,
    /// `None` if the collection does not exist.
    collection: Option<Arc<CollectionInfo>>,
    /// The stages that make the view's documents. `None` for a collection.
    view_stages: Option<Vec<Stage>>,
    optimization: Optimization,
    resources: Resources,
}

impl<V: View> Foreign<V> {
    pub(super) fn new(name: &str, optimization: Optimization, view: &V, resources: &Resources, meter: &Meter) -> Self {
        let of_view = resources.views.iter().find(|view| view.definition.name() == name);
        let name = of_view.map_or(name, |of_view| &of_view.definition.collection);
        Self {
            view: view.clone(),
            name: name.into(),
            collection: resources.catalog.collection(name).cloned(),
            view_stages: of_view.map(|of_view| of_view.stages.clone()),
            optimization,
            resources: Resources { recorder: meter.within(), ..resources.clone() },
        }
    }

    pub(super) fn memory_limit(&self) -> usize {
        self.resources.memory.limit()
    }

    /// Returns whether a query with `filter`, a condition on `path`, finds its documents by an index or by `_id`
    /// instead of a scan.
    pub(super) fn is_indexed(&self, path: &Path, filter: &Filter) -> bool {
        // If every stage of the view passes on the value at the path, a filter on it can be applied to the collection.
        let passes = |stage: &Stage| {
            !matches!(stage, Stage::Limit(_) | Stage::Skip(_) | Stage::Sample(_)) && stage.preserves(path)
        };
        self.view_stages.iter().flatten().all(passes)
            && self.collection.as_ref().is_some_and(|collection| plan::narrows(collection, filter))
    }

    /// Returns whether this is a view. The documents of a view come in any order.
    pub(super) fn is_view(&self) -> bool {
        self.view_stages.is_some()
    }

    pub(super) fn has_fewer_records(&self, than: u64) -> Result<bool> {
        let Some(collection) = &self.collection else { return Ok(true) };
        let counted = self.view.count(collection.records, Bounds::default(), |counted| counted < than)?;
        Ok(counted.is_some_and(|counted| counted < than))
    }

    /// Executes a pipeline on the collection or view.
    pub(super) fn open<'v>(&self, mut stages: Vec<Stage>) -> Result<BoxedRows<'v>>
    where
        V: 'v,
    {
        if let Some(first) = &self.view_stages {
            if let Some(source) = stages.first().filter(|stage| stage.is_source() && !first.is_empty()) {
                return Err(not_first(source.name()).into());
            }
            stages.splice(0..0, first.iter().cloned());
        }
        let absent = || Arc::new(CollectionInfo::absent(&self.name));
        let collection = self.collection.clone().unwrap_or_else(absent);
        let query = plan::pipeline_query(stages, self.optimization);
        let plan = plan::build(&query, &self.view, &collection)?.plan;
        plan.count_uses(&collection);
        open(plan, &self.view, &collection, &self.resources)
    }
}
