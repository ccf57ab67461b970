//! Files of every released version: they open, are sound, return what was recorded when they were written, and can be changed.
//!
//! `docs/guarantees.md` describes how the files of a version are written.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "corpus/contents.rs"]
mod contents;
#[path = "corpus/kinds.rs"]
mod kinds;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write, copy},
    path::{Path, PathBuf},
};

use bson::{Bson, Document, RawDocumentBuf, doc};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use slate_core::{Access, Database, ErrorKind, IndexState};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
const ANSWERS: &str = "answers.jsonl.gz";

/// Returns the stores on whose files a version is tested: the name in a URL, and the name of the file or folder.
fn stores() -> Vec<(&'static str, &'static str)> {
    let mut stores = vec![("memory", "memory.gz"), ("redb", "redb.gz")];
    if cfg!(feature = "rocksdb") {
        stores.push(("rocksdb", "rocksdb"));
    }
    stores
}

fn compress(from: &Path, to: &Path) {
    let mut encoder = GzEncoder::new(File::create(to).unwrap(), Compression::best());
    copy(&mut File::open(from).unwrap(), &mut encoder).unwrap();
    encoder.finish().unwrap();
}

/// Copies a file or folder of the corpus, decompressing it.
fn unpack(from: &Path, to: &Path) {
    if from.is_file() {
        copy(&mut GzDecoder::new(File::open(from).unwrap()), &mut File::create(to).unwrap()).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn answer(db: &Database, command: &Document) -> String {
    let reply = db.command(RawDocumentBuf::try_from(command).unwrap());
    let mut reply = Document::try_from(reply.unwrap_or_else(|error| panic!("{command}: {error}"))).unwrap();
    let answer = ["cursor", "values", "n"].iter().find_map(|field| reply.remove(field)).unwrap();
    answer.into_canonical_extjson().to_string()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Answer {
    command: serde_json::Value,
    answer: String,
}

/// Compares the results of all recorded queries.
fn check_answers(db: &Database, answers: &[Answer]) {
    for Answer { command, answer: expected } in answers {
        let Bson::Document(command) = Bson::try_from(command.clone()).unwrap() else { panic!("{command}") };
        assert_eq!(&answer(db, &command), expected, "{command}");
    }
}

fn check_soundness(db: &Database) {
    let report = db.verify().run().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

/// Checks the second set of files: its views and its log of changes.
fn check_kinds(db: &Database) {
    let names = db.list_collection_names().unwrap();
    assert!(names.iter().any(|name| name == "collated view"), "{names:?}");
    assert!(db.logs_changes().unwrap());
    let log = db.stats().unwrap().changes.unwrap();
    assert!(log.bytes > 5_000, "{log:?}");
    let parts = db.collection::<Document>("parts");
    for index in parts.list_indexes().unwrap() {
        assert_eq!(index.state, IndexState::Ready, "{}", index.name);
    }
    let added = doc! { "_id": "added", "shop": 1, "part": { "x": [1, { "y": 2 }], "é": null }, "name": "Ä" };
    parts.insert_one(&added).unwrap();
    let by = |index: &str, filter: Document| parts.find(filter).hint(slate_core::Hint::Name(index.into())).collect();
    for (index, filter) in [("below", doc! { "part.x.y": 2 }), ("compound", doc! { "shop": 1, "part.x.y": 2 })] {
        assert_eq!(by(index, filter).unwrap(), std::slice::from_ref(&added), "{index}");
    }
    parts.update_one(doc! { "_id": "added" }, doc! { "$set": { "part.x": 7.5 } }).run().unwrap();
    assert_eq!(by("all", doc! { "part.x": 7.5 }).unwrap().len(), 1);
    check_soundness(db);
    assert_eq!(parts.delete_one(doc! { "_id": "added" }).run().unwrap(), 1);
    assert!(db.stats().unwrap().changes.unwrap().bytes > log.bytes, "changes are still logged");
}

/// Writes to every collection, and restores what was there.
fn change(db: &Database) {
    for name in db.list_collection_names().unwrap().into_iter().filter(|name| !name.starts_with("slate.")) {
        let documents = db.collection::<Document>(&name);
        let added =
            doc! { "_id": "added", "name": "x", "v": "x", "a": 1, "b": 2, "tags": [1, 2], "mail": "x", "text": "x" };
        documents.insert_one(&added).unwrap();
        let changed =
            documents.update_one(doc! { "_id": "added" }, doc! { "$set": { "v": [1, 2.5], "a": "x" } }).run().unwrap();
        assert_eq!(changed.modified, 1, "{name}");
        assert_eq!(documents.count_documents(doc! { "a": "x" }).run().unwrap(), 1, "{name}");
        check_soundness(db);
        assert_eq!(documents.delete_one(doc! { "_id": "added" }).run().unwrap(), 1, "{name}");
    }
    let refused = |collection: &str, document| db.collection::<Document>(collection).insert_one(&document).unwrap_err();
    let text = db.collection::<Document>("users").find_by_id(3).unwrap().unwrap().get_str("text").unwrap().to_owned();
    assert_eq!(refused("users", doc! { "mail": "7@x" }).index(), Some("mail_1"));
    assert_eq!(refused("users", doc! { "text": text }).index(), Some("text_1"));
    assert_eq!(refused("people", doc! { "age": 1 }).code(), 121);
}

/// Opens a copy of one version's files on one store.
fn check(version: &Path, store: &str, file: &str) {
    println!("{} on {store}", version.display());
    let answers = BufReader::new(GzDecoder::new(File::open(version.join(ANSWERS)).unwrap())).lines();
    let answers: Vec<Answer> = answers.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(answers.len() > 50);
    let is_second = version.to_string_lossy().ends_with(SECOND);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    unpack(&version.join(file), &path);
    let url = format!("{store}:{}", path.display());

    if store != "memory" {
        let db = Database::builder(&url).access(Access::ReadOnly).open().unwrap();
        check_soundness(&db);
        check_answers(&db, &answers);
        assert_eq!(db.collection("parts").insert_one(&doc! {}).unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    let db = Database::open(&url).unwrap();
    check_soundness(&db);
    check_answers(&db, &answers);
    if is_second {
        check_kinds(&db);
    } else {
        check_first(&db);
    }
    check_answers(&db, &answers);
    if store != "memory" {
        db.close().unwrap();
        let db = Database::open(&url).unwrap();
        check_soundness(&db);
        check_answers(&db, &answers);
    }
}

/// Checks the first set of files: its schema version, and a build that a crash interrupted.
fn check_first(db: &Database) {
    assert_eq!(db.schema_version().unwrap(), 1);
    let building = db.collection::<Document>("building");
    assert_eq!(building.list_indexes().unwrap()[0].state, IndexState::Building);
    assert_eq!(db.resume_index_builds().unwrap(), 1);
    assert_eq!(building.list_indexes().unwrap()[0].state, IndexState::Ready);
    change(db);
}

fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn files_of_every_version_can_be_read_and_changed() {
    for version in versions() {
        for (store, file) in stores() {
            check(&version, store, file);
        }
    }
}

#[test]
fn this_version_has_files() {
    assert!(
        versions().contains(&Path::new(CORPUS).join(env!("CARGO_PKG_VERSION"))),
        "docs/guarantees.md says how to add them"
    );
}

/// What the name of a folder with a second set of a version's files ends with.
const SECOND: &str = "-kinds";

/// Replaces the files of this version. Those of a released version must not change any more.
#[test]
#[ignore = "writes into the corpus"]
fn write_the_files_of_this_version() {
    write(&Path::new(CORPUS).join(env!("CARGO_PKG_VERSION")), contents::write, &contents::commands());
}

/// Replaces the second set of files of this version.
#[test]
#[ignore = "writes into the corpus"]
fn write_the_second_files_of_this_version() {
    let folder = format!("{}{SECOND}", env!("CARGO_PKG_VERSION"));
    write(&Path::new(CORPUS).join(folder), kinds::write, &kinds::commands());
}

fn write(version: &Path, contents: fn(&Database), commands: &[Document]) {
    if version.exists() {
        fs::remove_dir_all(version).unwrap();
    }
    fs::create_dir(version).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (store, file) in stores() {
        let path = folder.path().join(store);
        let db =
            Database::open(&if store == "memory" { "memory:".into() } else { format!("{store}:{}", path.display()) })
                .unwrap();
        contents(&db);
        match store {
            "memory" => db.backup(&path).unwrap(),
            _ => db.compact().unwrap(),
        }
        if store == "memory" {
            let mut answers = GzEncoder::new(File::create(version.join(ANSWERS)).unwrap(), Compression::best());
            for command in commands.iter().cloned() {
                let answer =
                    Answer { answer: answer(&db, &command), command: Bson::Document(command).into_canonical_extjson() };
                writeln!(answers, "{}", serde_json::to_string(&answer).unwrap()).unwrap();
            }
            answers.finish().unwrap();
        }
        db.close().unwrap();
        if path.is_file() {
            compress(&path, &version.join(file));
            continue;
        }
        fs::create_dir(version.join(file)).unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Neither RocksDB's own log nor the lock is part of the database.
            if !name.starts_with("LOG") && name != "LOCK" {
                fs::copy(entry.path(), version.join(file).join(name)).unwrap();
            }
        }
    }
}
