//! YCSB's workloads: <https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads>. Records have ten fields of 100 bytes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mongodb::{
    Client, Collection,
    bson::{Document, RawDocumentBuf, doc},
    options::ClientOptions,
};
use rand::{Rng, SeedableRng, distr::Alphanumeric, rngs::SmallRng};
use tokio::task::JoinSet;

use crate::{
    Arguments, Error,
    keys::{Keys, key, scan_length},
    measure::Latencies,
};

/// The database and collection of the records.
pub(crate) const DATABASE: &str = "ycsb";
pub(crate) const COLLECTION: &str = "usertable";

const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
/// Number of records of one `insert` while loading.
const BATCH: u64 = 1000;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    ReadLatest,
    Update,
    Insert,
    Scan,
    ReadThenUpdate,
}

/// Returns the kinds of operations of a workload, with their shares in percent.
fn mixture(workload: char) -> Result<&'static [(u32, Step)], Error> {
    Ok(match workload {
        'A' => &[(50, Step::Read), (50, Step::Update)],
        'B' => &[(95, Step::Read), (5, Step::Update)],
        'C' => &[(100, Step::Read)],
        'D' => &[(95, Step::ReadLatest), (5, Step::Insert)],
        'E' => &[(95, Step::Scan), (5, Step::Insert)],
        'F' => &[(50, Step::Read), (50, Step::ReadThenUpdate)],
        other => return Err(format!("there is no workload {other}").into()),
    })
}

/// Loads the records into an empty database, then measures each workload with each number of connections. The workloads that insert come last.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Error> {
    let first = arguments.uris.first().ok_or("--uri is missing")?;
    let keys = Arc::new(Keys::new(arguments.records)?);
    load(arguments, first).await?;
    let mut workloads: Vec<char> = arguments.workloads.chars().collect();
    workloads.sort_by_key(|workload| matches!(workload, 'D' | 'E'));
    for workload in workloads {
        let steps = mixture(workload)?;
        for &connections in &arguments.connections {
            let (latencies, elapsed) = measure(&arguments.uris, connections, arguments.duration, steps, &keys).await?;
            latencies.print(&arguments.name, &workload.to_string(), connections, elapsed);
        }
    }
    Ok(())
}

async fn connect(uri: &str, connections: u32) -> Result<Collection<RawDocumentBuf>, Error> {
    let mut options = ClientOptions::parse(uri).await?;
    options.max_pool_size = Some(connections);
    options.min_pool_size = Some(connections);
    Ok(Client::with_options(options)?.database(DATABASE).collection(COLLECTION))
}

async fn load(arguments: &Arguments, uri: &str) -> Result<(), Error> {
    let records = connect(uri, 1).await?;
    let mut random = SmallRng::seed_from_u64(1);
    let (begin, mut latencies) = (Instant::now(), Latencies::new()?);
    for first in (0..arguments.records).step_by(usize::try_from(BATCH)?) {
        let batch: Vec<RawDocumentBuf> = (first..(first + BATCH).min(arguments.records))
            .map(|number| record(number, &mut random))
            .collect::<Result<_, _>>()?;
        let sent = Instant::now();
        records.insert_many(batch).await?;
        latencies.record(sent);
    }
    latencies.print(&arguments.name, "load (operations of 1,000 records)", 1, begin.elapsed());
    Ok(())
}

async fn measure(
    uris: &[String],
    connections: u32,
    duration: Duration,
    steps: &'static [(u32, Step)],
    keys: &Arc<Keys>,
) -> Result<(Latencies, Duration), Error> {
    let mut servers = Vec::new();
    for uri in uris {
        let records = connect(uri, connections.div_ceil(u32::try_from(uris.len())?)).await?;
        // Opens the pool's connections and warms up the server before the measurement.
        records.find_one(doc! { "_id": key(0) }).await?;
        servers.push(records);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for (worker, records) in (0..connections).zip(servers.iter().cycle()) {
        let (records, keys) = (records.clone(), Arc::clone(keys));
        running.spawn(async move {
            let mut random = SmallRng::seed_from_u64(u64::from(worker) + 2);
            let mut latencies = Latencies::new()?;
            while begin.elapsed() < duration {
                let step = choose(steps, &mut random);
                let sent = Instant::now();
                execute(step, &records, &keys, &mut random).await?;
                latencies.record(sent);
            }
            Ok::<_, Error>(latencies)
        });
    }
    let mut all = Latencies::new()?;
    while let Some(finished) = running.join_next().await {
        all.add(&finished??)?;
    }
    Ok((all, begin.elapsed()))
}

fn choose(steps: &[(u32, Step)], random: &mut SmallRng) -> Step {
    let mut drawn = random.random_range(0..100);
    for &(share, step) in steps {
        if drawn < share {
            return step;
        }
        drawn -= share;
    }
    Step::Read
}

async fn execute(
    step: Step,
    records: &Collection<RawDocumentBuf>,
    keys: &Keys,
    random: &mut SmallRng,
) -> Result<(), Error> {
    match step {
        Step::Read => read(records, keys.popular(random)).await,
        Step::ReadLatest => {
            // Finding nothing is allowed: another connection may still be inserting the latest record.
            records.find_one(doc! { "_id": key(keys.latest(random)) }).await?;
            Ok(())
        }
        Step::Update => update(records, keys.popular(random), random).await,
        Step::ReadThenUpdate => {
            let number = keys.popular(random);
            read(records, number).await?;
            update(records, number, random).await
        }
        Step::Insert => {
            records.insert_one(record(keys.insert(), random)?).await?;
            Ok(())
        }
        Step::Scan => {
            let from = doc! { "_id": { "$gte": key(keys.popular(random)) } };
            let mut cursor = records.find(from).sort(doc! { "_id": 1 }).limit(scan_length(random)).await?;
            while cursor.advance().await? {
                std::hint::black_box(cursor.current());
            }
            Ok(())
        }
    }
}

async fn read(records: &Collection<RawDocumentBuf>, number: u64) -> Result<(), Error> {
    let found = records.find_one(doc! { "_id": key(number) }).await?;
    found.map(drop).ok_or_else(|| format!("the record {number} is missing").into())
}

async fn update(records: &Collection<RawDocumentBuf>, number: u64, random: &mut SmallRng) -> Result<(), Error> {
    let field = format!("field{}", random.random_range(0..FIELDS));
    let change = doc! { "$set": { field: text(random) } };
    let updated = records.update_one(doc! { "_id": key(number) }, change).await?;
    if updated.matched_count == 1 { Ok(()) } else { Err(format!("the record {number} is missing").into()) }
}

fn record(number: u64, random: &mut SmallRng) -> Result<RawDocumentBuf, Error> {
    let mut record = Document::new();
    record.insert("_id", key(number));
    for field in 0..FIELDS {
        record.insert(format!("field{field}"), text(random));
    }
    Ok(RawDocumentBuf::from_document(&record)?)
}

fn text(random: &mut SmallRng) -> String {
    (0..FIELD_BYTES).map(|_| char::from(random.sample(Alphanumeric))).collect()
}
