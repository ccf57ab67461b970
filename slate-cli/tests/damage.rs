//! `verify` reports damage and `repair` rebuilds indexes.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use slate_store::{
    Bounds, Cursor, Durability, Edge, Keyspace, Store, Transaction, TransactionExt, View,
    redb::{Options, RedbStore},
};

/// The records of the first collection, and the entries of its first index.
const RECORDS: Keyspace = Keyspace(1);
const ENTRIES: Keyspace = Keyspace(2);

/// Runs a command on `redb:shop.slate`. Returns its exit code and what it prints.
fn slate(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    let output = command.arg("redb:shop.slate").args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout) + &text(output.stderr))
}

fn create(folder: &Path) {
    for arguments in [
        &["insert", "users", "[{ _id: 1, age: 36 }, { _id: 2, age: 41 }, { _id: 3, age: 50 }]"][..],
        &["create-index", "users", "{ age: 1 }"],
        &["create-index", "users", "{ age: -1, _id: 1 }", "--name", "second"],
    ] {
        assert_eq!(slate(folder, arguments).0, 0);
    }
}

/// Deletes the first key of a keyspace.
fn damage(folder: &Path, keyspace: Keyspace) {
    let store = RedbStore::open(&folder.join("shop.slate"), &Options::default()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut cursor = snapshot.cursor(keyspace, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    let key = cursor.current().unwrap().0.to_vec();
    drop(cursor);
    drop(snapshot);
    let mut transaction = store.begin(Duration::from_secs(60)).unwrap();
    transaction.delete(keyspace, &key).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

#[test]
fn an_index_that_lacks_an_entry_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let sound = (0, "3 documents, 6 index entries, 0 faults\n".to_owned());
    assert_eq!(slate(folder.path(), &["verify"]), sound);
    let listed = slate(folder.path(), &["indexes", "users"]);
    damage(folder.path(), ENTRIES);
    let (code, found) = slate(folder.path(), &["verify"]);
    assert_eq!(code, 3, "{found}");
    assert!(found.contains("age_1") && found.ends_with("3 documents, 5 index entries, 1 fault\n"), "{found}");
    // The index returns too little.
    let query = ["count", "users", "{ age: { $gt: 0 } }", "--hint", "age_1"];
    assert_eq!(slate(folder.path(), &query).1, "2\n");
    let repaired = slate(folder.path(), &["repair"]);
    assert_eq!(repaired, (0, format!("users: index age_1 rebuilt\n{}", sound.1)));
    assert_eq!(slate(folder.path(), &["verify"]), sound);
    assert_eq!(slate(folder.path(), &query).1, "3\n");
    // Rebuilt indexes have their definitions; their order may differ.
    let sorted = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(sorted(&slate(folder.path(), &["indexes", "users"]).1), sorted(&listed.1));
}

#[test]
fn entries_of_a_lost_document_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    damage(folder.path(), RECORDS);
    let (code, found) = slate(folder.path(), &["verify", "users"]);
    assert_eq!(code, 3, "{found}");
    assert!(found.ends_with("2 documents, 4 index entries, 2 faults\n"), "{found}");
    let (code, repaired) = slate(folder.path(), &["repair"]);
    assert_eq!(code, 0, "{repaired}");
    assert_eq!(
        repaired,
        "users: index age_1 rebuilt\nusers: index second rebuilt\n2 documents, 4 index entries, 0 faults\n"
    );
}

#[test]
fn a_killed_import_is_completed_or_undone() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    command.args(["redb:shop.slate", "import", "-", "--collection", "users"]).current_dir(folder.path());
    let mut import = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    // Several transactions, and a part of another.
    let documents: String = (10..5_500).map(|id| format!("{{ _id: {id}, age: {} }}\n", id % 90)).collect();
    input.write_all(documents.as_bytes()).unwrap();
    input.flush().unwrap();
    import.kill().unwrap();
    import.wait().unwrap();
    drop(input);
    let (code, count) = slate(folder.path(), &["count", "users"]);
    assert_eq!(code, 0, "a reader repairs what the import left: {count}");
    let (code, repaired) = slate(folder.path(), &["repair"]);
    assert!(code == 0 && repaired.ends_with(", 0 faults\n"), "{repaired}");
    let (code, count) = slate(folder.path(), &["count", "users"]);
    // What was synced before is there: whole transactions follow.
    assert!(code == 0 && count.trim().parse::<u64>().unwrap() % 1_000 == 3, "{count}");
}

/// Changes the file where it has this text, in every place.
fn change(folder: &Path, text: &[u8], change: impl Fn(&mut [u8])) {
    let path = folder.join("shop.slate");
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| change(&mut bytes[at..]));
    std::fs::write(path, bytes).unwrap();
}

fn create_many(folder: &Path) {
    let documents: Vec<String> =
        (0..500).map(|id| format!("{{ _id: {id}, text: \"document {id:04} of many\" }}")).collect();
    assert_eq!(slate(folder, &["insert", "users", &format!("[{}]", documents.join(","))]).0, 0);
    assert_eq!(slate(folder, &["create-index", "users", "{ text: 1 }"]).0, 0);
}

