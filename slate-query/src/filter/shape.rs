//! The shape of a filter: its paths and operators without the values.

use super::Filter;
use crate::{
    raw::{Doc, Value},
    work,
};

impl Filter {
    /// Returns the filter with `?` in place of each value, so that filters that differ in values only have the same shape:
    /// `{ "age": { "$gte": ? }, "org": ? }`.
    pub fn shape(&self) -> String {
        // A slow query is reported with its whole filter, also when its time is over.
        work::undivided(|| {
            let mut shape = String::new();
            write_document(Doc::new(&self.root().to_document()), &mut shape);
            shape
        })
    }
}

fn write_document(document: Doc<'_>, out: &mut String) {
    let mut separator = "{ ";
    for element in document.elements() {
        out.push_str(separator);
        out.push_str(&format!("{:?}: ", element.display_name()));
        write_operand(element.name, element.value, out);
        separator = ", ";
    }
    out.push_str(if separator == "{ " { "{}" } else { " }" });
}

/// Writes a list of conditions, or a document of operators; everything else is a value.
fn write_operand(name: &[u8], value: Value<'_>, out: &mut String) {
    let conditions = matches!(name, b"$and" | b"$or" | b"$nor").then(|| value.as_array()).flatten();
    match (conditions, value.as_document().filter(|document| name == b"$elemMatch" || is_operators(*document))) {
        (Some(conditions), _) => {
            let mut separator = "[";
            for condition in conditions.elements() {
                out.push_str(separator);
                match condition.value.as_document() {
                    Some(condition) => write_document(condition, out),
                    None => out.push('?'),
                }
                separator = ", ";
            }
            out.push(']');
        }
        (None, Some(operators)) => write_document(operators, out),
        (None, None) => out.push('?'),
    }
}

fn is_operators(document: Doc<'_>) -> bool {
    document.elements().next().is_some_and(|first| first.name.starts_with(b"$"))
}
