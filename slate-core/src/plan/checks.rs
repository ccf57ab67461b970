use std::sync::Arc;

use slate_query::{
    filter::{Filter, Node},
    interval::IntervalSet,
    path::Path,
};

use super::Conjuncts;
use crate::catalog::IndexInfo;

/// Conditions that are evaluated on the values of an index entry, before its record is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// The allowed values of fields after the bounds, by the field's position in the index.
    pub(crate) values: Vec<(usize, IntervalSet)>,
    /// The conditions that no set of values decides.
    pub(crate) filter: Option<Arc<EntryFilter>>,
}

impl Checks {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.filter.is_none()
    }

    /// Returns the number of checks that are expected to reject entries.
    pub(crate) fn selective(&self) -> usize {
        self.values.len() + usize::from(self.filter.as_ref().is_some_and(|filter| filter.is_selective))
    }
}

/// A filter on the values of an entry, decoded into a document of its own.
#[derive(Clone, Debug)]
pub(crate) struct EntryFilter {
    /// The conjuncts as in the query, for explain.
    pub(crate) drawn: Filter,
    /// `drawn` with the names of the decoded document's fields ([`EntryFilter::name`]) in place of the paths.
    pub(crate) filter: Filter,
    /// How many leading fields of the index the document contains.
    pub(crate) fields: usize,
    /// Whether the document contains the `_id`.
    pub(crate) has_id: bool,
    /// Whether one of the conditions has no part in the bounds, so that entries within them may fail it.
    pub(crate) is_selective: bool,
}

impl EntryFilter {
    /// Returns the filter for those of the conjuncts that an entry decides and that are not `decided` yet, and the set of
    /// these conjuncts. `None` if there are none. The conjuncts in `limited` have a part in the bounds.
    ///
    /// An entry decides a condition on a field if it contains the exact value of the document: the index has no collation
    /// and no truncated value, and no document has an array on the field's path. Every entry contains the `_id`.
    pub(super) fn of(
        index: &IndexInfo,
        conjuncts: &[Node],
        decided: Conjuncts,
        limited: Conjuncts,
    ) -> Option<(Self, Conjuncts)> {
        let (mut drawn, mut relocated, mut added) = (Vec::new(), Vec::new(), Conjuncts::default());
        let (fields, has_id) = (std::cell::Cell::new(0), std::cell::Cell::new(false));
        let to = |path: &Path| {
            if path.parts().first().is_some_and(|first| first.name() == "_id") {
                has_id.set(true);
                return Some(path.clone());
            }
            let field = index.pattern.fields().iter().position(|(held, _)| held == path)?;
            fields.set(fields.get().max(field + 1));
            index.holds_values_at(field).then(|| Path::parse(&Self::name(field)).ok())?
        };
        for (place, node) in conjuncts.iter().enumerate() {
            let one = Conjuncts::one(place);
            // A conjunct after the 64th stays in the filter, so evaluating it on the entry, too, would be redundant.
            if decided.contains(place) || one == Conjuncts::default() || index.truncated {
                continue;
            }
            let before = (fields.get(), has_id.get());
            match node.relocated(&to) {
                Some(node_on_entry) => {
                    drawn.push(node.clone());
                    relocated.push(node_on_entry);
                    added = added.union(one);
                }
                None => {
                    fields.set(before.0);
                    has_id.set(before.1);
                }
            }
        }
        (!drawn.is_empty()).then(|| {
            let filter = Filter::of_conjuncts(relocated);
            let fields = if has_id.get() { index.pattern.fields().len() } else { fields.get() };
            let is_selective = !added.are_within(limited);
            (Self { drawn: Filter::of_conjuncts(drawn), filter, fields, has_id: has_id.get(), is_selective }, added)
        })
    }

    /// Returns the name, without dots, of an index's field in the decoded document.
    pub(crate) fn name(field: usize) -> String {
        format!("f{field}")
    }
}
