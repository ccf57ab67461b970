//! Filters: conditions that select documents.
//!
//! A filter is parsed once into a tree of [`Node`]s whose leaves are operators on paths. A filter says whether a
//! document matches, at which array position, and within which key ranges of an index the matching documents are.

mod bounds;
mod clause;
mod collate;
mod collated;
mod comparison;
mod computed;
mod conjunction;
mod disjunction;
mod display;
mod equalities;
mod explain;
mod field;
mod implication;
mod node;
mod operator;
mod operators;
mod parse;
mod partial;
mod position;
mod relocated;
mod shape;
mod single_equality;
mod terms;
mod whole;

pub use bounds::Exactness;
pub use clause::BindingsSource;
pub use explain::explain;
pub use node::Node;
pub(crate) use operators::{is_value_operator, names as operator_names};
pub use partial::depth;
pub use position::Ties;
pub use single_equality::SingleEquality;
pub use terms::{Term, Validity};
pub use whole::Filter;
