//! The lines of code on the page for contributors: each stands in the file that its block names.

use std::{fs, path::Path};

const CONTRIBUTING: &str = include_str!("../../../CONTRIBUTING.md");

/// Returns the blocks whose first line is a comment with a file's name: the name and the lines after it, trimmed.
fn blocks() -> Vec<(&'static str, Vec<&'static str>)> {
    let inside = CONTRIBUTING.split("```").skip(1).step_by(2);
    let of_file = |block: &'static str| {
        let mut lines = block.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
        let file = lines.next()?.strip_prefix("// ")?;
        Some((file, lines.collect()))
    };
    inside.filter_map(of_file).collect()
}

#[test]
fn quoted_lines_stand_in_their_files_in_the_same_order() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let blocks = blocks();
    for (file, quoted) in &blocks {
        let text = fs::read_to_string(repository.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut lines = text.lines().map(str::trim);
        for line in quoted {
            assert!(lines.any(|in_file| in_file == *line), "{file} lacks {line:?} at this place");
        }
    }
    assert!(blocks.len() > 12, "{}", blocks.len());
}
