//! txn-db's benchmark: keys and values of 8 bytes, little-endian numbers.

use std::thread;

use crate::{
    Durability, Feature, Outcome, Reader as _, Subject, Writer as _,
    bench::{Bench, Row, Sample},
    keys,
};

use slate_bench_harness::Result;

use super::tools::{Folders, Opened, at_once, beside, commit};

const KEYS: u64 = 10_000;
const READS: u64 = 100_000;
const COMMITS: u64 = 2_000;
/// Commits of each writer per sample.
const COMMITS_EACH: u64 = 250;
/// Reads of each reader per sample: txn-db's own number, which ends before all threads have started if they share a
/// core; and a number that takes about one scheduler time slice (32 readers take a tenth of a second).
const READS_EACH: [(&str, u64); 2] = [("reads", 2_000), ("long reads", 100_000)];

pub(super) fn run<S: Subject>(bench: &mut Bench) -> Result<()> {
    if !bench.begins("txn-db", ROWS) {
        return Ok(());
    }
    let folders = bench.folders();
    single_threaded::<S>(bench, &folders)?;
    contention::<S>(bench, &folders);
    readers_under_a_writer::<S>(bench, &folders);
    Ok(())
}

const ROWS: &[&str] =
    &["point read", "single-key commit", "read-modify-write", "batch", "disjoint", "contended", "reads under"];

fn single_threaded<S: Subject>(bench: &mut Bench, folders: &Folders) -> Result<()> {
    let clock = bench.clock();
    let opened = seeded::<S>(folders, KEYS)?;
    let key = 4_242_u64.to_le_bytes();
    opened.store.read(|reader| {
        bench.row(Row::new("point read", READS).expects(READS.wrapping_mul(4_242)), || {
            clock.sample(|| {
                let mut sum = 0_u64;
                for _ in 0..READS {
                    let number = reader.get(std::hint::black_box(&key), keys::number)?;
                    sum = sum.wrapping_add(number.unwrap_or(u64::MAX));
                }
                Ok(sum)
            })
        });
        Ok(())
    })?;

    let opened = seeded::<S>(folders, 1_000)?;
    let mut next = 0_u64;
    bench.row(Row::new("single-key commit", COMMITS).unit("commit").expects(1), || {
        let sample = clock.sample(|| {
            for _ in 0..COMMITS {
                next += 1;
                commit(&opened.store, Durability::Deferred, |writer| writer.put(b"hot", &next.to_le_bytes()))?;
            }
            Ok(0)
        })?;
        let seen = opened.store.read(|reader| reader.get(b"hot", keys::number))?;
        Ok(sample.with_answer(u64::from(seen == Some(next))))
    });

    let opened = seeded::<S>(folders, 1)?;
    commit(&opened.store, Durability::Deferred, |writer| writer.put(b"counter", &0_u64.to_le_bytes()))?;
    let row = Row::new("read-modify-write", COMMITS).unit("commit").expects(COMMITS);
    bench.row_of(Feature::Transactions, S::lacks(), row, || {
        let before = counter(&opened.store)?;
        let sample = clock.sample(|| {
            for _ in 0..COMMITS {
                match increment(&opened.store)? {
                    Outcome::Committed => (),
                    Outcome::Conflict => return Err("unexpected conflict".into()),
                }
            }
            Ok(0)
        })?;
        Ok(sample.with_answer(counter(&opened.store)? - before))
    });

    for batch in [1_u64, 8, 64, 512] {
        let opened = Opened::<S>::empty(folders)?;
        let commits = (COMMITS / batch).max(10);
        let row = Row::new(format!("batch commit of {batch}"), commits).unit("commit").expects(batch - 1);
        let needed = if batch == 1 { Feature::None } else { Feature::Batches };
        bench.row_of(needed, S::lacks(), row, || {
            let sample = clock.sample(|| {
                for _ in 0..commits {
                    commit(&opened.store, Durability::Deferred, |writer| {
                        (0..batch).try_for_each(|number| writer.put(&number.to_le_bytes(), &number.to_le_bytes()))
                    })?;
                }
                Ok(0)
            })?;
            let last = opened.store.read(|reader| reader.get(&(batch - 1).to_le_bytes(), keys::number))?;
            Ok(sample.with_answer(last.unwrap_or(u64::MAX)))
        });
    }
    Ok(())
}

