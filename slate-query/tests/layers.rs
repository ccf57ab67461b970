//! The modules of this crate use only modules below them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "layers/checker.rs"]
mod checker;
#[path = "layers/tokens.rs"]
mod tokens;

use checker::{assert_layers, wrong_uses};

#[test]
fn modules_use_only_modules_below_them() {
    assert_layers(env!("CARGO_MANIFEST_DIR"));
}

/// Returns what is wrong in a crate with the layers `top`, `middle` and `aside`, `bottom`, if these are its files besides `lib.rs`.
fn wrong(files: &[(&str, &str)]) -> Vec<String> {
    let layers = [vec!["top"], vec!["middle", "aside"], vec!["bottom"]];
    let layers = layers.map(|layer| layer.into_iter().map(String::from).collect());
    let root = "
        mod aside;
        pub mod bottom;
        mod middle;
        mod top;
        pub mod inline { pub use other_crate::Other; }
        pub use bottom::{Error, Result as Outcome};
        pub use other_crate::Foreign;
        pub use top::builder::Builder;
    ";
    let files =
        [("lib.rs", root)].into_iter().chain(files.iter().copied()).map(|(name, text)| (name.into(), text.into()));
    wrong_uses(&layers, &files.collect::<Vec<_>>())
}

#[track_caller]
fn check(file: &str, text: &str, expected: &[&str]) {
    assert_eq!(wrong(&[(file, text)]), expected, "{text}");
}

#[test]
fn uses_of_lower_modules_are_right() {
    let text = "
        use crate::{Error, Foreign, Outcome, bottom::{self, a::B}, inline, middle::{C, d::{E, F as G}}};
        pub(crate) fn f(a: super::middle::C) -> crate::bottom::B { self::g() }
    ";
    check("top/builder.rs", &text.replace("super::", "super::super::"), &[]);
    check("top.rs", text, &[]);
}

#[test]
fn an_upward_use_is_reported_with_its_file_and_line() {
    check(
        "middle.rs",
        "use crate::bottom;\nuse crate::top;",
        &["middle.rs:2: `middle` uses `top`, which is not below it"],
    );
    let nested = "use std::fmt;\nuse crate::{\n    bottom::{A, b::{C, D}},\n    top::{E, f::G},\n};";
    check("middle/part.rs", nested, &["middle/part.rs:4: `middle` uses `top`, which is not below it"]);
    check(
        "middle/mod.rs",
        "\nfn f() -> crate::top::A {}",
        &["middle/mod.rs:2: `middle` uses `top`, which is not below it"],
    );
    check(
        "bottom/a.rs",
        "use super::super::middle;",
        &["bottom/a.rs:1: `bottom` uses `middle`, which is not below it"],
    );
    check(
        "bottom/mod.rs",
        "use super::{top, middle::A};",
        &[
            "bottom/mod.rs:1: `bottom` uses `top`, which is not below it",
            "bottom/mod.rs:1: `bottom` uses `middle`, which is not below it",
        ],
    );
}

#[test]
fn a_name_at_the_root_counts_as_its_module() {
    check("middle.rs", "use crate::{Builder, Error};", &["middle.rs:1: `middle` uses `top`, which is not below it"]);
    check("bottom.rs", "use crate::Outcome;", &[]);
}

#[test]
fn modules_of_one_layer_do_not_use_each_other() {
    check("aside.rs", "use crate::middle::A;", &["aside.rs:1: `aside` uses `middle`, which is not below it"]);
}

#[test]
fn comments_literals_and_tests_are_no_uses() {
    let text = r##"
        //! See [`crate::top`]. It isn't used.
        /* use crate::top; */
        const QUOTE: char = '"';
        const ESCAPED: char = '\'';
        const TEXT: &str = "use crate::top; \" crate::top::A";
        const RAW: &str = r#"crate::top " crate::top"#;
        fn f<'a>(text: &'a str) -> &'a str { text }
        #[cfg(test)]
        use crate::top::A;
        #[cfg(test)]
        mod tests {
            use crate::top::{B, C};
            fn f() { g(); }
        }
    "##;
    check("bottom.rs", text, &[]);
    let after = format!("{text}use crate::top;");
    check("bottom.rs", &after, &["bottom.rs:16: `bottom` uses `top`, which is not below it"]);
}

#[test]
fn the_layers_are_the_modules() {
    check("middle.rs", "use crate::unknown::A;", &["middle.rs:1: `unknown` is no module of the crate"]);
    let layers = [vec!["top".to_owned()], vec!["gone".to_owned()]];
    let files = [("lib.rs".to_owned(), "mod top;\nmod new;".to_owned())];
    assert_eq!(wrong_uses(&layers, &files), ["lib.rs: `new` has no layer", "lib.rs: the layer `gone` is no module"]);
}
