use slate_query::raw::Doc;
use slate_store::View;

use super::{Resources, Rows, open::open_shared};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::Plan,
    spill::{Spool, SpoolRows},
};

/// Executes a plan to its end and returns its rows, so that a transaction can write while the caller iterates.
pub(crate) fn gather<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<SpoolRows> {
    let resources = resources.of_plan(&plan, 1)?;
    let mut gathered = Spool::new(resources.memory.clone());
    let mut rows = open_shared(plan, view, collection, &resources)?;
    while rows.advance()? {
        if let Some(row) = rows.current() {
            gathered.push(row.bytes())?;
        }
    }
    gathered.into_rows()
}

impl Rows for SpoolRows {
    fn park(&mut self) {
        self.park();
    }

    fn advance(&mut self) -> Result<bool> {
        SpoolRows::advance(self)
    }

    fn current(&self) -> Option<Doc<'_>> {
        SpoolRows::current(self).map(Doc::new)
    }
}
