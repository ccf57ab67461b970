//! A projection whose fields an index's entries hold is answered from them: no record is fetched.
//!
//! An entry holds what the document does only where no array was met, nothing was cut off and the path is a field of
//! the document itself. The order of the fields within the document is kept with entries of several fields.

use slate_query::projection::Projection;

use crate::{
    Result,
    plan::{AccessPath, Context, CoveredField, IdPlan, Plan, RawPlan},
};

pub(super) fn apply(plan: Plan, _: &Context<'_>) -> Result<Plan> {
    let Plan::Project { input, projection, document, filter } = plan else { return Ok(plan) };
    if let Some((RawPlan::Fetch { ids: IdPlan::Index(scan) }, window)) = input.sliced_leaf() {
        let path =
            AccessPath::Index { index: scan.index.clone(), bounds: scan.bounds.clone(), checks: scan.checks.clone() };
        if let Some(fields) = fields(&path, &projection) {
            return Ok(Plan::Covered { scan: scan.clone(), fields, window, document });
        }
    }
    Ok(Plan::Project { input, projection, document, filter })
}

/// The projection's fields, where an index's entries hold them all.
pub(super) fn fields(path: &AccessPath, projection: &Projection) -> Option<Vec<CoveredField>> {
    let AccessPath::Index { index, .. } = path else { return None };
    if index.is_multikey() || index.truncated {
        return None;
    }
    let held = index.pattern.fields();
    let place = |shown: &slate_query::path::Path| {
        if shown.as_str() == "_id" {
            return Some(CoveredField::Id);
        }
        let field = held.iter().position(|(path, _)| path == shown)?;
        (shown.parts().len() == 1).then_some(CoveredField::Indexed(field))
    };
    projection.included()?.iter().map(place).collect()
}
