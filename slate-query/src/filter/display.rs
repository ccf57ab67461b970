use std::fmt;

use ahash::AHashMap;

use super::{
    Filter, Node,
    field::{Field, Sense},
    node::Tree,
};
use crate::{
    raw::{Doc, Writer},
    work,
};

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root().fmt(f)
    }
}

impl Filter {
    /// Returns a filter document of the same meaning, as explain shows it.
    pub fn to_document(&self) -> Vec<u8> {
        self.root().to_document()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Doc::new(&self.to_document()))
    }
}

impl Node {
    /// Returns the condition as a filter document of the same meaning.
    pub(super) fn to_document(&self) -> Vec<u8> {
        let mut out = Writer::new();
        self.write_document(&mut out);
        out.finish()
    }

    /// Appends the fields of the filter document.
    fn write_document(&self, out: &mut Writer) {
        match &self.tree {
            Tree::Field(field) => write_fields(&[field], out),
            Tree::Or(nodes) if nodes.is_empty() => {
                out.append(b"$alwaysFalse", crate::raw::Value::new(crate::raw::Kind::Int32, &1i32.to_le_bytes()));
            }
            Tree::Or(nodes) => write_list(b"$or", nodes, out),
            Tree::Computed(computed) => out.append(b"$expr", computed.operand()),
            Tree::Schema(schema) => out.append(b"$jsonSchema", schema.source()),
            Tree::Collated(collated) => collated.plain().write_document(out),
            Tree::Not(node) => write_list(b"$nor", std::slice::from_ref(node), out),
            Tree::And(conjunction) => match runs(conjunction.nodes()) {
                Some(runs) => runs.iter().for_each(|run| write_fields(run, out)),
                None => write_list(b"$and", conjunction.nodes(), out),
            },
        }
    }

    /// Appends the operators of conditions on one value, as the operand of `$elemMatch` or `$not`.
    pub(super) fn write_operators(&self, out: &mut Writer) {
        for node in self.conjuncts() {
            match &node.tree {
                Tree::Field(field) => write_operator(field, out),
                Tree::Not(inner) => {
                    out.open_document(b"$not");
                    inner.write_operators(out);
                    out.close();
                }
                Tree::And(_) | Tree::Or(_) | Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => {
                    node.write_document(out)
                }
            }
        }
    }
}

fn write_list(name: &[u8], nodes: &[Node], out: &mut Writer) {
    out.open_array(name);
    for (index, node) in nodes.iter().enumerate().take_while(|_| work::spend(work::PARSED)) {
        out.open_document(index.to_string().as_bytes());
        node.write_document(out);
        out.close();
    }
    out.close();
}

/// Groups the conjuncts into runs of one path each. `None` if they cannot be written as one document: each path must
/// have one run, and each run must contain an operator only once.
fn runs(nodes: &[Node]) -> Option<Vec<Vec<&Field>>> {
    let mut runs: Vec<Vec<&Field>> = Vec::new();
    let mut places: AHashMap<&str, usize> = AHashMap::new();
    for node in nodes.iter().take_while(|_| work::spend(work::PARSED)) {
        let Tree::Field(field) = &node.tree else { return None };
        match places.get(field.path.as_str()) {
            None => {
                places.insert(field.path.as_str(), runs.len());
                runs.push(vec![field]);
            }
            Some(place) if place + 1 == runs.len() => {
                let run = runs.last_mut()?;
                let key = |field: &Field| (field.sense == Sense::Fails, field.operator.rank());
                if field.sense == Sense::Fails || run.iter().any(|other| key(other) == key(field)) {
                    return None;
                }
                run.push(field);
            }
            Some(_) => return None,
        }
    }
    Some(runs)
}

/// Appends the conditions on one path. A single equality is written as the bare value if that means the same.
fn write_fields(fields: &[&Field], out: &mut Writer) {
    let Some(first) = fields.first() else { return };
    let path = first.path.as_str().as_bytes();
    if let ([field], Some(value)) = (fields, first.operator.equality()) {
        let literal = !matches!(value.kind(), crate::raw::Kind::Document | crate::raw::Kind::Regex);
        if literal && field.sense == Sense::Holds {
            return out.append(path, value);
        }
    }
    out.open_document(path);
    fields.iter().for_each(|field| write_operator(field, out));
    out.close();
}

fn write_operator(field: &Field, out: &mut Writer) {
    match field.sense {
        Sense::Holds => field.operator.write(out),
        Sense::Fails => {
            out.open_document(b"$not");
            field.operator.write(out);
            out.close();
        }
    }
}
