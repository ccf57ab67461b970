use bson::{RawDocumentBuf, doc};
use slate_query::{
    collation::Collation, filter::Filter, interval::IntervalSet, path::Path, pattern::Direction,
    projection::Projection, raw::Doc,
};

use super::{Description, IdPlan, IndexScan, Node, RawPlan, Window, ids::id_index_scan, raw::shown_scan};
use crate::plan::{
    DocumentNode,
    mongo_fields::is_simple,
    reads::Read,
    shown::{MongoStage, ShownNode},
};

/// The output tier.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Whole {
        input: RawPlan,
    },
    Project {
        input: RawPlan,
        projection: Projection,
        document: RawDocumentBuf,
        filter: Filter,
    },
    /// Documents built from the entries of an index alone.
    Covered {
        scan: IndexScan,
        fields: Vec<CoveredField>,
        window: Window,
        document: RawDocumentBuf,
    },
    Count {
        input: RawPlan,
    },
    /// The number of keys, without reading records.
    CountKeys {
        keys: CountedKeys,
        window: Window,
    },
    Distinct {
        input: RawPlan,
        path: Path,
        values: Values,
    },
    /// The distinct values of an index's last field, found by seeking from one value to the next.
    DistinctKeys {
        scan: IndexScan,
        values: Values,
    },
    /// The distinct values of an index's field, taken from every entry.
    DistinctEntries {
        scan: IndexScan,
        /// The position of the field in the index.
        field: usize,
        path: Path,
        values: Values,
    },
    /// The document tier: nodes executed on the rows of another plan, in order.
    Pipeline {
        input: Box<Plan>,
        nodes: Vec<DocumentNode>,
    },
}

/// The keys to count.
#[derive(Clone, Debug)]
pub(crate) enum CountedKeys {
    Records {
        bounds: Option<IntervalSet>,
    },
    /// Entries of which each record has at most one.
    Entries(IndexScan),
    /// The records that entries refer to, each once.
    Ids(IdPlan),
}

/// A field of a document built from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoveredField {
    Id,
    /// The field at this position in the index.
    Indexed(usize),
}

/// The order of distinct values, and the window of them to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) direction: Direction,
    pub(crate) window: Window,
    /// How strings are compared, if not by their bytes.
    pub(crate) collation: Option<Collation>,
}

impl Values {
    /// Returns whether a walk over the index returns the values in this order.
    pub(crate) fn are_sorted_by(&self, scan: &IndexScan) -> bool {
        scan.index.pattern.fields().last().is_some_and(|(_, direction)| *direction == self.direction)
    }

    fn show(&self, shown: ShownNode, path: &str) -> ShownNode {
        let mut shown = shown.with("path", path).line(path);
        if self.direction == Direction::Descending {
            shown = shown.with("direction", "descending");
            shown.line.push_str(" descending");
        }
        shown
    }

    /// Like [`show`](Self::show), over the scan of an index.
    fn show_scan(&self, shown: ShownNode, path: &str) -> ShownNode {
        self.show(shown, path).shown_as(MongoStage::Values(doc! { "transformBy": { path: 1, "_id": 0 } }))
    }
}

impl Plan {
    /// Returns the plan of a query without rows.
    pub(crate) fn eof(reason: &'static str) -> Self {
        Self::Whole { input: RawPlan::Eof { reason } }
    }
}

impl Node for Plan {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        match self {
            Self::Whole { input } => visit(Description { inputs: &[input], ..Description::HIDDEN }),
            Self::Project { input, document, .. } => visit(Description {
                inputs: &[input],
                show: &|shown, _| {
                    let document = Doc::from(document);
                    shown.projects(
                        if is_simple(document) { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" },
                        document,
                    )
                },
                ..Description::of("PROJECTION", "PROJECT")
            }),
            Self::Covered { scan, window, document, .. } => visit(Description {
                window: *window,
                inputs: &[&scan.named("IXSCAN")],
                show: &|shown, _| shown.projects("PROJECTION_COVERED", Doc::from(document)),
                ..Description::of("PROJECTION_COVERED", "COVERED")
            }),
            Self::Count { input } => visit(Description {
                inputs: &[input],
                show: &|shown, _| shown.shown_as(MongoStage::Count),
                ..Description::of("COUNT", "COUNT")
            }),
            Self::CountKeys { keys, window } => visit(Description {
                window: *window,
                inputs: &[keys],
                show: &|shown, _| shown.shown_as(MongoStage::Count),
                ..Description::of("COUNT_SCAN", "COUNT KEYS")
            }),
            Self::Distinct { input, path, values } => visit(Description {
                window: values.window,
                inputs: &[input],
                holders: 1,
                show: &|shown, _| values.show(shown, path.as_str()),
                ..Description::of("DISTINCT", "DISTINCT")
            }),
            Self::DistinctKeys { scan, values } => visit(Description {
                window: values.window,
                inputs: &[&scan.named("DISTINCT_SCAN")],
                holders: usize::from(!values.are_sorted_by(scan)),
                show: &|shown, _| {
                    let path = scan.index.pattern.fields().last().map_or("", |(path, _)| path.as_str());
                    values.show_scan(shown, path)
                },
                ..Description::of("DISTINCT_SCAN", "DISTINCT KEYS")
            }),
            Self::DistinctEntries { scan, path, values, .. } => visit(Description {
                window: values.window,
                inputs: &[&scan.named("DISTINCT_SCAN")],
                holders: 1,
                show: &|mut shown, _| {
                    for scan in &mut shown.inputs {
                        scan.details.insert("everyEntry", true);
                        scan.line.push_str(", every entry");
                    }
                    values.show_scan(shown, path.as_str())
                },
                ..Description::of("DISTINCT_SCAN", "DISTINCT KEYS")
            }),
            Self::Pipeline { input, nodes } => visit(Description {
                inputs: &[&**input],
                holders: nodes.iter().map(Node::holders).sum(),
                show: &|input, collection| {
                    nodes.iter().fold(input, |input, node| node.shown_over(vec![input], collection))
                },
                ..Description::HIDDEN
            }),
        }
    }
}

impl Node for CountedKeys {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        match self {
            Self::Records { bounds } => visit(Description {
                read: Some(Read::KeysOfRecords(bounds.as_ref())),
                show: &|shown, collection| {
                    let fields = id_index_scan(bounds.as_ref().unwrap_or(&IntervalSet::all()));
                    shown_scan(shown, collection, bounds.as_ref(), Direction::Ascending).mongo("COUNT_SCAN", fields)
                },
                ..Description::of("COLLSCAN", "SCAN")
            }),
            Self::Entries(scan) => scan.named("COUNT_SCAN").describe(visit),
            Self::Ids(ids) => ids.describe(visit),
        }
    }
}
