//! The rules that rewrite pipelines, in the order in which they are applied.
//!
//! To add a rule, write a function that returns whether it changed the stages, with a doc comment that states what it
//! rewrites and why the result does not change. Add its line in [`ALL`].

use slate_query::{expression::Needs, pipeline::Stage};

/// A rewriting of pipelines that does not change their result.
struct Rule {
    name: &'static str,
    apply: fn(&mut Vec<Stage>) -> bool,
}

/// Every rule.
const ALL: &[Rule] = &[
    // Before `match_earlier`, which can move the filter further forward.
    Rule { name: "match_before_group", apply: match_before_group },
    // Early, because moving the filters away leaves more stages next to each other for the rules below.
    Rule { name: "match_earlier", apply: |stages| match_earlier(stages) },
    // Before `slice_earlier`: a `$limit` between a stage and a `$sort` keeps the sort where it is.
    Rule { name: "sort_earlier", apply: |stages| sort_earlier(stages) },
    Rule { name: "slice_earlier", apply: |stages| slice_earlier(stages) },
    // After the rules that move stages, because only adjacent stages are merged.
    Rule { name: "merge_stages", apply: merge_stages },
    // The last two rules depend on the stages that follow a stage. `unused_fields` comes last, because only the stages
    // that remain read fields.
    Rule { name: "unused_stages", apply: unused_stages },
    Rule { name: "unused_fields", apply: |stages| unused_fields(stages) },
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

/// Moves the conditions of a `$match` on the `_id` of a preceding `$group` before the group. The `_id` must be the value
/// of one field, or the conditions must be on a field of the `_id` that is the value of a document's field. The same
/// groups remain, and an index can serve the conditions.
fn match_before_group(stages: &mut Vec<Stage>) -> bool {
    let mut is_changed = false;
    let mut rewritten: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages.drain(..) {
        let keys = match (&stage, rewritten.last()) {
            (Stage::Match(_), Some(Stage::Group(group))) => group.key_fields(),
            _ => Vec::new(),
        };
        let Stage::Match(filter) = stage else {
            rewritten.push(stage);
            continue;
        };
        let mut left = Some(filter);
        for (id, field) in keys {
            let Some((moved, rest)) = left.as_ref().map(|filter| filter.split_at(&id, &field)) else { break };
            if let Some(moved) = moved {
                rewritten.insert(rewritten.len() - 1, Stage::Match(moved));
                is_changed = true;
                left = rest;
            }
        }
        rewritten.extend(left.map(Stage::Match));
    }
    *stages = rewritten;
    is_changed
}

/// Moves a `$match` before a `$project`, `$addFields` or `$unwind` that does not change the fields of its filter, and before a `$sort`.
/// The same documents pass, and fewer of them reach the other stage; at the start of the pipeline an index can serve it.
fn match_earlier(stages: &mut [Stage]) -> bool {
    move_earlier(stages, |stage, before| match stage {
        Stage::Match(filter) => before.can_follow_match(filter),
        _ => false,
    })
}

/// Moves a `$sort` before a `$project` or `$addFields` that does not change its fields. Every document has the same sort key before and
/// after it; at the start of the pipeline an index can provide the order.
fn sort_earlier(stages: &mut [Stage]) -> bool {
    move_earlier(stages, |stage, before| match stage {
        Stage::Sort(sort) => before.can_follow_sort(sort),
        _ => false,
    })
}

/// Moves a `$skip` or `$limit` before a stage that returns one document for each of its input, so that the stage is not
/// executed on the documents that are dropped, and a `$sort` before it holds fewer rows.
fn slice_earlier(stages: &mut [Stage]) -> bool {
    move_earlier(stages, |stage, before| matches!(stage, Stage::Skip(_) | Stage::Limit(_)) && before.is_one_to_one())
}

/// Merges a stage with the one before it, so that documents pass through one stage less: two `$match`, two `$addFields` of different
/// fields, a `$sort` after another one, and a `$project` that shows some of the fields that another one shows.
fn merge_stages(stages: &mut Vec<Stage>) -> bool {
    let before = stages.len();
    let mut merged: Vec<Stage> = Vec::with_capacity(before);
    for stage in stages.drain(..) {
        match merged.last_mut() {
            Some(last) => match last.merged(&stage) {
                Some(both) => *last = both,
                None => merged.push(stage),
            },
            None => merged.push(stage),
        }
    }
    *stages = merged;
    stages.len() < before
}

/// Removes the stages on which the result does not depend: a `$match` without conditions, `$skip: 0`, a `$sort` before a
/// `$count`, a `$project` or `$addFields` that cannot fail and does not change the fields that later stages read, and a
/// `$lookup` by an equality if no later stage reads its array.
fn unused_stages(stages: &mut Vec<Stage>) -> bool {
    let before = stages.len();
    let mut needs = Needs::Whole;
    let mut kept: Vec<Stage> = Vec::with_capacity(before);
    for stage in stages.drain(..).rev() {
        let is_counted = matches!(kept.last(), Some(Stage::Count(_)));
        if stage.is_unused(&needs) || (is_counted && matches!(stage, Stage::Sort(_))) {
            continue;
        }
        needs = stage.needs(needs);
        kept.push(stage);
    }
    kept.reverse();
    *stages = kept;
    stages.len() < before
}

/// Drops the fields that no later stage reads from the documents of an `$unwind`, a `$lookup` and a `$setWindowFields`, so that
/// they are not copied for each element, match or result, and from those of a `$group`, so that they are not computed.
fn unused_fields(stages: &mut [Stage]) -> bool {
    let (mut needs, mut is_changed) = (Needs::Whole, false);
    for stage in stages.iter_mut().rev() {
        match stage {
            Stage::Unwind(unwind) => unwind.keep(needs.clone()),
            Stage::Lookup(lookup) => lookup.keep(needs.clone()),
            Stage::SetWindowFields(windows) => windows.keep(&needs),
            Stage::Group(group) => is_changed |= group.keep(&needs),
            _ => {}
        }
        is_changed |=
            needs != Needs::Whole && matches!(stage, Stage::Unwind(_) | Stage::Lookup(_) | Stage::SetWindowFields(_));
        needs = stage.needs(needs);
    }
    is_changed
}
