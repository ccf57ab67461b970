use bson::{Document, doc};
use slate_query::{filter::Filter, interval::IntervalSet, pattern::Direction, pipeline::Kept, sort::Sort};

use super::{Description, IdPlan, Node, Window};
use crate::{
    document::{long, number},
    plan::{
        bounds_text::{Strings, bounds_text, drawn},
        mongo_fields::{condition, direction_name, sort_pattern},
        reads::Read,
        shown::{MongoStage, ShownNode},
        shown_text::shown_text,
    },
};

/// The raw tier: yields records as borrowed raw BSON.
#[derive(Clone, Debug)]
pub(crate) enum RawPlan {
    /// No rows, independent of the data.
    Eof { reason: &'static str },
    /// All records, or those within bounds on `_id`, in the order of `_id`.
    Scan { bounds: Option<IntervalSet>, direction: Direction },
    /// The record of each id.
    Fetch { ids: IdPlan },
    /// The records that match.
    Filter { input: Box<RawPlan>, filter: Filter },
    /// The records in order. If the input is ordered by the first `presorted` fields, only rows that are equal in them
    /// are held and sorted at a time. Returns at most `limit` records, with the fields `kept`, and drops others early.
    Sort { input: Box<RawPlan>, sort: Sort, presorted: usize, limit: Option<u64>, kept: Kept },
    /// The records without the first `skip`, at most `limit` of them.
    Slice { input: Box<RawPlan>, window: Window },
}

impl Node for RawPlan {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        match self {
            Self::Eof { reason } => visit(Description {
                show: &|shown, collection| {
                    let is_missing = reason.contains("does not exist");
                    let name = if is_missing { "nonExistentNamespace" } else { "predicateEvalsToFalse" };
                    let shown = shown.with("collection", collection).with("reason", *reason).line(*reason);
                    shown.shown_as(MongoStage::Records("EOF", doc! { "type": name }))
                },
                ..Description::of("EOF", "EOF")
            }),
            Self::Scan { bounds, direction } => visit(Description {
                read: Some(Read::Records(bounds.as_ref())),
                show: &|shown, collection| {
                    let shown = shown_scan(shown, collection, bounds.as_ref(), *direction);
                    let mut fields = doc! { "direction": direction_name(*direction) };
                    let Some(bounds) = bounds else { return shown.shown_as(MongoStage::Records("COLLSCAN", fields)) };
                    let bounds = doc! { "_id": bounds_text(bounds, Direction::Ascending, Strings::Plain) };
                    fields = doc! { "keyPattern": { "_id": 1 }, "direction": direction_name(*direction), "indexBounds": bounds };
                    shown.shown_as(MongoStage::Records("CLUSTERED_IXSCAN", fields))
                },
                ..Description::of("COLLSCAN", "SCAN")
            }),
            Self::Fetch { ids } => visit(Description {
                inputs: &[ids],
                show: &|shown, collection| {
                    let shown = shown.with("collection", collection).line(collection);
                    shown.shown_as(MongoStage::Records("FETCH", Document::new()))
                },
                ..Description::of("FETCH", "FETCH")
            }),
            Self::Filter { input, filter } => visit(Description {
                inputs: &[&**input],
                show: &|shown, _| {
                    let text = shown_text(filter);
                    shown.with("filter", &text).line(text).shown_as(MongoStage::Condition(condition(filter)))
                },
                ..Description::of("FILTER", "FILTER")
            }),
            Self::Sort { input, sort, presorted, limit, .. } => visit(Description {
                inputs: &[&**input],
                holders: 1,
                show: &|shown, _| shown_sort(shown, sort, *presorted, *limit),
                ..Description::of("SORT", "SORT")
            }),
            Self::Slice { input, window } => {
                visit(Description { window: *window, inputs: &[&**input], ..Description::HIDDEN });
            }
        }
    }
}

/// Shows a scan of records, whose stage in MongoDB depends on what the scan is for.
pub(super) fn shown_scan(
    shown: ShownNode,
    collection: &str,
    bounds: Option<&IntervalSet>,
    direction: Direction,
) -> ShownNode {
    let direction = direction_name(direction);
    let shown = shown.with("collection", collection).with("direction", direction);
    let Some(bounds) = bounds else { return shown.line(format!("{collection} {direction}")) };
    let bounds = drawn(bounds, Strings::Plain);
    let shown = shown.line(format!("{collection} {direction}: _id {bounds}"));
    shown.with("bounds", doc! { "_id": bounds })
}

fn shown_sort(shown: ShownNode, sort: &Sort, presorted: usize, limit: Option<u64>) -> ShownNode {
    let mut fields = doc! { "sortPattern": sort_pattern(sort) };
    let mut shown = shown.with("by", sort.to_string()).line(sort.to_string());
    if presorted > 0 {
        shown = shown.with("presorted", long(presorted));
        shown.line.push_str(&format!(" within groups of the first {presorted}"));
    }
    if let Some(limit) = limit {
        shown = shown.with("limit", long(limit));
        shown.line.push_str(&format!(", top {limit}"));
        fields.insert("limitAmount", number(limit));
    }
    fields.insert("type", "simple");
    shown.mongo("SORT", fields)
}

impl RawPlan {
    /// Returns the lowest node, which has no input in the raw tier.
    pub(crate) fn leaf(&self) -> &Self {
        match self {
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Slice { input, .. } => input.leaf(),
            Self::Eof { .. } | Self::Scan { .. } | Self::Fetch { .. } => self,
        }
    }

    /// Returns whether a node of the raw tier sorts its rows.
    pub(crate) fn sorts(&self) -> bool {
        match self {
            Self::Sort { .. } => true,
            Self::Filter { input, .. } | Self::Slice { input, .. } => input.sorts(),
            Self::Eof { .. } | Self::Scan { .. } | Self::Fetch { .. } => false,
        }
    }
}
