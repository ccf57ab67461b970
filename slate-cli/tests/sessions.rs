//! Sessions at a shell, as documents show them: every ```` ```console ```` block of `tests/sessions/*.md`, docs/cli.md, docs/migrating.md and
//! docs/answers.md is executed, and its output compared.
//!
//! A line that begins with `$ ` is a command, which `sh` executes; the lines after it are what it prints on standard output
//! and standard error. `…` stands for any text within a line. `[exit 3]` follows the output of a command that does not end
//! with 0. `$SAMPLES` and `$DATA` are the folders of `tests/samples` and of the
//! public data sets. `… the same 12 lines` is the output of the command before, which must have this number of lines. The blocks of a document
//! share one folder. `UPDATE=1 cargo test -p slate-cli --test sessions` replaces what differs by the actual output; review
//! the difference before you commit it.

#![cfg(all(unix, feature = "redb"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the public data sets, which are not part of the repository.
fn data() -> Option<PathBuf> {
    let folder = env::var_os("SLATE_TEST_DATA").map_or_else(|| repository().join("../shared/data"), PathBuf::from);
    folder.is_dir().then(|| folder.canonicalize().unwrap())
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

#[test]
fn sessions_print_what_they_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let mut documents: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    assert!(!documents.is_empty());
    documents.extend(["docs/cli.md", "docs/migrating.md"].map(|page| repository().join(page)));
    check(&documents);
}

#[test]
fn queries_on_real_data_return_what_their_page_shows() {
    if data().is_some() {
        check(&[repository().join("docs/answers.md")]);
    }
}

fn check(documents: &[PathBuf]) {
    let mut wrong = String::new();
    for path in documents {
        let text = fs::read_to_string(path).unwrap();
        let (actual, differences) = run(&text);
        if differences.is_empty() {
            continue;
        }
        if env::var_os("UPDATE").is_some() {
            fs::write(path, actual).unwrap();
        } else {
            wrong.push_str(&format!("{}:\n{differences}\n", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Executes the commands of a document. Returns the document with the actual output, and the differences.
fn run(text: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (mut actual, mut differences) = (String::new(), String::new());
    let mut before = String::new();
    let mut lines = text.lines().peekable();
    let mut in_block = false;
    while let Some(line) = lines.next() {
        actual.push_str(line);
        actual.push('\n');
        if line.starts_with("```") {
            in_block = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) else { continue };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let next = lines.next().unwrap();
            actual.push_str(&format!("{next}\n"));
            command.push_str(&format!("\n{next}"));
        }
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            expected.push_str(&format!("{line}\n"));
        }
        let output = execute(&command, folder.path());
        let same = format!("… the same {} lines\n", before.lines().count());
        match output {
            // A program that some systems do not have.
            None => actual.push_str(&expected),
            Some(output) if expected == same && output == before => actual.push_str(&expected),
            Some(output) => {
                if matches(&expected, &output) {
                    actual.push_str(&expected);
                } else {
                    differences.push_str(&format!("$ {command}\n--- expected\n{expected}--- actual\n{output}"));
                    actual.push_str(&output);
                }
                before = output;
            }
        }
    }
    (actual, differences)
}

/// Executes a command and returns what it prints; `None` if it needs `jq` and that is missing.
fn execute(command: &str, folder: &Path) -> Option<String> {
    let needs_jq = command.split_whitespace().any(|word| word == "jq");
    if needs_jq && Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_err() {
        return None;
    }
    let slate = Path::new(env!("CARGO_BIN_EXE_slate")).parent().unwrap().to_owned();
    let path = env::join_paths([slate].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()))).unwrap();
    let printed = folder.join(".output");
    let file = File::create(&printed).unwrap();
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env_remove("SLATE_URL")
        .envs([("LC_ALL", "C.UTF-8"), ("HOME", "."), ("COLUMNS", "80")])
        .env("PATH", path)
        .env("DATA", data().unwrap_or_default())
        .env("SAMPLES", samples())
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    let mut output = fs::read_to_string(&printed).unwrap();
    let folders = [("$SAMPLES", Some(samples())), ("$DATA", data())];
    for (name, folder) in folders.into_iter().filter_map(|(name, folder)| Some((name, folder?))) {
        output = output.replace(folder.to_str().unwrap(), name);
    }
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    if !status.success() {
        output.push_str(&format!("[exit {}]\n", status.code().unwrap()));
    }
    Some(output)
}

/// Returns whether the output is as expected, line by line.
fn matches(expected: &str, output: &str) -> bool {
    let same_length = expected.lines().count() == output.lines().count();
    same_length && expected.lines().zip(output.lines()).all(|(expected, line)| line_matches(expected, line))
}

fn line_matches(expected: &str, line: &str) -> bool {
    match expected.split_once('…') {
        None => expected == line,
        Some((head, tail)) => line
            .strip_prefix(head)
            .is_some_and(|rest| rest.char_indices().any(|(at, _)| line_matches(tail, &rest[at..])) || tail.is_empty()),
    }
}
