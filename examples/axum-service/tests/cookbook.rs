//! Checks that each listing of this service in the cookbook equals lines of its source.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;

/// Returns the lines that are not empty, without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn what_the_cookbook_shows_is_in_the_source() {
    let page = include_str!("../../../docs/cookbook.md");
    let shown: Vec<_> =
        page.split("```rust,ignore\n").skip(1).map(|rest| lines(rest.split("```").next().unwrap())).collect();
    assert_eq!(shown.len(), 2);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let sources: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    for part in shown {
        let is_in = |source: &String| lines(source).windows(part.len()).any(|window| window == part);
        assert!(sources.iter().any(is_in), "the source does not contain\n{}", part.join("\n"));
    }
}
