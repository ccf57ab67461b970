//! `$expr`: a condition computed by an expression.

use std::sync::Arc;

use super::{
    Node,
    clause::{Clause, Subject},
    comparison::Comparison,
    field::Field,
    node::Tree,
    terms::{self, Strings, Term},
};
use crate::{
    Code, Result,
    expression::{Bindings, Expression, Logic},
    path::Path,
    raw::{Doc, OwnedValue, Value},
    work,
};

/// An expression whose value must be true.
#[derive(Debug)]
pub(super) struct Computed {
    expression: Expression,
    bindings: Arc<Bindings>,
    /// The expression as written; null if the expression is an operand of another one.
    operand: OwnedValue,
    form: ComputedForm,
}

/// The form of an expression, from which index bounds are computed.
#[derive(Debug)]
enum ComputedForm {
    Comparison(Comparison),
    /// `$and`.
    All(Vec<Node>),
    /// `$or`; without operands for an expression that is never true.
    Any(Vec<Node>),
    Other,
}

/// Parses `$expr`.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.scope.subject == Subject::Element {
        return Err(clause.refuse("$expr can only be applied to the top-level document"));
    }
    let Some(bindings) = clause.scope.bindings else {
        return Err(clause.refuse_with(Code::QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in this context"));
    };
    let bindings = bindings.bindings()?;
    let expression = Expression::parse(clause.operand, bindings.names()).map_err(|error| error.at("$expr"))?;
    Ok(Some(Node::computed(expression, clause.operand, &Arc::new(bindings.clone()))))
}

impl ComputedForm {
    fn of(expression: &Expression, bindings: &Arc<Bindings>) -> Self {
        let parts = |operands: Vec<&Expression>| {
            operands.into_iter().map(|operand| Node::computed(operand.clone(), Value::NULL, bindings)).collect()
        };
        match expression.logic() {
            Some(Logic::All(operands)) => Self::All(parts(operands)),
            Some(Logic::Any(operands)) => Self::Any(parts(operands)),
            Some(Logic::Never) => Self::Any(Vec::new()),
            None => {
                let comparison = expression.comparisons().find_map(|compared| Comparison::new(compared, bindings));
                comparison.map_or(Self::Other, Self::Comparison)
            }
        }
    }
}

impl Computed {
    /// Returns whether the expression is true for the document.
    ///
    /// # Errors
    /// The errors of the expression.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        self.bindings.within(document, |env| Ok(self.expression.evaluate(env)?.is_true()))
    }

    /// Calls `take` with the key ranges that follow from the expression; with none if no index can serve it.
    pub(super) fn each_term(&self, strings: Strings<'_>, take: &mut dyn FnMut(Term)) {
        match &self.form {
            ComputedForm::Comparison(comparison) => {
                comparison.term(strings, self.bindings.collation()).into_iter().for_each(take);
            }
            ComputedForm::All(nodes) => terms::of_conjuncts(nodes, strings, take),
            ComputedForm::Any(nodes) => terms::of_branches(nodes, strings).into_iter().for_each(take),
            ComputedForm::Other => {}
        }
    }

    /// Returns the operands of an `$or`; `None` for other expressions.
    pub(super) fn branches(&self) -> Option<&[Node]> {
        if let ComputedForm::Any(nodes) = &self.form { Some(nodes) } else { None }
    }

    /// Returns whether each document for which the expression is true provably has the field that `condition` requires.
    pub(super) fn implies(&self, condition: &Field) -> bool {
        let of_node = |node: &Node| matches!(&node.tree, Tree::Computed(computed) if computed.implies(condition));
        match &self.form {
            // If a longer path leads through an array, the value is an array, even if no element has the field.
            ComputedForm::Comparison(held) => {
                condition.requires_existence()
                    && condition.path.parts().len() == 1
                    && *held.path() == condition.path
                    && held.excludes_missing()
            }
            ComputedForm::All(nodes) => nodes.iter().any(of_node),
            ComputedForm::Any(nodes) => nodes.iter().all(of_node),
            ComputedForm::Other => false,
        }
    }

    /// Returns the expression as written.
    pub(super) fn operand(&self) -> Value<'_> {
        self.operand.as_value()
    }

    /// Returns whether `holds` is true for each field that the expression reads; false if it reads the whole document.
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
    fn computed(expression: Expression, operand: Value<'_>, bindings: &Arc<Bindings>) -> Self {
        let form = ComputedForm::of(&expression, bindings);
        let (bindings, operand) = (Arc::clone(bindings), operand.to_owned());
        Self { tree: Tree::Computed(Arc::new(Computed { expression, bindings, operand, form })) }
    }

    /// Returns whether the node contains `$expr`.
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

    /// Returns whether an expression or a collation decides about a part of the filter, so that matching can fail.
    pub fn computes(&self) -> bool {
        match &self.tree {
            Tree::Computed(_) | Tree::Collated(_) => true,
            Tree::And(conjunction) => conjunction.computes(),
            Tree::Or(nodes) => nodes.computes(),
            Tree::Not(node) => node.computes(),
            Tree::Field(_) | Tree::Schema(_) => false,
        }
    }

    /// Returns whether matching can fail: the conditions contain an expression, a collation, or a pattern that needs backtracking.
    pub(super) fn can_fail(&self) -> bool {
        match &self.tree {
            Tree::Computed(_) | Tree::Collated(_) => true,
            Tree::And(conjunction) => conjunction.nodes().iter().any(Self::can_fail),
            Tree::Or(nodes) => nodes.iter().any(Self::can_fail),
            Tree::Not(node) => node.can_fail(),
            Tree::Field(field) => field.operator.can_fail(),
            Tree::Schema(schema) => schema.can_fail(),
        }
    }

    /// Like [`matches`](Self::matches), but fails if an expression fails.
    ///
    /// # Errors
    /// The errors of the expressions.
    pub(super) fn evaluate(&self, document: Doc<'_>) -> Result<bool> {
        if !self.computes() {
            return Ok(self.matches(document));
        }
        match &self.tree {
            Tree::Computed(computed) => computed.evaluate(document),
            Tree::Collated(collated) => collated.evaluate(document),
            // Evaluates the conditions on fields first, so that no expression is evaluated for documents that these conditions reject.
            Tree::And(conjunction) => {
                work::take(conjunction.nodes().len())?;
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
                if let Some(together) = nodes.together() {
                    return together.evaluate(document);
                }
                work::take(nodes.len())?;
                for node in nodes.iter() {
                    if node.evaluate(document)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Tree::Not(node) => Ok(!node.evaluate(document)?),
            Tree::Field(_) | Tree::Schema(_) => Ok(self.matches(document)),
        }
    }
}
