//! The database benchmark.
