use bson::{Document, doc};
use slate_query::{interval::IntervalSet, pattern::Direction};

use super::{Description, IndexScan, Node};
use crate::plan::{
    bounds_text::{Strings, bounds_text, drawn},
    mongo_fields::direction_name,
    reads::Read,
    shown::MongoStage,
};

/// The ID tier: yields the keys of records, in a known order.
#[derive(Clone, Debug)]
pub(crate) enum IdPlan {
    /// The records of these `_id`s, in their order; an `_id` without a record yields nothing.
    Points(IntervalSet),
    /// The records that index entries refer to.
    Index(IndexScan),
    /// The records that any, or all, of the inputs return, in the order of `_id`.
    Merge { how: Combine, inputs: Vec<IdPlan> },
}

/// How a merge combines its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Union,
    Intersection,
}

impl Node for IdPlan {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        match self {
            Self::Points(points) => visit(Description {
                read: Some(Read::Points(points)),
                show: &|shown, _| {
                    let (text, fields) = (drawn(points, Strings::Plain), id_index_scan(points));
                    let shown = shown.with("bounds", doc! { "_id": &text }).line(format!("_id {text}"));
                    match points.as_point() {
                        Some(_) => shown.shown_as(MongoStage::Lookup(fields)),
                        None => shown.mongo("IXSCAN", fields),
                    }
                },
                ..Description::of("IDHACK", "POINTS")
            }),
            // The keys that were returned are held if a record can have several entries.
            Self::Index(scan) => scan.named("IXSCAN").describe(&mut |node| {
                visit(Description { holders: usize::from(!scan.finds_once()), ..node });
            }),
            Self::Merge { how, inputs } => {
                let (name, line) = match how {
                    Combine::Union => ("OR", "or"),
                    Combine::Intersection => ("AND_SORTED", "and"),
                };
                visit(Description {
                    inputs: &inputs.iter().map(|input| input as &dyn Node).collect::<Vec<_>>(),
                    reads_one_by_one: true,
                    holders: 1,
                    show: &|shown, _| shown.line(line).mongo(name, Document::new()),
                    ..Description::of(name, "INDEX MERGE")
                });
            }
        }
    }
}

/// Returns the fields of an ascending scan of the index on `_id`.
pub(super) fn id_index_scan(bounds: &IntervalSet) -> Document {
    doc! {
        "keyPattern": { "_id": 1 },
        "indexName": "_id_",
        "isMultiKey": false,
        "multiKeyPaths": { "_id": [] },
        "isUnique": true,
        "isSparse": false,
        "isPartial": false,
        "indexVersion": 2,
        "direction": direction_name(Direction::Ascending),
        "indexBounds": { "_id": bounds_text(bounds, Direction::Ascending, Strings::Plain) },
    }
}
