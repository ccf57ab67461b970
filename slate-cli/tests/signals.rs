//! SIGTERM, SIGHUP and SIGINT end a command: at a safe point, with the exit code that shells expect, and with nothing left behind. SIGKILL
//! leaves a database that every command reads.

#![cfg(all(unix, feature = "redb"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long a program may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn slate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
    command.arg("redb:shop.slate").args(arguments).current_dir(folder).env_remove("SLATE_URL");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command. Returns its exit code and what it prints.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    printed(slate(folder, arguments).stdin(Stdio::null()).output().unwrap())
}

fn printed(output: Output) -> (i32, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout) + &text(output.stderr))
}

fn send(signal: &str, to: &Child) {
    let sent = Command::new("kill").args([signal, &to.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        thread::sleep(Duration::from_millis(10));
    }
}

const SIGNALS: [(&str, i32); 3] = [("-TERM", 143), ("-HUP", 129), ("-INT", 130)];

#[test]
fn an_import_that_waits_for_its_input_ends() {
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let mut import =
            slate(folder.path(), &["import", "-", "--format", "json", "--collection", "t"]).spawn().unwrap();
        let mut input = import.stdin.take().unwrap();
        let documents: String = (0..2_500).map(|id| format!("{{ _id: {id} }}\n")).collect();
        input.write_all(documents.as_bytes()).unwrap();
        wait_for(|| folder.path().join("shop.slate").exists());
        send(signal, &import);
        let (exit, text) = printed(import.wait_with_output().unwrap());
        assert_eq!(exit, code, "{text}");
        assert!(text.contains("slate: interrupted"), "{text}");
        drop(input);
        // Whole transactions are there.
        let (exit, count) = run(folder.path(), &["count", "t"]);
        assert!(
            exit == 0 && count.trim().parse::<u64>().unwrap() % 1_000 == 0 || count.contains("no collection"),
            "{count}"
        );
        assert_eq!(run(folder.path(), &["verify"]).0, 0);
    }
}

#[test]
fn an_export_removes_its_incomplete_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut import = slate(folder.path(), &["import", "-", "--format", "json", "--collection", "t"]).spawn().unwrap();
    let documents: String = (0..5_000).map(|id| format!("{{ _id: {id} }}\n")).collect();
    import.stdin.take().unwrap().write_all(documents.as_bytes()).unwrap();
    assert_eq!(printed(import.wait_with_output().unwrap()).0, 0);
    // A filter that takes minutes.
    let slow = "{ $expr: { $gte: [{ $sum: { $range: [0, 300000] } }, 0] } }";
    for (signal, code) in SIGNALS {
        let export = slate(folder.path(), &["export", "t", slow, "--output", "t.jsonl"]).spawn().unwrap();
        let incomplete = folder.path().join("t.jsonl.incomplete");
        wait_for(|| incomplete.exists());
        let mode = std::os::unix::fs::PermissionsExt::mode(&incomplete.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700, "only this user can read it");
        send(signal, &export);
        let (exit, text) = printed(export.wait_with_output().unwrap());
        assert_eq!(exit, code, "{text}");
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["shop.slate"]);
    }
}

/// A run of commands from a pipe, which has written a document and waits for the next command.
fn waiting_shell(folder: &Path) -> Child {
    let mut shell = slate(folder, &[]).spawn().unwrap();
    shell.stdin.as_mut().unwrap().write_all(b"insert t {}\n").unwrap();
    wait_for(|| folder.join("shop.slate").exists());
    // The answer is printed when the document is stored.
    let mut output = BufReader::new(shell.stdout.take().unwrap());
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert!(answer.contains("$oid"), "{answer}");
    shell
}

#[test]
fn commands_from_a_pipe_end_between_two_commands() {
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = waiting_shell(folder.path());
        let input = shell.stdin.take();
        send(signal, &shell);
        assert_eq!(printed(shell.wait_with_output().unwrap()).0, code);
        drop(input);
        assert_eq!(run(folder.path(), &["count", "t"]), (0, "1\n".into()));
    }
}

#[test]
fn every_command_reads_what_a_killed_one_left() {
    let reading: [&[&str]; 13] = [
        &["find", "t"],
        &["count", "t"],
        &["distinct", "t", "_id"],
        &["aggregate", "t", "[]"],
        &["explain", "find", "t"],
        &["collections"],
        &["indexes", "t"],
        &["command", "{ find: 't' }"],
        &["export", "t"],
        &["backup", "copy"],
        &["stats"],
        &["schema-version"],
        &["verify"],
    ];
    for command in reading {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = waiting_shell(folder.path());
        // As long as it lives, its database is locked.
        let (code, refused) = run(folder.path(), command);
        assert!(code == 1 && refused.contains("already open") && refused.contains("--wait"), "{command:?}: {refused}");
        shell.kill().unwrap();
        shell.wait().unwrap();
        let (code, text) = run(folder.path(), command);
        assert_eq!(code, 0, "{command:?}: {text}");
        assert!(!text.contains("repair"), "{command:?}: {text}");
    }
}

#[test]
fn a_hangup_that_nohup_ignores_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let script = format!(
        "trap '' HUP; exec {} redb:shop.slate import - --format json --collection t",
        env!("CARGO_BIN_EXE_slate")
    );
    command.args(["-c", &script]).current_dir(folder.path());
    let mut import = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    input.write_all(b"{ _id: 1 }\n").unwrap();
    wait_for(|| folder.path().join("shop.slate").exists());
    send("-HUP", &import);
    input.write_all(b"{ _id: 2 }\n").unwrap();
    drop(input);
    let (code, text) = printed(import.wait_with_output().unwrap());
    assert!(code == 0 && text.contains("2 inserted"), "{code} {text}");
}
