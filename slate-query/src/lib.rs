//! What a question means: BSON's order, key bytes, paths, filters, updates, projections and sorts.
//!
//! Pure functions over raw BSON: nothing here touches storage or does I/O.

pub mod distinct;
mod error;
pub mod filter;
pub mod interval;
pub mod key;
pub mod number;
pub mod order;
pub mod path;
pub mod pattern;
pub mod projection;
pub mod raw;
pub mod sort;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod update;

pub use error::{Code, Error, Refusal, Result};
