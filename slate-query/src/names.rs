//! The names of supported operators, read from the tables that define them.

use std::collections::BTreeSet;

use crate::{expression, filter, pipeline, update};

/// Where an operator is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperatorKind {
    /// In filters, such as `$gt`.
    Filter,
    /// In updates, such as `$inc`, and the modifiers of `$push`.
    Update,
    /// A stage of a pipeline, such as `$group`.
    Stage,
    /// In expressions, such as `$concat`.
    Expression,
    /// In `$group`, such as `$push`.
    Accumulator,
    /// In `$setWindowFields`, such as `$shift`. Most accumulators are window functions, too.
    WindowFunction,
}

impl OperatorKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Filter, Self::Update, Self::Stage, Self::Expression, Self::Accumulator, Self::WindowFunction];

    /// Returns the names of the supported operators of this kind, for completion and documentation.
    ///
    /// ```
    /// use slate_query::names::OperatorKind;
    ///
    /// assert!(OperatorKind::Filter.names().contains("$gte"));
    /// ```
    pub fn names(self) -> BTreeSet<&'static str> {
        match self {
            Self::Filter => filter::operator_names().collect(),
            Self::Update => update::operator_names().collect(),
            Self::Stage => pipeline::stage_names().collect(),
            Self::Expression => expression::operator_names().collect(),
            Self::Accumulator => expression::accumulator::names().collect(),
            Self::WindowFunction => pipeline::window_function_names().collect(),
        }
    }
}
