//! Calls whose work is inside one document end at their deadline.
//!
//! Filters, updates, expressions and pipelines of random operators, sizes and nestings are executed on a few documents. In a build with
//! debug assertions the tests count the real work between two checks of the deadline: elements read, values compared, bytes written.
//! The long run measures the time instead:
//!
//! ```sh
//! SLATE_WORK_SECONDS=600 cargo test --release -p slate-core --test unbounded_work -- --ignored --nocapture
//! ```
//!
//! It prints the seed and the sizes of each call that is late: with `SLATE_WORK_CALL` it executes only that call.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking"
)]

mod common;
#[path = "unbounded_work/drawn.rs"]
mod drawn;
#[path = "unbounded_work/growth.rs"]
mod growth;
#[path = "unbounded_work/operators.rs"]
mod operators;

use std::time::{Duration, Instant};

use bson::doc;
use common::Store;
use drawn::{Documents, Draw, Random};
use operators::Parts;

/// Enough for a call to make much work, so that a part that is not counted shows.
#[cfg(debug_assertions)]
const WITHIN: Duration = Duration::from_millis(250);

/// The most real work between two checks, in elements, comparisons and 64 bytes. At 30 ns each it takes 30 ms.
#[cfg(debug_assertions)]
const MOST: usize = 1_000_000;

