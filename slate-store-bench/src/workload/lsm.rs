//! lsm-db's benchmark: 10,000 keys of 8 bytes, values of 41 bytes.

use crate::{
    Direction, Durability, Feature, Reader as _, Subject, Writer as _,
    bench::{Bench, Row},
};

use slate_bench_harness::{Result, number::count};

use super::tools::{Folders, Opened, commit};

const KEYS: u32 = 10_000;
const VALUE: &[u8] = b"a-value-payload-of-modest-size-0123456789";
const RUNS: u32 = 16;
const KEYS_OF_RUN: u32 = 2_000;

pub(super) fn run<S: Subject>(bench: &mut Bench) -> Result<()> {
    let clock = bench.clock();
    if !bench.begins("lsm-db", ROWS) {
        return Ok(());
    }
    let folders = bench.folders();
    let opened = Opened::<S>::empty(&folders)?;
    fill(&opened.store)?;
    let store = &opened.store;
    let (keys, absent): (Vec<_>, &[u8]) = ((0..KEYS).map(key).collect(), b"absent-key-not-present");
    let all = u64::from(KEYS);
    store.read(|reader| {
        bench.row(Row::new("point read, hit", all * 5).expects(all * 5 * count(VALUE.len())), || {
            clock.sample(|| {
                let mut bytes = 0;
                for _ in 0..5 {
                    for key in &keys {
                        bytes += reader.get(key, |value| count(value.len()))?.unwrap_or(0);
                    }
                }
                Ok(bytes)
            })
        });
        bench.row(Row::new("point read, miss", all * 5).expects(0), || {
            clock.sample(|| {
                let mut found = 0;
                for _ in 0..all * 5 {
                    found += u64::from(reader.get(absent, |_| ())?.is_some());
                }
                Ok(found)
            })
        });
        Ok(())
    })?;
    bench.row_of(Feature::Scans, S::lacks(), Row::new("full scan", all).unit("entry").expects(all), || {
        clock.sample(|| {
            let mut entries = 0;
            store.read(|reader| reader.scan(Direction::Forward, |_, _| entries += 1))?;
            Ok(entries)
        })
    });
    bench.row(Row::new("bulk insert, with opening and flush", all).at_most(9).expects(all), || {
        let folder = folders.make()?;
        let mut store = None;
        let sample = clock.sample(|| {
            let opened = S::open(folder.path())?;
            fill(&opened)?;
            store = Some(opened);
            Ok(all)
        });
        drop(store);
        sample
    });
    negative::<S>(bench, &folders)
}

const ROWS: &[&str] = &["point read", "full scan", "bulk insert", "negative"];

/// Inserts all keys as lsm-db's comparison does: in the store's own way, followed by a flush.
fn fill<S: Subject>(store: &S) -> Result<()> {
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    store.fill(&keys.iter().map(|key| (key.as_slice(), VALUE)).collect::<Vec<_>>())?;
    store.flush()
}

/// Measures reads of missing keys that lie between existing keys in each of 16 sorted runs.
fn negative<S: Subject>(bench: &mut Bench, folders: &Folders) -> Result<()> {
    let clock = bench.clock();
    let fill = |store: &S| {
        for _ in 0..RUNS {
            for number in 0..KEYS_OF_RUN {
                commit(store, Durability::Deferred, |writer| writer.put(&little_endian(number * 2), b"v"))?;
            }
            store.flush()?;
        }
        Ok::<_, slate_bench_harness::Failure>(())
    };
    let missing: Vec<_> = (0..KEYS_OF_RUN).map(|number| little_endian(number * 2 + 1)).collect();
    let look = |store: &S| {
        store.read(|reader| {
            clock.sample(|| {
                let mut found = 0;
                for key in &missing {
                    found += u64::from(reader.get(key, |_| ())?.is_some());
                }
                Ok(found)
            })
        })
    };
    let row = |name| Row::new(name, u64::from(KEYS_OF_RUN)).expects(0);
    let [usual, uncached] = ["negative lookup over 16 runs", "negative lookup over 16 runs, no block cache"];
    if bench.wants(usual) {
        let opened = Opened::<S>::empty(folders)?;
        fill(&opened.store)?;
        bench.row(row(usual), || look(&opened.store));
    }
    let folder = folders.make()?;
    if bench.wants(uncached)
        && let Some(store) = S::open_uncached(folder.path())?
    {
        fill(&store)?;
        bench.row(row(uncached), || look(&store));
    }
    Ok(())
}

fn key(number: u32) -> [u8; 8] {
    let [a, b, c, d] = number.to_be_bytes();
    [b'k', b'e', b'y', b'0', a, b, c, d]
}

fn little_endian(number: u32) -> [u8; 8] {
    let [a, b, c, d] = number.to_le_bytes();
    [b'k', b'e', b'y', b'0', a, b, c, d]
}
