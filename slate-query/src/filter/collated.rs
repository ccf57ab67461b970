//! Conditions that compare strings by a collation.
//!
//! The conditions are evaluated on a copy of the document's fields in which the collation has replaced the strings, and so has
//! it those of the operands. Only regular expressions and `$expr` see the document itself.

use std::{collections::BTreeSet, sync::Arc};

use super::{Node, clause::Scope, node::Tree, parse};
use crate::{
    Error, Result,
    collation::{Collation, has_text},
    path::Path,
    raw::{Doc, Element, Kind, Value, Writer},
};

/// Conditions with strings in their operands.
#[derive(Debug)]
pub(super) struct Collated {
    /// The conditions as written.
    plain: Node,
    /// The conditions with the strings of their operands replaced.
    collated: Node,
    /// The fields that they compare; `None`: all.
    fields: Option<BTreeSet<Box<[u8]>>>,
    collation: Collation,
}

/// Parses a field of a filter if the collation concerns it. Each of its conditions becomes a node, so that an index can serve one of
/// them exactly.
pub(super) fn parse(filter: Element<'_>, scope: Scope<'_>, collation: &Collation) -> Result<Option<Node>> {
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
    Ok(Some(Node::all(pairs.into_iter().map(|(plain, collated)| node(plain, collated, collation)).collect())))
}

fn node(plain: Node, collated: Node, collation: &Collation) -> Node {
    let mut fields = BTreeSet::new();
    let is_known = plain.all_paths(&mut |path| {
        fields.extend(path.parts().first().map(|first| Box::from(first.name().as_bytes())));
        true
    });
    let collation = collation.clone();
    let collated = Collated { plain, collated, fields: is_known.then_some(fields), collation };
    Node { tree: Tree::Collated(Arc::new(collated)) }
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

/// The operators of a condition on a field.
fn operators(condition: Value<'_>) -> Option<Doc<'_>> {
    let document = condition.as_document().filter(|_| condition.kind() == Kind::Document)?;
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
            // What is not an array is refused by the operator.
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
        b"$not" if let Some(operators) = operators(operand) => {
            out.open_document(name);
            operators.elements().try_for_each(|element| write_operator(element, collation, out))?;
            out.close();
        }
        b"$elemMatch" if let Some(conditions) = operand.as_document() => {
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
        _ => out.append(name, operand),
    }
    Ok(())
}

/// Whether a regular expression is within an operand.
pub(super) fn reads_text(value: Value<'_>) -> bool {
    let within = |element: Element<'_>| element.name == b"$regex" || reads_text(element.value);
    value.kind() == Kind::Regex || value.as_container().is_some_and(|container| container.elements().any(within))
}

impl Collated {
    /// Whether the document fulfils the conditions.
    ///
    /// # Errors
    /// Those of expressions.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        self.collated.evaluate_either(document, Doc::new(&self.replace(document)))
    }

    /// The fields of the document that the conditions compare, with their strings replaced.
    pub(super) fn replace(&self, document: Doc<'_>) -> Vec<u8> {
        let mut out = Writer::new();
        let is_wanted = |name: &[u8]| self.fields.as_ref().is_none_or(|fields| fields.contains(name));
        self.collation.write_fields(document, is_wanted, &mut out);
        out.finish()
    }

    /// The conditions with the strings of their operands replaced.
    pub(super) fn replaced(&self) -> &Node {
        &self.collated
    }

    /// The conditions as written.
    pub(super) fn plain(&self) -> &Node {
        &self.plain
    }

    /// The conditions with the strings of their operands replaced, if it is this collation that replaced them.
    pub(super) fn by(&self, collation: &Collation) -> Option<&Node> {
        (self.collation == *collation).then_some(&self.collated)
    }

    /// Whether all documents that match these conditions match the other ones.
    pub(super) fn implies(&self, condition: &Self) -> bool {
        condition.by(&self.collation).is_some_and(|condition| self.collated.implies(condition))
    }

    /// Whether `holds` is true for the path of every condition.
    pub(super) fn all_paths(&self, holds: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.plain.all_paths(holds)
    }
}

impl Node {
    /// Evaluates conditions on values on `collated`, those on text and expressions on `plain`.
    fn evaluate_either(&self, plain: Doc<'_>, collated: Doc<'_>) -> Result<bool> {
        let all = |nodes: &[Self], wanted: bool| {
            for node in nodes {
                if node.evaluate_either(plain, collated)? != wanted {
                    return Ok(!wanted);
                }
            }
            Ok(wanted)
        };
        match &self.tree {
            Tree::And(conjunction) => all(conjunction.nodes(), true),
            Tree::Or(nodes) => all(nodes, false),
            Tree::Not(node) => Ok(!node.evaluate_either(plain, collated)?),
            Tree::Field(field) => Ok(field.matches(if field.operator.reads_text() { plain } else { collated })),
            Tree::Computed(computed) => computed.evaluate(plain),
            Tree::Schema(schema) => Ok(schema.matches(plain)),
            Tree::Collated(nested) => nested.evaluate(plain),
        }
    }
}
