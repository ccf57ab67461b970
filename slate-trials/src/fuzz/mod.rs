//! Everything that takes bytes or documents, called with arbitrary ones: nothing may panic, and where there are two ways to the same
//! result, both must agree. `fuzz/` runs each target with libFuzzer; among the tests each gets some hundred random inputs and those of
//! `fuzz/corpus`.

mod input;
mod language;

use std::{cell::RefCell, io::Write};

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{Access, Config, Database, Index};
use slate_query::{
    key::{self, Direction, TypeReader},
    raw::Doc,
};

use self::input::Input;

/// A target: its name, and what is called with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 15] = [
    ("backup", backup),
    ("catalog", catalog),
    ("command", command),
    ("config", config),
    ("document", document),
    ("expression", language::expression),
    ("filter", language::filter),
    ("index", language::index),
    ("key", key),
    ("message", slate_server::fuzz::message),
    ("pipeline", language::pipeline),
    ("projection", language::projection),
    ("sort", language::sort),
    ("stored", stored),
    ("update", language::update),
];

/// Calls the target of this name.
///
/// # Panics
/// If there is none, or if it finds a fault.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    assert!(target.is_some(), "there is no target {name}");
    target.iter().for_each(|(_, target)| target(data));
}

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

/// Calls `work` with a database that holds some documents of every type, with indexes and without, and stays as it is.
fn with_database(work: impl FnOnce(&Database)) {
    let db = DATABASE.with_borrow_mut(|kept| kept.get_or_insert_with(filled).clone());
    work(&db);
}

fn filled() -> Database {
    let db = right(Database::open("memory:"));
    let documents = language::documents();
    for name in ["plain", "indexed"] {
        right(db.collection(name).insert_many(&documents).run());
    }
    let indexed = db.collection::<Document>("indexed");
    for keys in [doc! { "a": 1 }, doc! { "b": -1, "a": 1 }, doc! { "a.b": 1 }, doc! { "$**": 1 }] {
        right(indexed.create_index(Index::on(keys)).run());
    }
    db
}

/// Returns what the fixed part of a target must have.
#[track_caller]
fn right<T>(result: slate_core::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fault(&format!("a target cannot begin: {error:?}")),
    }
}

#[allow(clippy::panic, reason = "a fault ends the target")]
#[track_caller]
fn fault(what: &str) -> ! {
    panic!("{what}")
}

/// Bytes that are stored as a document, if they are one, and then read.
fn document(data: &[u8]) {
    let Ok(document) = RawDocumentBuf::from_bytes(data.to_vec()) else { return };
    let db = right(Database::open("memory:"));
    let c = db.collection::<RawDocumentBuf>("c");
    right(c.create_index(Index::on(doc! { "$**": 1 })).run());
    if c.insert_one(&document).is_ok() {
        let found = right(c.find(doc! {}).collect());
        assert_eq!(found.len(), 1, "an inserted document is found");
        assert!(right(db.verify().run()).is_sound(), "its entries agree with it");
    }
}

/// Bytes that are a command, if they are a document.
fn command(data: &[u8]) {
    if let Ok(command) = RawDocumentBuf::from_bytes(data.to_vec()) {
        let db = right(Database::open("memory:"));
        let _ = db.command(&command);
        assert!(right(db.verify().run()).is_sound(), "a command leaves the database sound");
    }
}

/// Bytes that are read as a stored record.
fn stored(data: &[u8]) {
    let record = Doc::stored(data);
    let _ = format!("{record:?}");
    for element in record.elements() {
        let _ = record.get(&element.display_name());
    }
}

/// Bytes that are decoded as an index key with its type bits.
fn key(data: &[u8]) {
    let mut input = Input::new(data);
    let direction = if input.byte().is_multiple_of(2) { Direction::Ascending } else { Direction::Descending };
    let (bits, key) = input.split();
    let (mut rest, mut reader) = (key, TypeReader::new(bits));
    while !rest.is_empty() {
        let (before, skipped) = (rest.len(), key::skip(rest, direction));
        if key::decode(&mut rest, direction, &mut reader).is_none() {
            break;
        }
        let decoded = before - rest.len();
        assert!(
            skipped.is_none_or(|skipped| skipped == decoded),
            "skipping and decoding agree: {skipped:?}, {decoded}"
        );
    }
}

/// A backup of a database in memory with some bytes replaced: it is refused, or it is what it was.
fn backup(data: &[u8]) {
    thread_local! {
        static BACKUP: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    }
    let folder = folder();
    let path = folder.path().join("backup");
    let whole = BACKUP.with_borrow_mut(|kept| {
        let made = kept.get_or_insert_with(|| {
            right(filled().backup(&path));
            std::fs::read(&path).unwrap_or_default()
        });
        made.clone()
    });
    let damaged = Input::new(data).damage(&whole);
    write(&path, &damaged);
    let opened = Database::builder(&format!("memory:{}", path.display())).access(Access::Open).open();
    if let Ok(db) = opened {
        assert_eq!(damaged, whole, "a damaged backup is refused");
        assert!(right(db.verify().run()).is_sound(), "a backup is sound");
    }
}

/// A file of redb with some bytes replaced: an error, a fault that `verify` reports, or what it was.
fn catalog(data: &[u8]) {
    thread_local! {
        static FILE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    }
    let folder = folder();
    let path = folder.path().join("db");
    let url = format!("redb:{}", path.display());
    let whole = FILE.with_borrow_mut(|kept| {
        let made = kept.get_or_insert_with(|| {
            let db = right(Database::open(&url));
            right(filled().copy_to(&db).run());
            right(db.close());
            std::fs::read(&path).unwrap_or_default()
        });
        made.clone()
    });
    write(&path, &Input::new(data).damage(&whole));
    if let Ok(db) = Database::builder(&url).access(Access::Open).open() {
        let _ = db.list_collections();
        let _ = db.verify().run();
        let _ = db.collection::<Document>("indexed").find(doc! { "a": 1 }).collect();
        let _ = db.collection::<Document>("new").insert_one(&doc! {});
    }
}

/// Text that is a configuration file, and the URL in it. Nothing is created.
fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = toml::from_str::<Config>(text) {
        let written = toml::to_string(&config).unwrap_or_default();
        let again = toml::from_str::<Config>(&written);
        assert!(
            again.is_ok_and(|again| format!("{again:?}") == format!("{config:?}")),
            "a configuration is read as written"
        );
    }
    let folder = folder();
    let _ = Database::builder(text).access(Access::ReadOnly).temp_directory(folder.path()).open();
}

fn folder() -> tempfile::TempDir {
    right(tempfile::tempdir().map_err(slate_core::Error::custom))
}

fn write(path: &std::path::Path, bytes: &[u8]) {
    right(std::fs::File::create(path).and_then(|mut file| file.write_all(bytes)).map_err(slate_core::Error::custom));
}