fn contention<S: Subject>(bench: &mut Bench, folders: &Folders) {
    for writers in [1_u64, 4, 16, 64] {
        let commits = writers * COMMITS_EACH;
        let row = Row::new(format!("disjoint commits, {writers} writers"), commits).unit("commit").expects(commits);
        bench.row(row, || {
            let opened = Opened::<S>::empty(folders)?;
            let (elapsed, committed) = at_once(writers, |writer| {
                for number in 0..COMMITS_EACH {
                    let (own, value) = (pair(writer, number), number.to_le_bytes());
                    // Transactions with different keys can still conflict on stores that do not detect conflicts by
                    // key.
                    while opened.store.write(Durability::Deferred, |to| to.put(&own, &value))? == Outcome::Conflict {}
                }
                Ok(COMMITS_EACH)
            })?;
            Ok(Sample::of_threads(elapsed, committed))
        });
    }
    for writers in [1_u64, 4, 16, 64] {
        let commits = writers * COMMITS_EACH;
        let row = Row::new(format!("contended commits, {writers} writers"), commits).unit("commit").expects(commits);
        bench.row_of(Feature::Transactions, S::lacks(), row, || {
            let opened = Opened::<S>::empty(folders)?;
            commit(&opened.store, Durability::Deferred, |writer| writer.put(b"counter", &0_u64.to_le_bytes()))?;
            let (elapsed, _) = at_once(writers, |_| {
                for _ in 0..COMMITS_EACH {
                    while increment(&opened.store)? == Outcome::Conflict {}
                }
                Ok(0)
            })?;
            Ok(Sample::of_threads(elapsed, counter(&opened.store)?))
        });
    }
}

fn readers_under_a_writer<S: Subject>(bench: &mut Bench, folders: &Folders) {
    for (what, each) in READS_EACH {
        for readers in [2_u64, 8, 32] {
            let sum: u64 = (0..readers).map(|reader| read_by(reader) * each).sum();
            let row = Row::new(format!("{what} under a writer, {readers} readers"), readers * each).expects(sum);
            bench.row(row, || {
                let opened = seeded::<S>(folders, KEYS)?;
                let store = &opened.store;
                let (elapsed, sum) =
                    beside(|over| write_until(store, over), || at_once(readers, |reader| read(store, reader, each)))?;
                Ok(Sample::of_threads(elapsed, sum))
            });
        }
    }
}

fn read_by(reader: u64) -> u64 {
    (reader * 7) % KEYS
}

fn read<S: Subject>(store: &S, reader: u64, reads: u64) -> Result<u64> {
    let key = read_by(reader).to_le_bytes();
    store.read(|reader| {
        let mut sum = 0_u64;
        for _ in 0..reads {
            sum = sum.wrapping_add(reader.get(std::hint::black_box(&key), keys::number)?.unwrap_or(u64::MAX));
        }
        Ok(sum)
    })
}

/// Commits writes of one key until `over` returns true.
pub(super) fn write_until<S: Subject>(store: &S, over: &dyn Fn() -> bool) -> Result<()> {
    let mut next = 0_u64;
    while !over() {
        if store.write(Durability::Deferred, |writer| writer.put(b"hot", &next.to_le_bytes()))? == Outcome::Committed {
            next += 1;
        } else {
            thread::yield_now();
        }
    }
    Ok(())
}

fn increment<S: Subject>(store: &S) -> Result<Outcome> {
    store.write(Durability::Deferred, |writer| {
        let current = writer.get(b"counter", keys::number)?.unwrap_or(0);
        writer.put(b"counter", &(current + 1).to_le_bytes())
    })
}

fn counter<S: Subject>(store: &S) -> Result<u64> {
    Ok(store.read(|reader| reader.get(b"counter", keys::number))?.unwrap_or(0))
}

/// Creates a store with this many numbers, each stored under itself.
pub(super) fn seeded<S: Subject>(folders: &Folders, count: u64) -> Result<Opened<S>> {
    let opened = Opened::<S>::empty(folders)?;
    let fill = |writer: &mut S::Writer<'_>| {
        (0..count).try_for_each(|number| writer.put(&number.to_le_bytes(), &number.to_le_bytes()))
    };
    commit(&opened.store, Durability::Deferred, fill)?;
    Ok(opened)
}

fn pair(writer: u64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    for (place, byte) in key.iter_mut().zip(writer.to_le_bytes().into_iter().chain(number.to_le_bytes())) {
        *place = byte;
    }
    key
}
