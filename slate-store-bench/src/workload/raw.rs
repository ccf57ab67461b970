//! The operations of the store contract, on entries with keys of 12 bytes and values of 100.

use crate::{
    Direction, Durability, Feature, Reader as _, Subject, Writer as _,
    bench::{Bench, Row},
    keys::{self, Entries},
};

use slate_bench_harness::Result;

use super::tools::{Folder, Folders, Opened, commit};

const VALUE: usize = 100;
/// Point reads per sample.
const READS: u64 = 50_000;
/// Keys per `multi_get`.
const MANY: u64 = 100;
/// Entries of a short scan and of a deleted range.
const RANGE: u64 = 1_000;
/// Keys that a sample of a commit row writes.
const WRITTEN: u64 = 4_096;
const FSYNCS: u64 = 20;

pub(super) fn run<S: Subject>(bench: &mut Bench) -> Result<()> {
    let count = bench.records();
    if !bench.begins("raw", ROWS) {
        return Ok(());
    }
    let folders = bench.folders();
    let entries = Entries::numbered(count, VALUE, &mut bench.random());
    let Opened { store, folder } = filled::<S>(bench, &folders, &entries)?;
    reads(bench, &store, count)?;
    scans(bench, &store, count)?;
    counts(bench, &store, count)?;
    writes(bench, &store, count)?;
    deletes_range(bench, &store, &entries)?;
    reopens(bench, store, &folder, &entries)
}

const ROWS: &[&str] =
    &["load", "get", "multi_get", "scan", "count", "put", "commit", "range delete", "snapshot", "reopen", "file"];

/// Measures filling a store, and returns the store of the last sample.
fn filled<S: Subject>(bench: &mut Bench, folders: &Folders, entries: &Entries) -> Result<Opened<S>> {
    let clock = bench.clock();
    let batches: Vec<Vec<_>> = entries.iter().collect::<Vec<_>>().chunks(10_000).map(<[_]>::to_vec).collect();
    let mut opened = Opened::empty(folders)?;
    let mut is_filled = false;
    let fill = |opened: &Opened<S>| {
        batches.iter().try_for_each(|batch| commit(&opened.store, Durability::Deferred, |to| to.put_sorted(batch)))
    };
    bench.row(Row::new("load, sorted, 10,000 a commit", entries.len()).at_most(5).expects(entries.len()), || {
        if std::mem::replace(&mut is_filled, true) {
            opened = Opened::empty(folders)?;
        }
        clock.sample(|| {
            fill(&opened)?;
            Ok(entries.len())
        })
    });
    if !is_filled {
        fill(&opened)?;
    }
    Ok(opened)
}

fn reads<S: Subject>(bench: &mut Bench, store: &S, count: u64) -> Result<()> {
    let clock = bench.clock();
    let mut random = bench.random();
    let numbers: Vec<u64> = (0..READS).map(|_| random.below(count)).collect();
    let hits: Vec<_> = numbers.iter().map(|number| keys::raw_key(*number)).collect();
    let misses: Vec<_> = numbers.iter().map(|number| keys::missing_key(*number)).collect();
    let sum = numbers.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number));

    store.read(|reader| {
        bench.row(Row::new("get, hit", READS).expects(sum), || {
            clock.sample(|| {
                let mut sum = 0_u64;
                for key in &hits {
                    sum = sum.wrapping_add(reader.get(key, keys::number)?.unwrap_or(u64::MAX));
                }
                Ok(sum)
            })
        });
        bench.row(Row::new("get, miss", READS).expects(0), || {
            clock.sample(|| {
                let mut found = 0;
                for key in &misses {
                    found += u64::from(reader.get(key, keys::number)?.is_some());
                }
                Ok(found)
            })
        });
        let mut sorted: Vec<&[u8]> = hits.iter().map(<[u8; 12]>::as_slice).collect();
        let many = usize::try_from(MANY)?;
        sorted.chunks_mut(many).for_each(<[_]>::sort_unstable);
        bench.row(Row::new("multi_get of 100", READS).unit("key").expects(sum), || {
            clock.sample(|| {
                let mut sum = 0_u64;
                for keys in sorted.chunks(many) {
                    reader.get_many(keys, |_, value| sum = sum.wrapping_add(keys::number(value)))?;
                }
                Ok(sum)
            })
        });
        Ok(())
    })?;
    bench.row_of(
        Feature::Snapshots,
        S::lacks(),
        Row::new("snapshot, and one read of it", 10_000).expects(70_000),
        || {
            let key = keys::raw_key(7);
            clock.sample(|| {
                let mut sum = 0;
                for _ in 0..10_000 {
                    sum += store.read(|reader| reader.get(&key, keys::number))?.unwrap_or(u64::MAX);
                }
                Ok(sum)
            })
        },
    );
    Ok(())
}

