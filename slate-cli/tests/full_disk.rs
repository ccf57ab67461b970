//! Imports, backups and exports onto a full disk: a clear error, and nothing stored before is lost.
//!
//! The disk is a small file system in memory. Where a process may not mount one, the test says so and passes.

#![cfg(all(target_os = "linux", feature = "redb"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it skips")]

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Output},
};

/// The exit code of a script that could not mount the file system.
const NOT_MOUNTED: i32 = 77;

/// Executes a script in a namespace of its own, in which the folder `disk` has 8 MiB. `None` if there is none.
fn on_small_disk(folder: &Path, script: &str) -> Option<String> {
    let mount = format!("mount -t tmpfs -o size=8m tmpfs disk || exit {NOT_MOUNTED}\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount]).current_dir(folder);
    let Ok(Output { status, stdout, stderr }) = command.output() else {
        eprintln!("skipped: there is no unshare");
        return None;
    };
    let (printed, failed) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    if status.code() == Some(NOT_MOUNTED) || failed.starts_with("unshare:") {
        eprintln!("skipped: no file system can be mounted: {failed}");
        return None;
    }
    assert!(status.success() && failed.is_empty(), "{printed}{failed}");
    Some(printed)
}

fn lines(path: &Path, ids: std::ops::Range<u32>) {
    let mut text = String::new();
    ids.for_each(|id| writeln!(text, r#"{{"_id":{id},"text":"{}"}}"#, "x".repeat(500)).unwrap());
    fs::write(path, text).unwrap();
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    check("redb");
    #[cfg(feature = "rocksdb")]
    check("rocksdb");
}

fn check(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    lines(&folder.path().join("few.jsonl"), 0..1_000);
    lines(&folder.path().join("many.jsonl"), 1_000..40_000);
    let slate = env!("CARGO_BIN_EXE_slate");
    // Each command's messages and exit code, after a line `> `.
    let script = format!(
        r#"
        slate() {{ echo '> '; '{slate}' {store}:disk/db "$@" 2>&1; echo "[exit $?]"; }}
        slate import few.jsonl --collection c
        slate import many.jsonl --collection c
        slate repair
        echo '> '; '{slate}' {store}:few.db import few.jsonl --collection c && '{slate}' {store}:few.db backup few.copy
        slate count c '{{ _id: {{ $lt: 1000 }} }}'
        head -c 20m /dev/zero >disk/zeros 2>errors
        slate backup disk/copy
        slate export c --output disk/c.jsonl
        slate export --output disk/dump/all
        slate copy redb:disk/copy.slate
        echo '> '; '{slate}' redb:disk/restored.slate restore few.copy 2>&1; echo "[exit $?]"
        echo '> '; ls disk
        rm disk/zeros
        slate insert c '{{ _id: "new" }}'
        slate verify
        "#
    );
    let Some(printed) = on_small_disk(folder.path(), &script) else { return };
    let answers: Vec<&str> = printed.split("> \n").skip(1).collect();
    let [few, many, repaired, _, count, backup, export, dump, copy, restore, listed, insert, verified] = &*answers
    else {
        unreachable!("thirteen answers: {printed}")
    };
    assert_eq!(*few, "few.jsonl: 1000 inserted, collection c\n[exit 0]\n");
    for full in [many, backup, export, dump, copy, restore] {
        assert!(full.ends_with("\n[exit 1]\n") && full.contains("\nhint: "), "{store}: {full}");
        assert!(full.contains("No space left on device"), "{store}: {full}");
    }
    assert!(repaired.ends_with(", 0 faults\n[exit 0]\n"), "{store}: {repaired}");
    assert_eq!(*count, "1000\n[exit 0]\n", "what was imported before is there");
    assert_eq!(*listed, "db\nzeros\n", "no incomplete files are left");
    assert_eq!(*insert, "\"new\"\n[exit 0]\n");
    assert!(verified.ends_with(", 0 faults\n[exit 0]\n"), "{store}: {verified}");
}

/// The file system has room, but the file may not become longer: nothing foretells that a commit does not fit.
#[test]
fn a_file_that_may_not_become_longer_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    lines(&folder.path().join("few.jsonl"), 0..1_000);
    lines(&folder.path().join("many.jsonl"), 1_000..40_000);
    let slate = env!("CARGO_BIN_EXE_slate");
    let script = format!(
        r#"
        slate() {{ echo '> '; '{slate}' redb:db "$@" 2>&1; echo "[exit $?]"; }}
        trap '' XFSZ
        ulimit -S -f 16384
        slate import few.jsonl --collection c
        slate import many.jsonl --collection c
        ulimit -S -f unlimited
        slate count c '{{ _id: {{ $lt: 1000 }} }}'
        slate insert c '{{ _id: "new" }}'
        slate verify
        "#
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = printed.split("> \n").skip(1).collect();
    let [few, many, count, insert, verified] = &*answers else { unreachable!("five answers: {printed}") };
    assert_eq!(*few, "few.jsonl: 1000 inserted, collection c\n[exit 0]\n");
    assert!(many.ends_with("\n[exit 1]\n") && many.contains("File too large"), "{many}");
    assert_eq!(*count, "1000\n[exit 0]\n", "what was imported before is there");
    assert_eq!(*insert, "\"new\"\n[exit 0]\n");
    assert!(verified.ends_with(", 0 faults\n[exit 0]\n"), "{verified}");
}
