//! Exports that keep every type are imported as the same documents: of small samples and, where they are, of the public data
//! sets; from every store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    env,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// The files that are written with every type, and the options for it.
const FORMATS: &[(&str, &str)] = &[
    ("trip.bson", ""),
    ("trip.bson.gz", ""),
    ("trip.jsonl", "--format canonical"),
    ("trip.csv", "--typed"),
    ("trip.tsv.gz", "--typed"),
];

/// The size from which a file is written in few formats, in bytes, and those formats.
const LARGE: u64 = 2 << 20;
const LARGE_FORMATS: &[&str] = &["trip.bson.gz", "trip.csv"];

/// Returns the stores of this build.
fn stores() -> Vec<&'static str> {
    let mut stores = vec!["memory:"];
    stores.extend(cfg!(feature = "redb").then_some("redb:trip.slate"));
    stores.extend(cfg!(feature = "rocksdb").then_some("rocksdb:trip.slate"));
    stores
}

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = files_of(&folder.join("tests/samples"));
    assert!(!files.is_empty());
    let data = env::var_os("SLATE_TEST_DATA").map_or_else(|| folder.join("../../shared/data"), PathBuf::from);
    if data.is_dir() {
        files.extend(files_of(&data));
    }
    files
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().canonicalize().unwrap());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_none_or(|end| end != "md")).collect();
    files.sort();
    files
}

/// Runs the lines of a script in one shell, because a database in memory ends with it.
fn run(folder: &Path, url: &str, script: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    command.arg(url).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{script}\n{printed}");
    printed
}

/// Returns the documents of a file of canonical extended JSON.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Exports each sample from a store and imports it again.
fn check_exports(store: &str) {
    for source in samples() {
        let folder = tempfile::tempdir().unwrap();
        let mut script = format!("import \"{}\" --collection source\n", source.display());
        script.push_str("export source --sort {_id: 1} --format canonical --output source.jsonl\n");
        // Two formats suffice for a large file.
        let large = fs::metadata(&source).unwrap().len() > LARGE;
        let formats: Vec<_> = FORMATS.iter().filter(|(file, _)| !large || LARGE_FORMATS.contains(file)).collect();
        for (file, options) in &formats {
            script.push_str(&format!("export source --output {file} {options}\n"));
            script.push_str(&format!("import {file} --collection copy\n"));
            script.push_str(&format!("export copy --sort {{_id: 1}} --format canonical --output {file}.jsonl\n"));
            script.push_str("drop copy\n");
        }
        let printed = run(folder.path(), store, &script);
        let expected = documents(&folder.path().join("source.jsonl"));
        assert!(!expected.is_empty(), "{printed}");
        for (file, _) in &formats {
            let read = documents(&folder.path().join(format!("{file}.jsonl")));
            assert_eq!(read.len(), expected.len(), "{} as {file} on {store}", source.display());
            for (read, expected) in read.iter().zip(&expected) {
                // A table has one order of fields, which this comparison ignores.
                assert_eq!(read, expected, "{} as {file} on {store}", source.display());
            }
        }
        // The others keep the order of fields, too.
        let text = |file: &str| fs::read_to_string(folder.path().join(format!("{file}.jsonl"))).unwrap();
        for (file, _) in formats.iter().filter(|(_, options)| *options != "--typed") {
            assert!(text(file) == text("source"), "{} as {file} on {store}", source.display());
        }
    }
}

#[test]
fn exports_from_memory_are_imported_as_the_same_documents() {
    check_exports("memory:");
}

#[test]
#[cfg(feature = "redb")]
fn exports_from_redb_are_imported_as_the_same_documents() {
    check_exports("redb:trip.slate");
}

#[test]
#[cfg(feature = "rocksdb")]
fn exports_from_rocksdb_are_imported_as_the_same_documents() {
    check_exports("rocksdb:trip.slate");
}

#[test]
fn a_dump_of_all_collections_has_their_indexes() {
    let definitions = "create-index one { a: 1, 'b.c': -1 } --unique --name 'first one'\n\
                       create-index one { d: 1 } --sparse\n\
                       create-index 'a/b%' { x: 1 } --only { x: { $gt: 5 } }\n";
    let list = "indexes one\nindexes 'a/b%'\nindexes empty\ncount 'a/b%'\ncollections\n";
    for store in stores() {
        let folder = tempfile::tempdir().unwrap();
        let insert = "insert one { a: 1 } { a: 2, b: [{ c: 1 }, { c: 2 }] }\ninsert 'a/b%' { x: 7 }\n\
                      create-index empty { a: 1 }\n";
        let listed = run(folder.path(), store, &format!("{insert}{definitions}{list}"));
        let dump = run(
            folder.path(),
            store,
            &format!("{}export --output dump --gzip\n", in_memory(store, insert, definitions)),
        );
        assert!(dump.contains("slate/a%2Fb%25.bson.gz"), "{dump}");
        assert!(folder.path().join("dump/slate/one.metadata.json.gz").is_file());
        for target in stores() {
            let other = tempfile::tempdir().unwrap();
            let import = format!("import {}/dump\n", folder.path().display());
            run(other.path(), target, &format!("{import}verify\n"));
            let script = format!("{}{list}", in_memory(target, &import, ""));
            let restored = run(other.path(), target, &script);
            assert!(restored.ends_with(listed.split_once("x_1\n").unwrap().1), "{restored}\n{listed}");
        }
    }
}

/// Returns the commands to run before a third script. A database in memory ends with its shell, so the commands of the earlier
/// shells are repeated; other stores need none.
fn in_memory(store: &str, first: &str, second: &str) -> String {
    if store == "memory:" { format!("{first}{second}") } else { String::new() }
}

#[test]
fn copies_and_backups_have_the_same_documents_and_indexes() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/types.jsonl");
    for from in stores().into_iter().filter(|store| *store != "memory:") {
        for to in stores().into_iter().filter(|store| *store != "memory:") {
            let folder = tempfile::tempdir().unwrap();
            let create =
                format!("import \"{}\" --collection t\ncreate-index t {{ int64: -1 }} --sparse\n", sample.display());
            run(folder.path(), from, &create);
            let (scheme, _) = to.split_once(':').unwrap();
            run(folder.path(), from, &format!("copy {scheme}:copy\nbackup backup\n"));
            run(folder.path(), &format!("{scheme}:restored"), "restore backup\n");
            let show = "find t {} --sort {_id: 1} --format canonical\nindexes t\nverify\n";
            let expected = run(folder.path(), from, show);
            for copy in ["copy", "restored"] {
                assert_eq!(run(folder.path(), &format!("{scheme}:{copy}"), show), expected);
            }
        }
    }
}

#[test]
fn compressed_files_are_recognized_by_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    // Two documents in two frames of Zstandard, of `zstd -1`.
    let frame = |byte: u8| {
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 8, 0x41, 0, 0][..], &[b'{', b'a', b':', b' ', byte, b' ', b'}', b'\n']]
            .concat()
    };
    let mut file = File::create(folder.path().join("numbers")).unwrap();
    file.write_all(&[frame(b'1'), frame(b'2')].concat()).unwrap();
    let printed = run(folder.path(), "memory:", "import numbers --collection n\nfind n {} --project {_id: 0}\n");
    assert_eq!(printed, "numbers: 2 inserted, collection n\n{\"a\":1}\n{\"a\":2}\n");
}
