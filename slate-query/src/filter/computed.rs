//! `$expr`: a condition computed by an expression.

use std::sync::Arc;

use super::{
    Node,
    clause::{Clause, Subject},
    field::Field,
    node::Tree,
    operators,
};
use crate::{
    Code, Result,
    expression::Expression,
    path::Path,
    pipeline::Bindings,
    raw::{Doc, OwnedValue, Value},
};

/// An expression whose value must be true.
#[derive(Debug)]
pub(super) struct Computed {
    expression: Expression,
    bindings: Bindings,
    /// The expression as written.
    operand: OwnedValue,
    /// Equalities that every document fulfils for which the expression is true. They only narrow the search: a filter's
    /// equality also holds for elements of arrays.
    pub(super) equalities: Vec<Field>,
}

/// Parses `$expr`.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.scope.subject == Subject::Element {
        return Err(clause.refuse("$expr can only be applied to the top-level document"));
    }
    let Some(bindings) = clause.scope.bindings else {
        return Err(clause.refuse_with(Code(224), "$expr is not allowed in this context"));
    };
    let expression = Expression::parse(clause.operand, bindings.names()).map_err(|error| error.at("$expr"))?;
    let mut equalities = Vec::new();
    expression.visit_equalities(&mut |field, other| {
        // Of a value that is the same for all documents. An array is compared as a whole, which an index cannot do.
        let mut is_constant = true;
        other.visit_fields(&mut |_| is_constant = false);
        let value = bindings.within(Doc::new(EMPTY), |env| other.visit(env, |value| value.map(Value::to_owned)));
        // A collation compares strings in another order than an index.
        let is_collated = |value: &OwnedValue| bindings.collation().is_some() && value.as_value().text().is_some();
        if let (true, Ok(Some(value)), Ok(path)) = (is_constant, value, Path::parse(field.as_str()))
            && value.as_value().as_container().is_none()
            && !is_collated(&value)
        {
            equalities.push(operators::equality(&path, value.as_value()));
        }
    });
    let computed = Computed { expression, bindings: bindings.clone(), operand: clause.operand.to_owned(), equalities };
    Ok(Some(Node { tree: Tree::Computed(Arc::new(computed)) }))
}

/// A document without fields.
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl Computed {
    /// Whether the expression is true for the document.
    ///
    /// # Errors
    /// Those of the expression.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        self.bindings.within(document, |env| Ok(self.expression.evaluate(env)?.is_true()))
    }

    /// The expression as written.
    pub(super) fn operand(&self) -> Value<'_> {
        self.operand.as_value()
    }

    /// Whether `holds` is true for each field that the expression reads; false if it reads the whole document.
    pub(super) fn all_paths(&self, holds: &mut dyn FnMut(&Path) -> bool) -> bool {
        let mut all = true;
        self.expression.visit_fields(&mut |field| {
            let path = field.map(|field| Path::parse(field.as_str()));
            all = all && matches!(path, Some(Ok(path)) if holds(&path));
        });
        all
    }
}

impl Node {
    /// Whether there is a `$expr`.
    pub(super) fn has_expression(&self) -> bool {
        match &self.tree {
            Tree::Computed(_) => true,
            Tree::Collated(collated) => collated.plain().has_expression(),
            Tree::And(conjunction) => conjunction.nodes().iter().any(Self::has_expression),
            Tree::Or(nodes) => nodes.iter().any(Self::has_expression),
            Tree::Not(node) => node.has_expression(),
            Tree::Field(_) | Tree::Schema(_) => false,
        }
    }

    /// Whether an expression or a collation decides about a part of the filter, so that matching can fail.
    pub(super) fn computes(&self) -> bool {
        match &self.tree {
            Tree::Computed(_) | Tree::Collated(_) => true,
            Tree::And(conjunction) => conjunction.nodes().iter().any(Self::computes),
            Tree::Or(nodes) => nodes.iter().any(Self::computes),
            Tree::Not(node) => node.computes(),
            Tree::Field(_) | Tree::Schema(_) => false,
        }
    }

    /// As [`matches`](Self::matches), with the errors of expressions.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        match &self.tree {
            Tree::Computed(computed) => computed.evaluate(document),
            Tree::Collated(collated) => collated.evaluate(document),
            // Conditions on fields first: an expression is not evaluated for documents that they reject.
            Tree::And(conjunction) => {
                let mut plain = conjunction.nodes().iter().filter(|node| !node.computes());
                if !plain.all(|node| node.matches(document)) {
                    return Ok(false);
                }
                for node in conjunction.nodes().iter().filter(|node| node.computes()) {
                    if !node.evaluate(document)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Tree::Or(nodes) => {
                for node in nodes {
                    if node.evaluate(document)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Tree::Not(node) => Ok(!node.evaluate(document)?),
            Tree::Field(field) => Ok(field.matches(document)),
            Tree::Schema(schema) => Ok(schema.matches(document)),
        }
    }
}
