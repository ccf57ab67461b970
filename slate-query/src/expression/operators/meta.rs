//! `$meta`: values that MongoDB's text, vector and geospatial queries add to documents. Slate has none of these queries.

use super::super::{Expression, Variables};
use crate::{Code, Error, Result, raw::Value};

/// MongoDB's operands of `$meta`.
static NAMES: &[&str] = &[
    "geoNearDistance",
    "geoNearPoint",
    "indexKey",
    "randVal",
    "recordId",
    "score",
    "scoreDetails",
    "searchHighlights",
    "searchRootDocumentId",
    "searchScore",
    "searchScoreDetails",
    "searchSequenceToken",
    "sortKey",
    "stream",
    "timeseriesBucketMaxTime",
    "timeseriesBucketMinTime",
    "vectorSearchDistance",
    "vectorSearchScore",
];

/// Always fails: with MongoDB's code for an invalid operand, with `NotImplemented` (238) for a valid one.
pub(super) fn meta(name: &str, operand: Value<'_>, _: &Variables) -> Result<Expression> {
    Err(match operand.as_str() {
        None => Error::new(Code(17307), "$meta takes a string"),
        Some("textScore") => Error::new(Code(40218), "the query requires the text score without a text search"),
        Some(text) if NAMES.contains(&text) => Error::unsupported(name),
        Some(text) => Error::new(Code(17308), format!("unsupported argument to $meta: {text}")),
    })
}
