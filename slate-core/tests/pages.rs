//! What README and the pages in `docs` say, as far as a test can check it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "pages/architecture.rs"]
mod architecture;
#[path = "pages/links.rs"]
mod links;
#[path = "pages/operators.rs"]
mod operators;
#[path = "pages/quoted_code.rs"]
mod quoted_code;
#[path = "pages/recipes.rs"]
mod recipes;
#[path = "pages/versions.rs"]
mod versions;
