//! `$sortByCount`: the number of documents for each value of an expression, most first. It is parsed as a `$group` and
//! a `$sort`.

use super::group;
use crate::{
    Code, Error, Result,
    expression::Bindings,
    pipeline::Stage,
    raw::{Doc, Kind, Value, Writer},
    sort::Sort,
};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let refused = |code, message: &'static str| Err(Error::new(Code(code), message));
    match (argument.as_str(), argument.as_document()) {
        (Some(path), _) if !path.starts_with('$') => {
            return refused(40_148, "the sortByCount field must be defined as a $-prefixed path");
        }
        (Some(_), _) => {}
        (None, Some(expression)) => {
            let mut elements = expression.elements();
            if !elements.next().is_some_and(|first| first.name.starts_with(b"$")) {
                return refused(40_147, "the sortByCount field must be a path or an expression inside an object");
            }
        }
        (None, None) => {
            return refused(40_149, "the sortByCount field must be a path or an expression");
        }
    }
    let mut spec = Writer::new();
    spec.append(b"_id", argument);
    spec.open_document(b"count");
    spec.append(b"$sum", Value::new(Kind::Int32, &1_i32.to_le_bytes()));
    spec.close();
    let mut stages = group::parse(Value::new(Kind::Document, &spec.finish()), bindings)?;
    let descending = group::single("count", Value::new(Kind::Int32, &(-1_i32).to_le_bytes()));
    stages.push(Stage::Sort(Sort::parse(descending.as_value().as_document().unwrap_or(Doc::new(&[])))?));
    Ok(stages)
}
