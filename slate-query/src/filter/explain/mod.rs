//! Explains why a document does not match a filter, in the form of MongoDB's validation errors.
//!
//! An explanation follows the filter as written, because the author of a validator knows its positions and conditions. The parsed tree is
//! simplified.

mod clause;
mod leaf;

use self::clause::{Clause, ClauseForm};
use super::Filter;
use crate::{
    Result,
    expression::Bindings,
    held,
    raw::{Doc, Kind, Value, Writer},
    schema::list,
};

/// Appends `operatorName` and further fields that say why a document does not match a valid filter.
pub fn explain(filter: Doc<'_>, bindings: &Bindings, document: Doc<'_>, out: &mut Writer) {
    Explanation { bindings, document }.append(&Clause::of_document(filter), Blame::Mismatch, out);
}

/// Why a clause is to blame: because it does not match or, within a negation, because it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    Mismatch,
    Match,
}

impl Blame {
    fn negated(self) -> Self {
        match self {
            Self::Mismatch => Self::Match,
            Self::Match => Self::Mismatch,
        }
    }
}

/// Which clauses of a list are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// All clauses. Each is to blame, because a single clause with the other outcome would have changed the outcome of the list.
    All,
    /// The clauses that are to blame.
    Blamed,
}

struct Explanation<'d> {
    bindings: &'d Bindings,
    document: Doc<'d>,
}

impl Explanation<'_> {
    fn append(&self, clause: &Clause<'_>, blame: Blame, out: &mut Writer) {
        let [if_mismatch, if_match] = match blame {
            Blame::Mismatch => [Which::Blamed, Which::All],
            Blame::Match => [Which::All, Which::Blamed],
        };
        match &clause.form {
            ClauseForm::All(clauses) => self.append_list("$and", clauses, blame, if_mismatch, out),
            ClauseForm::Any(clauses) => self.append_list("$or", clauses, blame, if_match, out),
            ClauseForm::None(clauses) => self.append_list("$nor", clauses, blame.negated(), if_mismatch, out),
            ClauseForm::Not(negated) => {
                out.append_str("operatorName", "$not");
                out.open_document(b"details");
                self.append(negated, blame.negated(), out);
                out.close();
            }
            ClauseForm::Leaf(leaf) => self.append_leaf(clause, leaf, blame, out),
        }
    }

    fn append_list(&self, name: &str, clauses: &[Clause<'_>], blame: Blame, which: Which, out: &mut Writer) {
        out.append_str("operatorName", name);
        let outcome = if blame == Blame::Mismatch { "clausesNotSatisfied" } else { "clausesSatisfied" };
        let is_explained = |clause: &Clause<'_>| which == Which::All || self.is_to_blame(clause, blame);
        let explained = clauses.iter().enumerate().filter(|(_, clause)| is_explained(clause));
        list(outcome, explained, out, |(index, clause), out| {
            let index = i32::try_from(index).unwrap_or(i32::MAX).to_le_bytes();
            out.append(b"index", Value::new(Kind::Int32, &index));
            clause.annotate(out);
            out.open_document(b"details");
            self.append(clause, blame, out);
            out.close();
        });
    }

    /// Returns whether the clause is a reason for the result: it has the outcome that `blame` names, or cannot be
    /// evaluated.
    fn is_to_blame(&self, clause: &Clause<'_>, blame: Blame) -> bool {
        self.evaluate(clause).map_or(true, |matches| matches == (blame == Blame::Match))
    }

    fn evaluate(&self, clause: &Clause<'_>) -> Result<bool> {
        self.parse(clause)?.evaluate(self.document)
    }

    /// Parses a part of the filter again, without counting its memory: the filter was counted, and this copy is dropped.
    fn parse(&self, clause: &Clause<'_>) -> Result<Filter> {
        held::uncounted(|| Filter::parse_with(Doc::new(&clause.filter), self.bindings))
    }
}
