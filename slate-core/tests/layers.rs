//! The modules of this crate use only modules below them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../slate-query/tests/layers/checker.rs"]
mod checker;
#[path = "../../slate-query/tests/layers/tokens.rs"]
mod tokens;

#[test]
fn modules_use_only_modules_below_them() {
    checker::assert_layers(env!("CARGO_MANIFEST_DIR"));
}
