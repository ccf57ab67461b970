//! The semantics of queries over raw BSON: order, keys, paths, filters, updates, projections and sorts.
//!
//! This crate does no I/O and knows nothing of storage. Except for random values and new ObjectIds, results depend only
//! on the arguments and on the limits of the call.
//!
//! | module | contents |
//! |---|---|
//! | [`raw`] | values and documents as bytes, validation, the writer |
//! | [`number`], [`order`] | exact arithmetic and comparison; BSON's order of values, sets of values |
//! | [`key`], [`interval`] | values as bytes that sort; ranges of such bytes |
//! | [`collation`] | the order of strings in a language |
//! | [`path`] | dotted paths, and the walk along them |
//! | [`expression`] | aggregation expressions: values computed from a document |
//! | [`filter`] | conditions: matching, array positions, index bounds |
//! | [`pattern`], [`wildcard`], [`sort`], [`distinct`] | a document's keys in an index or a sort; its distinct values |
//! | [`schema`] | JSON schemas: conditions on the structure of documents |
//! | [`projection`], [`update`] | new documents from old ones |
//! | [`pipeline`], [`sink`] | the stages of aggregations; where their results are written |
//! | [`names`] | the names of supported operators |
//! | [`mod@serde`] | conversion between raw BSON and Rust types |
//! | [`held`] | the memory of computed values, counted against the limit of its call |
//! | [`work`] | the steps of an evaluation, counted against the end of its call |

pub mod collation;
pub mod distinct;
mod error;
pub mod expression;
pub mod filter;
pub mod held;
pub mod interval;
pub mod key;
mod named_list;
pub mod names;
pub mod number;
pub mod order;
pub mod path;
pub mod pattern;
pub mod pipeline;
pub mod projection;
pub mod raw;
mod regular_expression;
pub mod schema;
pub mod serde;
pub mod sink;
pub mod sort;
pub mod update;
mod value_set;
pub mod wildcard;
pub mod work;

pub use error::{Code, Error, Refusal, Result};
