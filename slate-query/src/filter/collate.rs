//! Parses conditions with a collation: as written, and with the strings of their operands replaced.

use super::{
    Node,
    clause::{ClauseScope, reads_text},
    collated::Collated,
    parse,
};
use crate::{
    Error, Result,
    collation::{Collation, has_text},
    raw::{Doc, Element, Value, Writer},
};

/// Parses a field of a filter if the collation applies to it; `None` otherwise. Each of its conditions becomes a node, so that an index can serve
/// one of them exactly.
pub(super) fn parse(filter: Element<'_>, scope: ClauseScope<'_>, collation: &Collation) -> Result<Option<Node>> {
    let is_parsed_first = matches!(filter.name, b"$and" | b"$or" | b"$nor");
    if !has_text(filter.value) || is_parsed_first || matches!(filter.name, b"$expr" | b"$comment" | b"$jsonSchema") {
        return Ok(None);
    }
    let scope = scope.uncollated();
    let single = |write: &dyn Fn(&mut Writer) -> Result<()>| {
        let mut out = Writer::new();
        write(&mut out)?;
        parse::document(Doc::new(&out.finish()), scope)
    };
    let plain = single(&|out| {
        out.append(filter.name, filter.value);
        Ok(())
    })?;
    let collated = single(&|out| write_condition(filter, collation, out))?;
    let pairs: Vec<(Node, Node)> = match (plain.conjuncts(), collated.conjuncts()) {
        (plain, collated) if plain.len() == collated.len() => {
            plain.iter().cloned().zip(collated.iter().cloned()).collect()
        }
        _ => vec![(plain, collated)],
    };
    Ok(Some(Node::all(pairs.into_iter().map(|(plain, collated)| Collated::node(plain, collated, collation)).collect())))
}

/// Writes a field of a filter with the strings of operands replaced.
fn write_condition(filter: Element<'_>, collation: &Collation, out: &mut Writer) -> Result<()> {
    match (filter.name, filter.value.as_array()) {
        (b"$expr" | b"$comment", _) => out.append(filter.name, filter.value),
        ([b'$', ..], Some(filters)) => {
            out.open_array(filter.name);
            for element in filters.elements() {
                let Some(nested) = element.value.as_document() else {
                    out.append(element.name, element.value);
                    continue;
                };
                out.open_document(element.name);
                nested.elements().try_for_each(|element| write_condition(element, collation, out))?;
                out.close();
            }
            out.close();
        }
        ([b'$', ..], None) => out.append(filter.name, filter.value),
        _ => match operators(filter.value) {
            Some(operators) => {
                out.open_document(filter.name);
                operators.elements().try_for_each(|element| write_operator(element, collation, out))?;
                out.close();
            }
            None => out.append(filter.name, collation.apply(filter.value).as_value()),
        },
    }
    Ok(())
}

/// Returns the operators of a condition on a field; `None` for a literal.
fn operators(condition: Value<'_>) -> Option<Doc<'_>> {
    let document = condition.as_document()?;
    document.elements().next().filter(|first| first.name.starts_with(b"$")).map(|_| document)
}

fn write_operator(operator: Element<'_>, collation: &Collation, out: &mut Writer) -> Result<()> {
    let (name, operand) = (operator.name, operator.value);
    let text_within = |value: Value<'_>| match reads_text(value) {
        true => Err(Error::unsupported("a regular expression within an operator beside a collation")),
        false => Ok(()),
    };
    match name {
        b"$eq" | b"$ne" | b"$gt" | b"$gte" | b"$lt" | b"$lte" => out.append(name, collation.apply(operand).as_value()),
        b"$in" | b"$nin" => {
            text_within(operand)?;
            out.append(name, collation.apply(operand).as_value());
        }
        b"$all" => {
            text_within(operand)?;
            out.open_array(name);
            // Other operands are refused when `$all` is parsed.
            for element in operand.as_array().into_iter().flat_map(Doc::elements) {
                match operators(element.value) {
                    Some(operators) => {
                        out.open_document(element.name);
                        operators.elements().try_for_each(|element| write_operator(element, collation, out))?;
                        out.close();
                    }
                    None => out.append(element.name, collation.apply(element.value).as_value()),
                }
            }
            out.close();
        }
        b"$not" => match operators(operand) {
            Some(operators) => {
                out.open_document(name);
                operators.elements().try_for_each(|element| write_operator(element, collation, out))?;
                out.close();
            }
            None => out.append(name, operand),
        },
        b"$elemMatch" => match operand.as_document() {
            Some(conditions) => {
                text_within(operand)?;
                out.open_document(name);
                let is_operators = operators(operand).is_some();
                for element in conditions.elements() {
                    let is_logical = matches!(element.name, b"$and" | b"$or" | b"$nor");
                    match is_operators && !is_logical {
                        true => write_operator(element, collation, out)?,
                        false => write_condition(element, collation, out)?,
                    }
                }
                out.close();
            }
            None => out.append(name, operand),
        },
        _ => out.append(name, operand),
    }
    Ok(())
}
