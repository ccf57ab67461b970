//! The store benchmark.
