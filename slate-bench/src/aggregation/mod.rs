//! Aggregations: questions as a pipeline and as SQL, with the answers computed from the records by brute force.

mod answers;
mod companies;
mod questions;
mod value;

pub use answers::answer;
pub use companies::{COMPANIES, Company};
pub use questions::{QUESTIONS, Question};
pub use value::{Cell, Rows, check};
