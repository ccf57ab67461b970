//! Makes the device of a process that writes to RocksDB full, and frees it again, several times.
//!
//! The library `shim/device.c` is loaded into the writing process and refuses each write to the database while a certain file exists, which the
//! process creates and removes. Meanwhile writes fail with `Full`, and reads succeed. After its removal writes succeed again, because RocksDB checks
//! every five seconds for free space. Then the process ends as if it were killed, and the database must contain exactly the acknowledged documents.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use bson::{Document, doc};
use slate_core::{Collection, Database, Durability, Error, ErrorKind, Result};

use super::{device::compile, url};
use crate::Broken;

/// The program to run, and how often its device is full.
#[derive(Clone, Debug)]
pub struct FullDeviceTrial {
    /// The program that writes when it gets the arguments `--full-device FOLDER FILE ROUNDS`.
    pub program: PathBuf,
    /// The number of times that the device becomes full.
    pub rounds: u32,
}

const STORE: &str = "rocksdb";
const COLLECTION: &str = "log";

/// Runs the process; returns the promises that were broken.
///
/// # Errors
/// Fails if the system has no C compiler, or a process or a file cannot be used.
pub fn fill(trial: &FullDeviceTrial) -> io::Result<Broken> {
    let (tools, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let full = tools.path().join("full");
    let output = Command::new(&trial.program)
        .env("LD_PRELOAD", compile(tools.path())?)
        .env("SLATE_DEVICE_FOLDER", folder.path().join("db"))
        .env("SLATE_DEVICE_FULL", &full)
        .arg("--full-device")
        .args([folder.path(), &full])
        .arg(trial.rounds.to_string())
        .output()?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut broken: Broken = lines.lines().filter_map(|line| line.strip_prefix("BROKEN ")).map(str::to_owned).collect();
    if !lines.lines().any(|line| line == "END") {
        broken.push(format!("the process ended early: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let acknowledged: BTreeSet<i64> = lines.lines().filter_map(|line| line.strip_prefix("OK ")?.parse().ok()).collect();
    let db = Database::open(&url(STORE, folder.path())).map_err(io::Error::other)?;
    let report = db.verify().run().map_err(io::Error::other)?;
    if !report.is_sound() {
        broken.push(format!("the database is not sound: {report:?}"));
    }
    let stored = stored(&db).map_err(io::Error::other)?;
    if stored != acknowledged {
        let (lost, refused) = (acknowledged.difference(&stored).count(), stored.difference(&acknowledged).count());
        broken.push(format!("{lost} acknowledged documents are lost, and {refused} refused ones are stored"));
    }
    Ok(broken)
}

/// Returns the `_id`s of the documents. Fails unless a write succeeds.
fn stored(db: &Database) -> Result<BTreeSet<i64>> {
    db.collection::<Document>("after").insert_one(&doc! {})?;
    ids(&db.collection(COLLECTION))
}

fn ids(log: &Collection<Document>) -> Result<BTreeSet<i64>> {
    log.find(doc! {}).run()?.map(|found| Ok(found?.get_i64("_id").unwrap_or(-1))).collect()
}

/// Runs the writing process: writes until its device is full, and again when it is not, and prints each acknowledged document. Then ends as if it
/// were killed.
///
/// # Errors
/// Fails if the database cannot be opened or read, or if a write fails while the device is not full.
pub fn write_to_full_device(folder: &Path, full: &Path, rounds: u32) -> Result<()> {
    /// Number of writes before the device is full, and while it is.
    const SOME: u32 = 20;
    /// Maximum number of failed tries, one every 100 ms, until a write succeeds. RocksDB needs up to 50 on an idle machine.
    const MOST_TRIES: u32 = 1_200;
    let mut writer = FullDeviceWriter::open(folder)?;
    for round in 0..rounds {
        writer.durability = if round % 2 == 0 { Durability::Sync } else { Durability::Deferred };
        (0..SOME).try_for_each(|_| writer.insert())?;
        fs::write(full, "").map_err(Error::custom)?;
        for _ in 0..SOME {
            match writer.insert() {
                Err(error) if error.kind() == ErrorKind::Full => {}
                other => println!("BROKEN a write to a full device returned {other:?}"),
            }
        }
        writer.check()?;
        fs::remove_file(full).map_err(Error::custom)?;
        let mut tries = 0;
        while let Err(error) = writer.insert() {
            tries += 1;
            if error.kind() != ErrorKind::Full || tries == MOST_TRIES {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
    writer.check()?;
    println!("END");
    std::process::abort()
}

struct FullDeviceWriter {
    db: Database,
    log: Collection<Document>,
    durability: Durability,
    next: i64,
    acknowledged: BTreeSet<i64>,
}

impl FullDeviceWriter {
    fn open(folder: &Path) -> Result<Self> {
        let db = Database::open(&url(STORE, folder))?;
        let log = db.collection(COLLECTION);
        Ok(Self { db, log, durability: Durability::Sync, next: 0, acknowledged: BTreeSet::new() })
    }

    fn insert(&mut self) -> Result<()> {
        let number = self.next;
        self.next += 1;
        let transaction = self.db.begin()?;
        transaction.collection(COLLECTION).insert_one(&doc! { "_id": number, "text": "x".repeat(2_000) })?;
        transaction.commit_with(self.durability)?;
        self.acknowledged.insert(number);
        println!("OK {number}");
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if ids(&self.log)? != self.acknowledged {
            println!("BROKEN the process does not read exactly what was acknowledged");
        }
        Ok(())
    }
}
