//! `slate` reads a database while another program writes it, if that program shares it.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, process::Command};

use bson::{Document, doc};
use slate_core::{Database, Sharing};

/// Runs a command on `redb:shop.slate`. Returns its exit code and what it prints.
fn slate(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    let output = command.arg("redb:shop.slate").args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout) + &text(output.stderr))
}

fn open(folder: &Path, sharing: Sharing) -> Database {
    let url = format!("redb:{}", folder.join("shop.slate").display());
    Database::builder(&url).sharing(sharing).open().unwrap()
}

#[test]
fn a_shared_database_is_read_while_another_program_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path(), Sharing::WithReaders);
    let users = service.collection::<Document>("users");
    for id in 1..=3 {
        users.insert_one(&doc! { "_id": id }).unwrap();
        assert_eq!(slate(folder.path(), &["count", "users"]), (0, format!("{id}\n")));
    }
    assert_eq!(slate(folder.path(), &["backup", "copy"]), (0, "copied to copy\n".to_owned()));
    let (code, refused) = slate(folder.path(), &["delete", "users", "{}"]);
    assert!(
        code == 1 && refused.contains("already open") && refused.contains("hint: close the other program"),
        "{refused}"
    );
}

#[test]
fn a_command_waits_for_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path(), Sharing::Exclusive);
    service.collection::<Document>("users").insert_one(&doc! { "_id": 1 }).unwrap();
    for arguments in [&["count", "users", "--wait", "0s"][..], &["--wait", "50ms", "insert", "users", "{}"]] {
        let (code, refused) = slate(folder.path(), arguments);
        assert!(code == 1 && refused.contains("wait for it with --wait"), "{refused}");
        assert!(refused.contains(" [DBPathInUse 98]"), "{refused}");
    }
    let commands = [
        &["count", "users", "--wait", "2m"][..],
        &["--wait=2m", "insert", "users", "{ _id: 2 }"],
        &["copy", "redb:copy.slate", "--wait", "2m"],
    ];
    std::thread::scope(|scope| {
        let waiting = commands.map(|arguments| scope.spawn(|| slate(folder.path(), arguments)));
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(waiting.iter().all(|command| !command.is_finished()));
        drop(service);
        for command in waiting {
            let (code, printed) = command.join().unwrap();
            assert_eq!(code, 0, "{printed}");
        }
    });
    let (code, refused) = slate(folder.path(), &["--wait", "soon", "count", "users"]);
    assert!(code == 2 && refused.contains("expected a time with a unit, such as 500ms, 5s or 1m"), "{refused}");
}

#[test]
fn a_database_that_is_not_shared_is_refused_with_what_can_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path(), Sharing::Exclusive);
    service.collection::<Document>("users").insert_one(&doc! { "_id": 1 }).unwrap();
    let (code, refused) = slate(folder.path(), &["count", "users"]);
    assert!(code == 1 && refused.contains("open it there with sharing, or read a backup"), "{refused}");
    drop(service);
    assert_eq!(slate(folder.path(), &["count", "users"]), (0, "1\n".to_owned()));
}
