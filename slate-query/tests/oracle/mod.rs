//! Semantic cases of other suites, if they are available.

use std::{fs::File, io::Read, path::Path};

use bson::{Bson, Document};

/// Returns the cases of a file whose area starts with one of `areas`. Prints a line and returns none if the file is
/// missing.
pub(crate) fn cases(file: &str, areas: &[&str]) -> Vec<Document> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/oracle").join(file);
    let Ok(compressed) = File::open(&path) else {
        eprintln!("skipped: {file} is not available");
        return Vec::new();
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    let parse = |line: &str| {
        // `$regex` is the operator in these files; the parser would read a BSON regular expression.
        let json = serde_json::from_str::<serde_json::Value>(&line.replace("\"$regex\"", PROTECTED_KEY)).unwrap();
        match unprotected(Bson::try_from(json).unwrap()) {
            Bson::Document(case) => case,
            other => panic!("a case is a document, not {other}"),
        }
    };
    let in_areas = |case: &Document| areas.iter().any(|area| case.get_str("area").unwrap().starts_with(area));
    text.lines().map(parse).filter(in_areas).collect()
}

const PROTECTED_KEY: &str = "\"$$regex\"";

fn unprotected(value: Bson) -> Bson {
    match value {
        Bson::Document(document) => Bson::Document(
            document
                .into_iter()
                .map(|(key, value)| (if key == "$$regex" { "$regex".into() } else { key }, unprotected(value)))
                .collect(),
        ),
        Bson::Array(values) => Bson::Array(values.into_iter().map(unprotected).collect()),
        value => value,
    }
}
