use std::sync::Arc;

use slate_query::pipeline::Stage;

use crate::catalog::ResolvedView;

/// A view that stages read, with its parsed pipeline.
#[derive(Clone, Debug)]
pub(crate) struct ForeignView {
    pub(crate) definition: Arc<ResolvedView>,
    pub(crate) stages: Vec<Stage>,
}

pub(crate) fn find<'v>(views: &'v [ForeignView], name: &str) -> Option<&'v ForeignView> {
    views.iter().find(|view| view.definition.name() == name)
}
