use slate_query::raw::Doc;
use slate_store::View;

use super::{Resources, Rows, output::open_shared};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::Plan,
    spill::{Spool, SpoolRows},
};

/// Rows that were all read in advance, so that a transaction can write while the caller iterates.
pub(crate) struct GatheredRows(SpoolRows);

/// Executes a plan to its end and stores its rows.
pub(crate) fn gather<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<GatheredRows> {
    let resources = resources.of_plan(&plan, 1)?;
    let mut gathered = Spool::new(resources.memory.clone());
    let mut rows = open_shared(plan, view, collection, &resources)?;
    while rows.advance()? {
        if let Some(row) = rows.current() {
            gathered.push(row.bytes())?;
        }
    }
    Ok(GatheredRows(gathered.into_rows()?))
}

impl Rows for GatheredRows {
    fn advance(&mut self) -> Result<bool> {
        self.0.advance()
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.0.current().map(Doc::new)
    }
}