fn scans<S: Subject>(bench: &mut Bench, store: &S, count: u64) -> Result<()> {
    let clock = bench.clock();
    let sum_of_all = count * (count - 1) / 2;
    for (name, direction, feature) in [
        ("scan forward", Direction::Forward, Feature::Scans),
        ("scan backward", Direction::Back, Feature::BackwardScans),
    ] {
        bench.row_of(feature, S::lacks(), Row::new(name, count).unit("entry").expects(sum_of_all), || {
            clock.sample(|| {
                let mut sum = 0;
                store.read(|reader| reader.scan(direction, |_, value| sum += keys::number(value)))?;
                Ok(sum)
            })
        });
    }
    let mut random = bench.random();
    let starts: Vec<u64> = (0..READS / 50).map(|_| random.below(count - 50)).collect();
    let sum: u64 = starts.iter().map(|start| (0..50).map(|ahead| start + ahead).sum::<u64>()).sum();
    bench.row_of(Feature::Scans, S::lacks(), Row::new("scan of 50 from a random key", READS / 50).expects(sum), || {
        clock.sample(|| {
            let mut sum = 0;
            store.read(|reader| {
                starts.iter().try_for_each(|start| {
                    reader.scan_from(&keys::raw_key(*start), 50, |_, value| sum += keys::number(value))
                })
            })?;
            Ok(sum)
        })
    });
    Ok(())
}

/// Measures counts of half of the keys: without writes since the last count, and after some.
fn counts<S: Subject>(bench: &mut Bench, store: &S, count: u64) -> Result<()> {
    let clock = bench.clock();
    let mut random = bench.random();
    let (from, to) = (count / 4, count / 4 * 3);
    let (start, end, most) = (keys::raw_key(from), keys::raw_key(to), usize::try_from(to - from)?);
    for (name, written) in [
        ("count of half, again", 0),
        ("count of half, one key written since", 1),
        ("count of half, 1,000 keys written since", 1_000),
    ] {
        bench.row_of(Feature::Scans, S::lacks(), Row::new(name, 1).unit("count").expects(to - from), || {
            for _ in 0..written {
                let number = from + random.below(to - from);
                let (key, value) = (keys::raw_key(number), keys::value(number, VALUE, &mut random));
                commit(store, Durability::Deferred, |writer| writer.put(&key, &value))?;
            }
            clock.sample(|| store.read(|reader| reader.count(&start, &end, most)))
        });
    }
    Ok(())
}

/// Measures writes of existing keys in random order.
fn writes<S: Subject>(bench: &mut Bench, store: &S, count: u64) -> Result<()> {
    let clock = bench.clock();
    let mut random = bench.random();
    let written: Vec<_> = (0..WRITTEN)
        .map(|_| {
            let number = random.below(count);
            (keys::raw_key(number), keys::value(number, VALUE, &mut random))
        })
        .collect();
    bench.row_of(Feature::Batches, S::lacks(), Row::new("put, in one commit of 4,096", WRITTEN).unit("key"), || {
        clock.sample(|| {
            commit(store, Durability::Deferred, |to| written.iter().try_for_each(|(key, value)| to.put(key, value)))?;
            Ok(0)
        })
    });
    for keys_each in [1_u64, 8, 64, 512] {
        let row = Row::new(format!("commit of {keys_each}"), WRITTEN / keys_each).unit("commit");
        let needed = if keys_each == 1 { Feature::None } else { Feature::Batches };
        bench.row_of(needed, S::lacks(), row, || {
            clock.sample(|| {
                for batch in written.chunks(usize::try_from(keys_each)?) {
                    commit(store, Durability::Deferred, |to| {
                        batch.iter().try_for_each(|(key, value)| to.put(key, value))
                    })?;
                }
                Ok(0)
            })
        });
    }
    bench.row_of(Feature::Files, S::lacks(), Row::new("commit of 1, to the device", FSYNCS).unit("commit"), || {
        clock.sample(|| {
            for (key, value) in written.iter().take(usize::try_from(FSYNCS)?) {
                commit(store, Durability::Sync, |to| to.put(key, value))?;
            }
            Ok(0)
        })
    });
    Ok(())
}

fn deletes_range<S: Subject>(bench: &mut Bench, store: &S, entries: &Entries) -> Result<()> {
    let clock = bench.clock();
    let from = entries.len() / 2;
    let to = (from + RANGE).min(entries.len());
    let (start, end) = (keys::raw_key(from), keys::raw_key(to));
    let deleted: Vec<_> = entries.iter().filter(|(key, _)| (start.as_slice()..end.as_slice()).contains(key)).collect();
    let row = Row::new("range delete of 1,000", to - from).unit("key").expects(0);
    bench.row_of(Feature::RangeDeletes, S::lacks(), row, || {
        let sample = clock.sample(|| {
            commit(store, Durability::Deferred, |writer| writer.delete_range(&start, &end))?;
            Ok(0)
        })?;
        let left = store.read(|reader| reader.get(&keys::raw_key(to - 1), keys::number))?;
        commit(store, Durability::Deferred, |writer| writer.put_sorted(&deleted))?;
        Ok(sample.with_answer(u64::from(left.is_some())))
    });
    Ok(())
}

fn reopens<S: Subject>(bench: &mut Bench, store: S, folder: &Folder, entries: &Entries) -> Result<()> {
    let clock = bench.clock();
    store.flush()?;
    let mut open = Some(store);
    bench.row_of(Feature::Files, S::lacks(), Row::new("reopen, and read one key", 1).at_most(5).expects(7), || {
        drop(open.take());
        clock.sample(|| {
            let store = S::open(folder.path())?;
            let number = store.read(|reader| reader.get(&keys::raw_key(7), keys::number))?;
            open = Some(store);
            Ok(number.unwrap_or(u64::MAX))
        })
    });
    drop(open);
    if S::lacks().contains(&Feature::Files) {
        bench.not_offered("file size, once closed", Feature::Files);
    } else {
        bench.bytes("file size, once closed", folder.bytes()?, entries.bytes());
    }
    Ok(())
}
