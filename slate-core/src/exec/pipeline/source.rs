use slate_query::raw::Doc;
use slate_store::View;

use crate::{
    Result,
    catalog::CollectionInfo,
    exec::{
        Resources, Rows,
        meter::Meter,
        output::{Output, open_shared},
    },
    plan::Plan,
};

/// The rows of the plan below the document tier.
pub(crate) struct SourceRows<V: View> {
    rows: Output<V>,
    /// Of the nodes of the output tier, if they are measured.
    meters: Vec<Meter>,
}

impl<V: View> SourceRows<V> {
    pub(super) fn open(plan: Plan, view: &V, collection: &CollectionInfo, resources: &Resources) -> Result<Self> {
        let mut meters: Vec<Meter> = match resources.recorder {
            Some(_) => plan.stages().map(|stage| resources.meter(stage)).collect(),
            None => Vec::new(),
        };
        let start = meters.first().map(Meter::start);
        let rows = open_shared(plan, view, collection, resources)?;
        if let Some(start) = start {
            meters.iter_mut().for_each(|meter| meter.stop(start));
        }
        Ok(Self { rows, meters })
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.meters.first().map(Meter::start);
        let more = self.rows.advance()?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved(start, more));
        }
        Ok(more)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.rows.current()
    }
}