#[cfg(debug_assertions)]
#[test]
fn no_call_works_long_between_two_checks() {
    let calls = std::env::var("SLATE_WORK_CALLS").map_or(100, |calls| calls.parse().unwrap());
    let seed: u64 = std::env::var("SLATE_WORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let test = Store::Memory.open();
    let size = 2_000;
    let documents = Documents::new(&test.db, size);
    let c = documents.collection.with_deadline(WITHIN);
    let mut worst = 0;
    for number in 0..calls {
        let call = Draw { random: Random(seed + number), size }.call();
        let start = Instant::now();
        // Many calls are refused, some only after much work.
        let (result, most) = slate_query::work::testing::most_unchecked(|| call.run(&c));
        let time = start.elapsed();
        if std::env::var("SLATE_WORK_SHOW").is_ok() && time > 3 * WITHIN {
            eprintln!(
                "seed {}: {time:?}, {most} steps: {}",
                seed + number,
                call.name.chars().take(150).collect::<String>()
            );
        }
        documents.reset();
        worst = worst.max(most);
        assert!(
            most < MOST,
            "seed {}: {most} steps without a check, {time:?}: {}: {result:?}",
            seed + number,
            call.name
        );
    }
    eprintln!("at most {worst} steps without a check");
}

/// The time after the deadline within which a call returns.
const LATE: Duration = Duration::from_millis(100);
const WITHIN_RELEASE: Duration = Duration::from_millis(100);
const MAX_ARGUMENT: usize = 16 << 20;

/// Returns how long this thread has waited for a processor, which other programs had: that time says nothing about a call. Zero where
/// the system does not tell.
fn waited() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = statistics.split_whitespace().nth(1).and_then(|nanoseconds| nanoseconds.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

/// Executes the call of this seed. Returns the time after its deadline, and whether it was interrupted. `None` if an argument is too large.
fn lateness(documents: &Documents, seed: u64, size: usize, operands: usize) -> Option<(Duration, bool)> {
    let call = Draw { random: Random(seed), size: operands }.call();
    if call.arguments.iter().any(|argument| argument.as_bytes().len() > MAX_ARGUMENT) {
        return None;
    }
    let limited = documents.collection.with_deadline(WITHIN_RELEASE);
    let (start, before) = (Instant::now(), waited());
    let result = call.run(&limited);
    let time = start.elapsed().saturating_sub(waited() - before);
    let late = time.saturating_sub(WITHIN_RELEASE);
    documents.reset();
    let is_interrupted = result.as_ref().is_err_and(|error| error.kind() == slate_core::ErrorKind::Interrupted);
    if late > LATE {
        let result = result.map_err(|error| error.code());
        eprintln!("SLATE_WORK_CALL={seed},{size},{operands}: {time:?} {result:?} {}", call.name);
    }
    Some((late, is_interrupted))
}

/// Each operator of the language, once: with small documents it is called until it accepts the call, then with large ones.
#[cfg(debug_assertions)]
#[test]
fn no_operator_works_long_between_two_checks() {
    let variable = |name: &str, otherwise: usize| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let test = Store::Memory.open();
    let small = Parts::new(&test.db, "small", 200, 200);
    let large = Parts::new(&test.db, "large", variable("SLATE_WORK_BYTES", 30_000), 3_000);
    let mut random = Random(variable("SLATE_WORK_SEED", 1) as u64);
    let calls = operators::accepted(
        &small,
        &mut random,
        variable("SLATE_WORK_CALLS", 1),
        variable("SLATE_WORK_OPERANDS", 1_000),
    );
    let broken = operators::unchecked(&calls, &large, WITHIN, MOST);
    eprintln!("{} calls of {} operators", calls.len(), operators::operators().len());
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The same with documents of up to 15 MiB, of which one part is large.
#[test]
#[ignore = "takes long, and its times are those of an optimized build"]
fn calls_of_each_operator_return_soon_after_their_deadline() {
    let seconds = std::env::var("SLATE_WORK_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    let seed: u64 = std::env::var("SLATE_WORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (begin, mut round, mut count, mut ended, mut late) = (Instant::now(), 0, 0, 0, Vec::new());
    let sizes = [(1 << 20, 100_000), (4 << 20, 100_000), (13 << 20, 400_000)];
    while round < sizes.len() as u64 || begin.elapsed().as_secs() < seconds {
        let (bytes, small_bytes) = sizes[(round % sizes.len() as u64) as usize];
        let test = Store::Memory.open();
        let small = Parts::new(&test.db, "small", 200, 200);
        let large = Parts::new(&test.db, "large", bytes, small_bytes);
        let calls = operators::accepted(&small, &mut Random(seed + round), 2, 20_000);
        let (interrupted, found) = operators::late(&calls, &large, WITHIN_RELEASE);
        found.iter().for_each(|call| eprintln!("{bytes} bytes: {call}"));
        (count, ended) = (count + calls.len(), ended + interrupted);
        late.extend(found);
        round += 1;
        eprintln!("{count} calls, {ended} interrupted, {} late", late.len());
    }
    assert!(late.is_empty(), "{} calls returned late", late.len());
}

#[test]
#[ignore = "takes long, and its times are those of an optimized build"]
fn calls_return_soon_after_their_deadline() {
    if let Ok(call) = std::env::var("SLATE_WORK_CALL") {
        let numbers: Vec<usize> = call.split(',').map(|number| number.parse().unwrap()).collect();
        let test = Store::Memory.open();
        let documents = Documents::new(&test.db, numbers[1]);
        eprintln!("{:?}", lateness(&documents, numbers[0] as u64, numbers[1], numbers[2]));
        return;
    }
    let seconds = std::env::var("SLATE_WORK_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    let seed: u64 = std::env::var("SLATE_WORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (begin, mut number, mut worst, mut late, mut ended) = (Instant::now(), 0, Duration::ZERO, 0, 0);
    while begin.elapsed().as_secs() < seconds {
        // Documents of up to 12 MiB.
        for size in [5_000, 20_000, 60_000, 200_000] {
            let test = Store::Memory.open();
            let documents = Documents::new(&test.db, size);
            for _ in 0..40 {
                number += 1;
                let operands = if number % 3 == 0 { size } else { size.min(20_000) };
                let Some((over, is_interrupted)) = lateness(&documents, seed + number, size, operands) else {
                    continue;
                };
                worst = worst.max(over);
                ended += u64::from(is_interrupted);
                late += u64::from(over > LATE);
            }
        }
    }
    eprintln!("{number} calls, {ended} interrupted, {late} late, at most {worst:?} after the deadline");
    assert_eq!(late, 0, "calls that returned late");
}

#[test]
fn an_argument_beyond_16_mib_is_refused_at_once() {
    let test = Store::Memory.open();
    let c = test.collection("c");
    let large = || doc! { "a": "x".repeat(17 << 20) };
    let refused = [
        c.find(large()).run().map(drop),
        c.find(doc! {}).projection(large()).run().map(drop),
        c.count_documents(large()).run().map(drop),
        c.delete_many(large()).run().map(drop),
        c.update_one(doc! {}, doc! { "$set": large() }).run().map(drop),
        c.update_one(doc! {}, [doc! { "$set": large() }]).upsert().run().map(drop),
        c.aggregate([doc! { "$match": large() }]).run().map(drop),
        // Each stage is small enough, the pipeline is not.
        c.aggregate((0..5).map(|_| doc! { "$match": { "a": "x".repeat(4 << 20) } })).run().map(drop),
        test.db.command(common::raw(&doc! { "find": "c", "filter": large() })).map(drop),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), 10_334);
    }
    let most = doc! { "a": "x".repeat((16 << 20) - 100) };
    assert_eq!(c.count_documents(most).run().unwrap(), 0);
}
