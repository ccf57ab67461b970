//! The rules that rewrite pipelines, in the order in which they are applied.
//!
//! To add a rule, write a file with a function `apply` that returns whether it changed the stages, and a doc comment that
//! states what it rewrites and why the result does not change. Add its `mod` line and its line in [`ALL`].

mod match_before_group;
mod match_earlier;
mod merge_stages;
mod slice_earlier;
mod sort_earlier;
mod unused_fields;
mod unused_stages;

use slate_query::pipeline::Stage;

/// A rewriting of pipelines that does not change their result.
struct Rule {
    name: &'static str,
    apply: fn(&mut Vec<Stage>) -> bool,
}

const ALL: &[Rule] = &[
    // Before `match_earlier`, which can move the filter further forward.
    Rule { name: "match_before_group", apply: match_before_group::apply },
    // Early, because moving the filters away leaves more stages next to each other for the rules below.
    Rule { name: "match_earlier", apply: |stages| match_earlier::apply(stages) },
    // Before `slice_earlier`: a `$limit` between a stage and a `$sort` keeps the sort where it is.
    Rule { name: "sort_earlier", apply: |stages| sort_earlier::apply(stages) },
    Rule { name: "slice_earlier", apply: |stages| slice_earlier::apply(stages) },
    // After the rules that move stages, because only adjacent stages are merged.
    Rule { name: "merge_stages", apply: merge_stages::apply },
    // The last two rules depend on the stages that follow a stage. `unused_fields` comes last, because only the stages
    // that remain read fields.
    Rule { name: "unused_stages", apply: unused_stages::apply },
    Rule { name: "unused_fields", apply: |stages| unused_fields::apply(stages) },
];

/// Applies every rule to a pipeline and to those of its facets. Calls `fired` with the name of each rule that changed the stages.
pub(super) fn rewrite(stages: &mut Vec<Stage>, fired: &mut impl FnMut(&'static str)) {
    for rule in ALL {
        if (rule.apply)(stages) {
            fired(rule.name);
        }
    }
    for stage in stages {
        if let Stage::Facet(facet) = stage {
            facet.pipelines_mut().for_each(|stages| rewrite(stages, fired));
        }
    }
}

/// Moves each stage towards the front as long as `moves` returns true for it and its predecessor. Returns whether any stage
/// was moved.
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
