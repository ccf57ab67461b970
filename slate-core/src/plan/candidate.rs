//! A candidate: the finished plan of a query by one access path, as data that the rules change in place. Only the candidate
//! that is chosen becomes a tree of nodes, so that weighing many of them costs little.

use slate_query::pipeline::Kept;

use super::{
    Access, AccessPath, CountedKeys, CoveredField, IdPlan, IndexScan, Output, Plan, Query, RawPlan,
    keys_only::drawn,
    rules::{self, FiredRules, Outcome},
};

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) access: Access,
    /// Whether records have to satisfy conditions that the access path does not decide.
    pub(super) is_filtered: bool,
    /// How records are sorted; `None` if no sort is needed.
    pub(super) sorting: Option<Sorting>,
    /// The limit of the index scan.
    pub(super) scan_limit: Option<u64>,
    pub(super) source: RowSource,
    /// The rules that changed it.
    pub(super) rules: FiredRules,
}

/// A sort of records by the order of the query. See [`RawPlan::Sort`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sorting {
    pub(super) presorted: usize,
    pub(super) limit: Option<u64>,
}

/// What the output of the query is made from.
#[derive(Clone, Debug)]
pub(super) enum RowSource {
    /// No rows.
    Nothing {
        reason: &'static str,
    },
    Records,
    /// The entries of an index, which contain these fields.
    Covered(Vec<CoveredField>),
    CountedKeys,
    /// The entries of an index, seeking from one value to the next.
    DistinctKeys,
    /// The values of this field in every entry of an index.
    DistinctEntries(usize),
}

impl Candidate {
    /// Creates the plan that is correct by construction (read by the access path, filter, sort, slice, project), and applies
    /// the rules in order.
    pub(super) fn new(access: Access, query: &Query) -> Self {
        let sorting = query.order().map(|_| Sorting::default());
        let (is_filtered, rules) = (!query.filter.is_empty(), FiredRules::default());
        let mut candidate = Self { access, is_filtered, sorting, scan_limit: None, source: RowSource::Records, rules };
        for (number, rule) in rules::ALL.iter().enumerate() {
            let outcome = (rule.apply)(&mut candidate, query);
            if outcome != Outcome::Unchanged {
                candidate.rules.add(number);
            }
            if outcome == Outcome::Finished {
                break;
            }
        }
        candidate
    }

    /// Returns whether every record of the access path is a row, in the order of the path.
    pub(super) fn reads_only(&self) -> bool {
        !self.is_filtered && self.sorting.is_none()
    }

    /// Returns whether the result is made from keys, without reading records.
    pub(super) fn is_keys_only(&self) -> bool {
        match self.source {
            RowSource::Nothing { .. } | RowSource::Records => false,
            RowSource::Covered(_)
            | RowSource::CountedKeys
            | RowSource::DistinctKeys
            | RowSource::DistinctEntries(_) => true,
        }
    }

    /// Returns the nodes of the plan.
    pub(super) fn into_plan(self, query: &Query) -> Plan {
        let window = query.window();
        let (mut leaf, exact_for) = (self.access.path.into_leaf(self.access.direction), self.access.exact_for);
        if let RawPlan::Fetch { ids: IdPlan::Index(IndexScan { limit, .. }) } = &mut leaf {
            *limit = self.scan_limit;
        }
        match (self.source, leaf, &query.output) {
            (RowSource::Nothing { reason }, _, output) => output.of(RawPlan::Eof { reason }, query),
            (RowSource::Covered(fields), RawPlan::Fetch { ids: IdPlan::Index(scan) }, output) => {
                let document = match output {
                    Output::Project { document, .. } => document.clone(),
                    _ => drawn(output.included().unwrap_or_default()),
                };
                Plan::Covered { scan, fields, window, document }
            }
            (RowSource::CountedKeys, RawPlan::Fetch { ids }, _) => {
                let keys = match ids {
                    IdPlan::Index(scan) if scan.finds_once() => CountedKeys::Entries(scan),
                    ids => CountedKeys::Ids(ids),
                };
                Plan::CountKeys { keys, window }
            }
            (RowSource::CountedKeys, RawPlan::Scan { bounds, .. }, _) => {
                Plan::CountKeys { keys: CountedKeys::Records { bounds }, window }
            }
            (RowSource::DistinctKeys, RawPlan::Fetch { ids: IdPlan::Index(scan) }, Output::Distinct { values, .. }) => {
                Plan::DistinctKeys { scan, values: values.clone() }
            }
            (
                RowSource::DistinctEntries(field),
                RawPlan::Fetch { ids: IdPlan::Index(scan) },
                Output::Distinct { path, values },
            ) => Plan::DistinctEntries { scan, field, path: path.clone(), values: values.clone() },
            (_, mut input, output) => {
                if self.is_filtered
                    && let Some(filter) = query.filter.without(|conjunct| exact_for.contains(conjunct))
                {
                    input = RawPlan::Filter { input: Box::new(input), filter };
                }
                if let (Some(Sorting { presorted, limit }), Some(sort)) = (self.sorting, query.order()) {
                    let kept = match output {
                        Output::Fields(fields) => Kept::paths(fields),
                        _ => Kept::default(),
                    };
                    input = RawPlan::Sort { input: Box::new(input), sort: sort.clone(), presorted, limit, kept };
                }
                if !window.is_all() {
                    input = RawPlan::Slice { input: Box::new(input), window };
                }
                output.of(input, query)
            }
        }
    }
}

impl Output {
    /// Returns the only fields that rows may have, if an index could contain them.
    pub(super) fn included(&self) -> Option<&[slate_query::path::Path]> {
        match self {
            Self::Project { projection, .. } => projection.included(),
            Self::Fields(fields) => Some(fields),
            Self::Whole | Self::Key | Self::Count | Self::Distinct { .. } => None,
        }
    }

    /// Returns the plan that makes the output from records.
    fn of(&self, input: RawPlan, query: &Query) -> Plan {
        match self {
            Self::Whole | Self::Key | Self::Fields(_) => Plan::Whole { input },
            Self::Project { projection, .. } if projection.is_identity() => Plan::Whole { input },
            Self::Project { projection, document } => Plan::Project {
                input,
                projection: projection.clone(),
                document: document.clone(),
                filter: query.filter.clone(),
            },
            Self::Count => Plan::Count { input },
            Self::Distinct { path, values } => Plan::Distinct { input, path: path.clone(), values: values.clone() },
        }
    }
}

impl AccessPath {
    /// Returns whether every key of the path has a record: it is that of a record, or of an entry, not one from the filter.
    pub(super) fn is_of_keys(&self) -> bool {
        match self {
            Self::Records { .. } | Self::Index { .. } => true,
            Self::Points { .. } => false,
            Self::Merge { inputs, .. } => inputs.iter().all(Self::is_of_keys),
        }
    }
}
