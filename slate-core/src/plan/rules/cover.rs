//! A projection whose fields an index's entries hold is answered from them: no record is fetched.
//!
//! An entry holds what the document does only where no array was met, nothing was cut off and the path is a field of
//! the document itself. The order of the fields within the document is kept with entries of several fields.

use slate_query::{path::Path, projection::Projection};

use crate::{
    Result,
    catalog::IndexInfo,
    plan::{Context, CoveredField, IdPlan, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<()> {
    let Plan::Project { input, projection, document, .. } = plan else { return Ok(()) };
    if let Some((RawPlan::Fetch { ids: IdPlan::Index(scan) }, window)) = input.sliced_leaf_mut()
        && let Some(fields) = fields(&scan.index, projection)
    {
        *plan = Plan::Covered { scan: scan.take(), fields, window, document: std::mem::take(document) };
    }
    Ok(())
}

/// The projection's fields, where an index's entries hold them all.
fn fields(index: &IndexInfo, projection: &Projection) -> Option<Vec<CoveredField>> {
    if index.is_multikey() || index.truncated {
        return None;
    }
    projection.included()?.iter().map(|shown| field(index, shown)).collect()
}

/// Whether an index's entries hold all the projection's fields.
pub(super) fn serves(index: &IndexInfo, projection: &Projection) -> bool {
    let held = |shown: &[Path]| shown.iter().all(|shown| field(index, shown).is_some());
    !index.is_multikey() && !index.truncated && projection.included().is_some_and(held)
}

fn field(index: &IndexInfo, shown: &Path) -> Option<CoveredField> {
    if shown.as_str() == "_id" {
        return Some(CoveredField::Id);
    }
    let field = index.pattern.fields().iter().position(|(path, _)| path == shown)?;
    (shown.parts().len() == 1).then_some(CoveredField::Indexed(field))
}
