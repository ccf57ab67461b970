//! Aggregation expressions: values computed from a document.
//!
//! [`Expression::parse`] reads an expression once: it resolves operators and variables, checks the number of operands,
//! and computes constant parts. [`Expression::evaluate`] computes its value for a document. A value is borrowed from the
//! document or the expression where possible; see [`Evaluated`].
//!
//! [`accumulator`] computes a value from many documents. `operators/mod.rs` explains how to add an operator.

pub mod accumulator;
mod arguments;
mod bindings;
mod comparison;
mod env;
mod evaluated;
mod fold;
mod needs;
mod node;
mod operands;
mod operators;
mod parse;
mod path;

pub use bindings::Bindings;
pub(crate) use comparison::{Comparison, Logic, Relation};
pub use env::{Env, Frame, Variables};
pub use evaluated::Evaluated;
pub(crate) use evaluated::{check_depth, check_row};
pub use needs::Needs;
pub use node::Expression;
pub(crate) use operators::{DIVISION_BY_ZERO, date::Unit as DateUnit, names as operator_names, ranges};
