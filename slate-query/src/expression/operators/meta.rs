//! `$meta`: the record key, and values that MongoDB's text, vector and geospatial queries add to documents. Slate has none of these
//! queries.

use super::super::{
    Evaluated, Expression, Variables,
    arguments::{Arguments, Function, NullEnds, Operands},
    node::{ExpressionNode, Variable},
};
use super::{ONE, convert};
use crate::{
    Code, Error, Result, key,
    raw::{FieldName, Value},
};

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

/// Always fails, because only a projection of `find` knows the record. The code is MongoDB's for an invalid operand,
/// and `NotImplemented` (238) for a valid one.
pub(super) fn meta(name: &str, operand: Value<'_>, _: &Variables) -> Result<Expression> {
    Err(match operand.as_str() {
        None => Error::new(Code(17307), "$meta takes a string"),
        Some("textScore") => Error::new(Code(40218), "the query requires the text score without a text search"),
        Some(text) if NAMES.contains(&text) => Error::unsupported(name),
        Some(text) => Error::new(Code(17308), format!("unsupported argument to $meta: {text}")),
    })
}

/// `{$meta: "recordId"}`: the key under which the document is stored, which is its encoded `_id`, as a binary.
static RECORD_KEY: Function = Function {
    name: "$meta",
    arity: ONE,
    call: record_key,
    operands: Operands::AsWritten,
    null_ends: NullEnds::Never,
    constant_array: None,
};

fn record_key<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut bytes = Vec::new();
    key::encode(arguments.get(0).or_null(), &mut bytes);
    convert::generic_binary(&bytes)
}

impl Expression {
    /// Returns the expression whose value is the record key of the stored document.
    pub(crate) fn record_key() -> Self {
        let id = Self(ExpressionNode::Path(Variable::Root, [FieldName::new("_id")].into()));
        Self(ExpressionNode::Call(&RECORD_KEY, [id].into()))
    }
}
