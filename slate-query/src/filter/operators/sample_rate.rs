//! `$sampleRate`: a share of the documents, chosen at random.

use super::super::{
    Node,
    clause::{Clause, Subject},
    computed,
};
use crate::{
    Result,
    number::Number,
    raw::{Kind, Value, Writer},
};

/// Parses the operator as `{ $expr: { $lt: [{ $rand: {} }, rate] } }`.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.scope.subject == Subject::Element {
        return Err(clause.refuse("$sampleRate can only be applied to the top-level document"));
    }
    let rate = Number::of(clause.operand)
        .ok_or_else(|| clause.refuse("argument to $sampleRate must be a numeric type"))?
        .to_f64();
    if !(0.0..=1.0).contains(&rate) {
        return Err(clause.refuse("numeric argument to $sampleRate must be in [0, 1]"));
    }
    let mut expression = Writer::new();
    expression.open_array(b"$lt");
    expression.open_document(b"0");
    expression.open_document(b"$rand");
    expression.close();
    expression.close();
    expression.append(b"1", Value::new(Kind::Double, &rate.to_le_bytes()));
    expression.close();
    let expression = expression.finish();
    computed::parse(Clause { operand: Value::new(Kind::Document, &expression), ..clause })
}
