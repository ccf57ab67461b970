//! bison-db's comparison with redb: 100,000 records of 64 bytes, flushed once and read after reopening.

use slate_bench_harness::{Result, Rng, number::count};

use super::{Documents, Payload, opened::Opened};
use crate::{
    Durability, Feature,
    bench::{Bench, Row},
    workload::tools::Folders,
};

const RECORDS: u32 = 100_000;
const BATCH: usize = 10_000;

pub(super) fn run<D: Documents>(bench: &mut Bench) -> Result<()> {
    let clock = bench.clock();
    if !bench.begins("documents of 64 bytes", &["insert", "record", "reopen", "read", "file"]) {
        return Ok(());
    }
    let mut random = bench.random();
    let payloads: Vec<Payload> = (0..RECORDS).map(|_| payload(&mut random)).collect();
    let folders = bench.folders();
    let all = u64::from(RECORDS);

    let mut filled = None;
    bench.row(Row::new("insert 100,000, flushed once", all).unit("record").at_most(5).expects(all), || {
        filled = None;
        let mut opened = Opened::<D>::empty(&folders, Durability::Deferred)?;
        let mut ids = Vec::new();
        let sample = clock.sample(|| {
            ids = fill(&mut opened.store, &payloads)?;
            Ok(count(ids.len()))
        })?;
        filled = Some((opened, ids));
        Ok(sample)
    });
    let (opened, ids) = match filled {
        Some(filled) => filled,
        None => filled_once::<D>(&folders, &payloads)?,
    };
    if D::lacks().contains(&Feature::Files) {
        for row in ["reopen", "file size, once closed"] {
            bench.not_offered(row, Feature::Files);
        }
        read(bench, opened.store, &ids, &payloads, &mut random);
        return Ok(());
    }
    let Opened { store, folder } = opened;
    let mut open = Some(store);
    bench.row(Row::new("reopen", 1).at_most(5), || {
        drop(open.take());
        clock.sample(|| {
            open = Some(D::open(folder.path(), Durability::Deferred)?);
            Ok(0)
        })
    });
    drop(open.take());
    let bytes = folder.bytes()?;
    read(bench, D::open(folder.path(), Durability::Deferred)?, &ids, &payloads, &mut random);
    bench.bytes("file size, once closed", bytes, count(payloads.len() * size_of::<Payload>()));
    Ok(())
}

fn filled_once<D: Documents>(folders: &Folders, payloads: &[Payload]) -> Result<(Opened<D>, Vec<D::Id>)> {
    let mut opened = Opened::<D>::empty(folders, Durability::Deferred)?;
    let ids = fill(&mut opened.store, payloads)?;
    Ok((opened, ids))
}

fn fill<D: Documents>(store: &mut D, payloads: &[Payload]) -> Result<Vec<D::Id>> {
    let mut ids = Vec::with_capacity(payloads.len());
    for batch in payloads.chunks(BATCH) {
        ids.extend(store.insert_payloads(batch)?);
    }
    store.flush()?;
    Ok(ids)
}

/// Measures reads of all records in random order.
fn read<D: Documents>(bench: &mut Bench, mut store: D, ids: &[D::Id], payloads: &[Payload], random: &mut Rng) {
    let clock = bench.clock();
    let mut order: Vec<(&D::Id, u8)> = ids.iter().zip(payloads.iter().map(first)).collect();
    random.shuffle(&mut order);
    let expected = order.iter().map(|(_, byte)| u64::from(*byte)).sum();
    bench.row(Row::new("read at random, after reopening", count(ids.len())).unit("record").expects(expected), || {
        clock.sample(|| {
            let mut sum = 0;
            for (id, _) in &order {
                sum += u64::from(store.get_payload(id)?);
            }
            Ok(sum)
        })
    });
}

fn first(payload: &Payload) -> u8 {
    payload.first().copied().unwrap_or_default()
}

fn payload(random: &mut Rng) -> Payload {
    let mut payload = [0; size_of::<Payload>()];
    for part in payload.chunks_mut(8) {
        for (place, byte) in part.iter_mut().zip(random.bits().to_le_bytes()) {
            *place = byte;
        }
    }
    payload
}
