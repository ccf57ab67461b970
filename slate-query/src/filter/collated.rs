//! Conditions that compare strings by a collation.
//!
//! The conditions are evaluated on a copy of the document's fields in which the collation has replaced the strings. The
//! strings of the operands are replaced, too. Only regular expressions and `$expr` see the document itself.

use std::{collections::BTreeSet, sync::Arc};

use super::{Node, node::Tree};
use crate::{
    Result,
    collation::Collation,
    path::Path,
    raw::{Doc, Writer},
    work,
};

/// Conditions with strings in their operands.
#[derive(Debug)]
pub(super) struct Collated {
    /// The conditions as written.
    plain: Node,
    /// The conditions with the strings of their operands replaced.
    collated: Node,
    /// The top-level fields that the conditions read; `None` if any field may be read.
    fields: Option<BTreeSet<Box<[u8]>>>,
    collation: Collation,
}

impl Collated {
    /// Creates the node of conditions, which were parsed as written and with their strings replaced.
    pub(super) fn node(plain: Node, collated: Node, collation: &Collation) -> Node {
        let mut fields = BTreeSet::new();
        let is_known = plain.all_paths(&mut |path| {
            fields.extend(path.parts().first().map(|first| Box::from(first.name().as_bytes())));
            true
        });
        let collation = collation.clone();
        let collated = Self { plain, collated, fields: is_known.then_some(fields), collation };
        Node { tree: Tree::Collated(Arc::new(collated)) }
    }

    /// Returns one node that holds if one of these nodes holds. `None` unless all are conditions on the same fields with the same
    /// collation.
    pub(super) fn any(nodes: &[Node]) -> Option<Node> {
        let collated = nodes.iter().map(|node| match &node.tree {
            Tree::Collated(collated) => Some(&**collated),
            _ => None,
        });
        let all: Vec<&Self> = collated.collect::<Option<_>>()?;
        let first = all.first()?;
        let is_same = all.iter().all(|other| other.collation == first.collation && other.fields == first.fields);
        let any = |of: fn(&Self) -> &Node| Node::any(all.iter().map(|collated| of(collated).clone()).collect());
        is_same.then(|| Self::node(any(Self::plain), any(Self::replaced), &first.collation))
    }

    /// Returns whether the document fulfils the conditions.
    ///
    /// # Errors
    /// The errors of expressions.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        self.collated.evaluate_either(document, Doc::new(&self.replace(document)))
    }

    /// Returns the fields of the document that the conditions compare, with their strings replaced.
    pub(super) fn replace(&self, document: Doc<'_>) -> Vec<u8> {
        work::spend(work::of_bytes(document.bytes().len()));
        let mut out = Writer::new();
        let is_wanted = |name: &[u8]| self.fields.as_ref().is_none_or(|fields| fields.contains(name));
        self.collation.write_fields(document, is_wanted, &mut out);
        out.finish()
    }

    /// Returns the conditions with the strings of their operands replaced.
    pub(super) fn replaced(&self) -> &Node {
        &self.collated
    }

    /// Returns the conditions as written.
    pub(super) fn plain(&self) -> &Node {
        &self.plain
    }

    /// Returns the conditions with the strings of their operands replaced, if `collation` replaced them.
    pub(super) fn by(&self, collation: &Collation) -> Option<&Node> {
        (self.collation == *collation).then_some(&self.collated)
    }

    /// Returns whether all documents that match these conditions provably match `condition`.
    pub(super) fn implies(&self, condition: &Self) -> bool {
        condition.by(&self.collation).is_some_and(|condition| self.collated.implies(condition))
    }

    /// Returns whether `holds` is true for the path of every condition.
    pub(super) fn all_paths(&self, holds: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.plain.all_paths(holds)
    }
}

impl Node {
    /// Evaluates regular expressions, `$expr` and schemas on the document as stored (`plain`), and all other conditions on the
    /// document with its strings replaced (`collated`).
    fn evaluate_either(&self, plain: Doc<'_>, collated: Doc<'_>) -> Result<bool> {
        let all = |nodes: &[Self], wanted: bool| {
            work::take(nodes.len())?;
            for node in nodes {
                if node.evaluate_either(plain, collated)? != wanted {
                    return Ok(!wanted);
                }
            }
            Ok(wanted)
        };
        match &self.tree {
            Tree::And(conjunction) => all(conjunction.nodes(), true),
            Tree::Or(nodes) => match nodes.together() {
                Some(together) => together.evaluate_either(plain, collated),
                None => all(nodes, false),
            },
            Tree::Not(node) => Ok(!node.evaluate_either(plain, collated)?),
            Tree::Field(field) => Ok(field.matches(if field.operator.reads_text() { plain } else { collated })),
            Tree::Computed(computed) => computed.evaluate(plain),
            Tree::Schema(schema) => Ok(schema.matches(plain)),
            Tree::Collated(nested) => nested.evaluate(plain),
        }
    }
}
