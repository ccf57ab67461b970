//! Instructions per field of typed documents, counted by valgrind's callgrind. Without valgrind the test says so and passes.
//!
//! A test program is not optimized, so its counts are several times those of a release build. A bound is a fifth above the count
//! on the machine of the benchmarks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it skips")]

use std::{env, hint::black_box, process::Command};

use bson::{DateTime, rawdoc};
use serde::{Deserialize, Serialize};
use slate_query::{
    raw::{Doc, store},
    serde::{deserialize, serialize},
};

/// A record of the benchmarks.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(rename = "_id")]
    id: i64,
    name: String,
    status: String,
    contacts_count: i64,
    product_recommendation1: String,
    product_recommendation2: String,
    product_recommendation3: String,
    tags: Vec<String>,
    last_contacted_at: Option<DateTime>,
    notes: Option<String>,
}

#[derive(Deserialize)]
struct Borrowed<'r> {
    #[serde(rename = "_id")]
    id: i64,
    name: &'r str,
    contacts_count: i64,
}

/// What is repeated under callgrind.
const TASKS: [(&str, Task); 3] = [("owned", owned), ("borrowed", borrowed), ("written", written)];

type Task = fn(&[u8], u64);

fn record() -> Vec<u8> {
    let document = rawdoc! {
        "_id": 7_i64, "name": "Grace Hopper 7", "status": "active", "contacts_count": 12_i64,
        "product_recommendation1": "ProductA", "product_recommendation2": "ProductB", "product_recommendation3": "ProductC",
        "tags": ["new_lead", "renewal_due", "vip"], "last_contacted_at": DateTime::from_millis(1_700_000_000_000_i64),
        "notes": "called twice",
    };
    let mut stored = Vec::new();
    store(Doc::new(document.as_bytes()), &mut stored);
    stored
}

fn owned(stored: &[u8], times: u64) {
    for _ in 0..times {
        black_box(deserialize::<Record>(Doc::stored(black_box(stored))).unwrap());
    }
}

fn borrowed(stored: &[u8], times: u64) {
    for _ in 0..times {
        let Borrowed { id, name, contacts_count } = deserialize(Doc::stored(black_box(stored))).unwrap();
        black_box((id, name, contacts_count));
    }
}

fn written(stored: &[u8], times: u64) {
    let record: Record = deserialize(Doc::stored(stored)).unwrap();
    let mut buffer = Vec::new();
    for _ in 0..times {
        buffer.clear();
        serialize(black_box(&record), &mut buffer).unwrap();
        black_box(&buffer);
    }
}

/// Names the task and the number of repetitions for the process under callgrind.
const TASK: &str = "SLATE_COUNTED_TASK";

/// Is executed under callgrind by the other test.
#[test]
fn counted_task() {
    let Ok(task) = env::var(TASK) else { return };
    let (name, times) = task.split_once(' ').unwrap();
    let (_, run) = TASKS.into_iter().find(|(known, _)| *known == name).unwrap();
    run(&record(), times.parse().unwrap());
}

/// Counts the instructions of a process that repeats a task; `None` without valgrind.
fn instructions(task: &str, times: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().unwrap())
        .args(["counted_task", "--exact", "--test-threads=1"])
        .env(TASK, format!("{task} {times}"))
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    let (_, collected) = report.split_once("Collected :").unwrap();
    Some(collected.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn a_field_of_a_typed_document_takes_few_instructions() {
    const TIMES: u64 = 200;
    // The values have ten, three and ten fields.
    let bounds = [("owned", 10, 5_800), ("borrowed", 3, 5_350), ("written", 10, 2_720)];
    for (task, fields, most) in bounds {
        let Some(once) = instructions(task, TIMES) else {
            eprintln!("skipped: instructions are counted with valgrind, which is not installed");
            return;
        };
        // The rest of the process executes the same instructions in both.
        let twice = instructions(task, 2 * TIMES).unwrap();
        let each = (twice - once) / TIMES / fields;
        assert!(each <= most, "{task}: {each} instructions per field, more than {most}");
    }
}
