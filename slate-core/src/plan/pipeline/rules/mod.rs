//! The rules that rewrite pipelines, in the order in which they are applied.
//!
//! To add a rule, write a file with a function `apply` that returns whether it changed the stages, and a doc comment that
//! states what it rewrites and why the result does not change. Add its `mod` line and its line in [`ALL`].

mod match_earlier;
mod slice_earlier;
mod sort_earlier;

use slate_query::pipeline::Stage;

/// A rewriting of pipelines that does not change their result.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) apply: fn(&mut [Stage]) -> bool,
}

/// Every rule.
pub(super) const ALL: &[Rule] = &[
    // First, so that the others see the stages that filters leave adjacent.
    Rule { name: "match_earlier", apply: match_earlier::apply },
    // Before `slice_earlier`: a `$limit` between a stage and a `$sort` keeps the sort where it is.
    Rule { name: "sort_earlier", apply: sort_earlier::apply },
    Rule { name: "slice_earlier", apply: slice_earlier::apply },
];

/// Moves each stage for which `moves` is true before the stages that precede it, as far as `moves` allows; returns whether
/// any stage was moved. `moves` is called with a stage and its predecessor.
fn move_earlier(stages: &mut [Stage], moves: impl Fn(&Stage, &Stage) -> bool) -> bool {
    let mut is_changed = false;
    for start in 1..stages.len() {
        for at in (1..=start).rev() {
            let Some([before, stage]) = stages.get_mut(at - 1..=at) else { break };
            if !moves(stage, before) {
                break;
            }
            std::mem::swap(before, stage);
            is_changed = true;
        }
    }
    is_changed
}
