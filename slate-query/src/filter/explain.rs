//! Explains which conditions of a filter a document violates, in the form of MongoDB's validation errors.

use std::ops::ControlFlow;

use super::{Filter, Node, field::Field, node::Tree};
use crate::{
    path::Found,
    raw::{Doc, Element, Kind, OwnedValue, Value, Writer},
};

impl Filter {
    /// Appends `operatorName` and further fields that say why the document does not match.
    pub fn explain(&self, document: Doc<'_>, out: &mut Writer) {
        explain(self.root(), document, out);
    }
}

fn explain(node: &Node, document: Doc<'_>, out: &mut Writer) {
    match &node.tree {
        Tree::Schema(schema) => schema.explain(document, out),
        Tree::And(conjunction) => {
            text(out, "operatorName", "$and");
            clauses("clausesNotSatisfied", conjunction.nodes(), document, |holds| !holds, out);
        }
        Tree::Or(nodes) => {
            text(out, "operatorName", "$or");
            clauses("clausesNotSatisfied", nodes, document, |holds| !holds, out);
        }
        Tree::Not(negated) => {
            text(out, "operatorName", "$nor");
            clauses("clausesSatisfied", std::slice::from_ref(negated), document, |holds| holds, out);
        }
        Tree::Field(field) => of_field(field, node, document, out),
        Tree::Computed(_) => {
            text(out, "operatorName", "$expr");
            specified(node, out);
            text(out, "reason", "expression did not match");
            out.append(b"expressionResult", Value::new(Kind::Boolean, &[0]));
        }
        Tree::Collated(collated) => match &collated.plain().tree {
            Tree::Field(field) => of_field(field, node, document, out),
            _ => {
                specified(node, out);
                text(out, "reason", "comparison failed");
            }
        },
    }
}

/// Appends the nodes for which evaluation has this outcome.
fn clauses(name: &str, nodes: &[Node], document: Doc<'_>, wanted: fn(bool) -> bool, out: &mut Writer) {
    out.open_array(name.as_bytes());
    let found = nodes.iter().enumerate().filter(|(_, node)| wanted(node.evaluate(document).unwrap_or(false)));
    for (place, (index, node)) in found.enumerate() {
        out.open_document(place.to_string().as_bytes());
        let index = i32::try_from(index).unwrap_or(i32::MAX).to_le_bytes();
        out.append(b"index", Value::new(Kind::Int32, &index));
        out.open_document(b"details");
        explain(node, document, out);
        out.close();
        out.close();
    }
    out.close();
}

fn of_field(field: &Field, node: &Node, document: Doc<'_>, out: &mut Writer) {
    let mut written = Writer::new();
    field.operator.write(&mut written);
    let written = written.finish();
    let operator = Doc::new(&written).elements().next();
    text(out, "operatorName", &operator.as_ref().map_or_else(|| "$eq".into(), Element::display_name));
    specified(node, out);
    let mut considered: Vec<OwnedValue> = Vec::new();
    let _ = field.path.walk(document, &mut |end| {
        if let Found::Value(value) = end.found {
            considered.push(value.to_owned());
        }
        ControlFlow::Continue(())
    });
    match considered.as_slice() {
        [] => text(out, "reason", "field was missing"),
        [only] => {
            text(out, "reason", reason(operator.map(|operator| operator.name)));
            out.append(b"consideredValue", only.as_value());
        }
        several => {
            text(out, "reason", reason(operator.map(|operator| operator.name)));
            out.open_array(b"consideredValues");
            for (place, value) in several.iter().enumerate() {
                out.append(place.to_string().as_bytes(), value.as_value());
            }
            out.close();
        }
    }
}

fn reason(operator: Option<&[u8]>) -> &'static str {
    match operator {
        Some(b"$type") => "type did not match",
        Some(b"$regex") => "regular expression did not match",
        Some(b"$in") => "no matching value found in array",
        Some(b"$size") => "array length was not equal to given size",
        Some(b"$mod") => "$mod did not evaluate to expected remainder",
        Some(b"$exists") => "path does exist",
        Some(b"$elemMatch") => "array did not satisfy the child predicate",
        _ => "comparison failed",
    }
}

/// Appends the condition as written.
fn specified(node: &Node, out: &mut Writer) {
    out.open_document(b"specifiedAs");
    out.extend(Doc::new(&node.to_document()));
    out.close();
}

fn text(out: &mut Writer, name: &str, value: &str) {
    out.append(name.as_bytes(), OwnedValue::from(&bson::Bson::from(value)).as_value());
}
