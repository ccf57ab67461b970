//! Files whose documents nest deeper than allowed are refused with the documented exit code, in every format that nests.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

const LEVELS: usize = 10_000;

/// On both sides of the limit of 180.
const ACCEPTED: usize = 170;
const REFUSED: usize = 190;

/// Some records were refused.
const INCOMPLETE: i32 = 3;

/// Returns a document of this many documents or arrays within each other, in BSON.
fn bson(kind: u8, name: &[u8], levels: usize) -> Vec<u8> {
    let around = 4 + 1 + name.len() + 1 + 1;
    let mut bytes = Vec::new();
    for level in (0..=levels).rev() {
        bytes.extend_from_slice(&i32::try_from(5 + level * around).unwrap().to_le_bytes());
        if level > 0 {
            bytes.push(kind);
            bytes.extend_from_slice(name);
            bytes.push(0);
        }
    }
    bytes.extend_from_slice(&vec![0; levels + 1]);
    bytes
}

/// Returns the exit code, which a process that is aborted does not have, and what was printed.
fn slate(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    let output = command.arg("redb:shop.slate").args(arguments).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn deep_documents_are_refused_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let documents = |open: &str, close: &str| open.repeat(LEVELS) + "1" + &close.repeat(LEVELS);
    let of_arrays = format!("{{\"a\":{}}}", documents("[", "]"));
    let of_documents = documents("{\"a\":", "}");
    let sound = bson::rawdoc! { "_id": 1 }.into_bytes();
    let dump = |kind, name, levels| [bson(kind, name, levels), sound.clone()].concat();
    let path = ["a"; LEVELS].join(".");
    // Each file also has a document that is stored, except for tables: their columns are those of all lines.
    let files: [(&str, Vec<u8>, i32, u32); 10] = [
        ("arrays.jsonl", format!("{of_arrays}\n{{\"_id\":1}}\n").into(), INCOMPLETE, 1),
        ("documents.jsonl", format!("{of_documents}\n{{\"_id\":1}}\n").into(), INCOMPLETE, 1),
        ("ids.jsonl", format!("{{\"_id\":{of_documents}}}\n{{\"_id\":1}}\n").into(), INCOMPLETE, 1),
        ("documents.json", format!("[{of_documents}, {{\"_id\":1}}]").into(), INCOMPLETE, 1),
        ("documents.bson", dump(3, b"a", LEVELS), INCOMPLETE, 1),
        ("arrays.bson", dump(4, b"0", LEVELS), INCOMPLETE, 1),
        ("few.bson", dump(3, b"a", ACCEPTED), 0, 2),
        ("more.bson", dump(3, b"a", REFUSED), INCOMPLETE, 1),
        ("documents.csv", format!("_id,{path}\n1,2\n").into(), 1, 0),
        ("documents.tsv", format!("_id\t{path}\n1\t2\n").into(), 1, 0),
    ];
    for (name, bytes, code, stored) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
        let collection = name.replace('.', "_");
        let (ended, text) = slate(folder.path(), &["import", name, "--collection", &collection]);
        let text: String = text.chars().take(2_000).collect();
        assert_eq!(ended, Some(code), "{name}: {text}");
        let (ended, count) = slate(folder.path(), &["count", &collection]);
        let count = if ended == Some(0) { count.trim().parse().unwrap() } else { 0 };
        assert_eq!(count, stored, "{name}: {text}");
    }
    // Documents of the command line.
    let (ended, text) = slate(folder.path(), &["insert", "users", &of_documents]);
    assert!(matches!(ended, Some(1 | 2)), "{ended:?} {}", text.chars().take(2_000).collect::<String>());
}