#[test]
fn a_changed_letter_is_found_and_everything_else_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    create_many(folder.path());
    change(folder.path(), b"document 0250 of", |bytes| bytes[0] = b'D');
    let (code, found) = slate(folder.path(), &["verify"]);
    assert_eq!(code, 3, "{found}");
    assert!(found.contains("DamagedStorage in users: documents after { \"_id\": "), "{found}");
    let (code, repaired) = slate(folder.path(), &["repair"]);
    assert!(code == 3 && repaired.contains("nothing was changed; `copy --skip-damaged"), "{repaired}");
    assert!(repaired.contains("`export --skip-damaged`"), "{repaired}");
    let (code, backup) = slate(folder.path(), &["backup", "shop.backup"]);
    assert!(
        code == 1 && backup.contains("nothing was copied") && !folder.path().join("shop.backup").exists(),
        "{backup}"
    );

    let (code, copied) = slate(folder.path(), &["copy", "--skip-damaged", "redb:saved.slate"]);
    assert!(code == 3 && copied.contains("left out: DamagedStorage in users: documents after"), "{copied}");
    std::fs::rename(folder.path().join("saved.slate"), folder.path().join("shop.slate")).unwrap();
    let (code, verified) = slate(folder.path(), &["verify"]);
    assert_eq!(code, 0, "{verified}");
    let count: u32 = slate(folder.path(), &["count", "users"]).1.trim().parse().unwrap();
    assert!((400..500).contains(&count), "{count}");
    assert_eq!(slate(folder.path(), &["count", "users", "{ text: /^D/ }"]).1, "0\n");
}

#[test]
fn an_export_leaves_out_damaged_documents_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    create_many(folder.path());
    assert_eq!(slate(folder.path(), &["insert", "sound", "{ _id: 1 }"]).0, 0);
    // Pages of documents become no pages: one that reads them fails.
    let sound = std::fs::read(folder.path().join("shop.slate")).unwrap();
    let damaged = (1..sound.len() / 4096).find_map(|page| {
        let mut bytes = sound.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(folder.path().join("shop.slate"), &bytes).unwrap();
        let (code, text) = slate(folder.path(), &["verify"]);
        (code == 3 && text.contains("DamagedStorage in users: documents after")).then_some(text)
    });
    assert!(damaged.is_some(), "no page of documents was found");

    let file = ["export", "users", "--output", "users.csv", "--typed"];
    let (code, refused) = slate(folder.path(), &file);
    assert!(code == 1 && refused.contains("`export --skip-damaged`"), "{refused}");
    assert!(!folder.path().join("users.csv").exists());
    let (code, exported) = slate(folder.path(), &[&file[..], &["--skip-damaged"]].concat());
    assert!(code == 3 && exported.contains("left out: DamagedStorage in users: documents after"), "{exported}");
    let lines = std::fs::read_to_string(folder.path().join("users.csv")).unwrap().lines().count();
    assert!((300..501).contains(&lines), "{lines}");

    // All collections, with their indexes.
    let (code, exported) = slate(folder.path(), &["export", "--output", "dump", "--skip-damaged"]);
    assert!(code == 3 && exported.contains("left out: DamagedStorage in users"), "{exported}");
    let mut import = Command::new(env!("CARGO_BIN_EXE_slate"));
    let imported = import.args(["redb:saved.slate", "import", "dump"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    std::fs::rename(folder.path().join("saved.slate"), folder.path().join("shop.slate")).unwrap();
    assert_eq!(slate(folder.path(), &["verify"]).0, 0);
    assert_eq!(slate(folder.path(), &["count", "users"]).1, format!("{}\n", lines - 1));
    assert!(slate(folder.path(), &["indexes", "users"]).1.contains("text_1"));

    // A sound database loses nothing, and neither does a sound collection.
    std::fs::write(folder.path().join("shop.slate"), &sound).unwrap();
    let (code, exported) = slate(folder.path(), &["export", "users", "{ _id: 7 }", "--skip-damaged"]);
    assert_eq!((code, &*exported), (0, "{\"_id\":7,\"text\":\"document 0007 of many\"}\n"));
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    create_many(folder.path());
    assert_eq!(slate(folder.path(), &["backup", "shop.backup"]).0, 0);
    std::fs::rename(folder.path().join("shop.backup"), folder.path().join("shop.slate")).unwrap();
    change(folder.path(), b"document 0250 of", |bytes| bytes[0] = b'D');
    std::fs::rename(folder.path().join("shop.slate"), folder.path().join("shop.backup")).unwrap();
    let (code, restored) = slate(folder.path(), &["restore", "shop.backup"]);
    assert!(code == 1 && restored.contains("shop.backup is damaged, and nothing was restored"), "{restored}");
    assert!(!folder.path().join("shop.slate").exists());
}

#[test]
fn pages_without_content_end_with_a_documented_code() {
    let folder = tempfile::tempdir().unwrap();
    create_many(folder.path());
    let sound = std::fs::read(folder.path().join("shop.slate")).unwrap();
    let mut failed = 0;
    for page in 1..sound.len() / 4096 {
        let mut bytes = sound.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(folder.path().join("shop.slate"), &bytes).unwrap();
        for arguments in
            [&["verify"][..], &["find", "users", "{}"], &["delete", "users", "{}", "--many"], &["drop", "users"]]
        {
            let (code, text) = slate(folder.path(), arguments);
            assert!(
                [0, 1, 2, 3].contains(&code) && !text.contains("panicked"),
                "page {page}: {arguments:?}: {code} {text}"
            );
            failed += u32::from(code == 1);
        }
    }
    assert!(failed > 20, "{failed}");
}
