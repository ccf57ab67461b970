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
    /// The meters of the output tier's nodes; empty unless explain measures the execution.
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
        self.advance_with(|rows| rows.advance().map(u64::from)).map(|rows| rows > 0)
    }

    /// Like [`DocumentRows::advance_run`](super::DocumentRows::advance_run).
    pub(super) fn advance_run(&mut self) -> Result<u64> {
        self.advance_with(Output::advance_run)
    }

    #[inline]
    fn advance_with(&mut self, advance: impl FnOnce(&mut Output<V>) -> Result<u64>) -> Result<u64> {
        let start = self.meters.first().map(Meter::start);
        let rows = advance(&mut self.rows)?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved_by(start, rows));
        }
        Ok(rows)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.rows.current()
    }
}
