//! The process that is killed.

use std::{
    io::Write,
    ops::ControlFlow,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use bson::{Document, doc};
use slate_core::{Access, Database, Durability, Index, RenameTarget, Result};

/// Threads that commit to the log.
const WRITERS: i32 = 4;

/// Documents that [`source`] returns, which one call writes.
pub(super) const TOGETHER: i32 = 200;

/// The exit code of a writer after a failed write.
pub(super) const FAILED: i32 = 3;

/// Writes until the process is killed. Ends the process with exit code 3 if the database cannot be opened or a write fails.
#[allow(clippy::panic, reason = "the parent process reports it")]
pub fn write(folder: &Path, store: &str, seed: u64) {
    let _points = fail::FailScenario::setup();
    let result = Database::open(&super::url(store, folder)).and_then(|db| {
        prepare(&db)?;
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let db = &db;
                scope.spawn(move || fail(commits(db, writer, seed)));
            }
            scope.spawn(|| fail(deferred(&db)));
            fail(definitions(&db, folder, store, seed));
        });
        Ok(())
    });
    fail(result);
}

#[allow(clippy::panic, reason = "the parent process reports it")]
fn fail(result: Result<()>) {
    if let Err(error) = result {
        eprintln!("a write failed: {error:?}");
        // Replaces this program by another one: `exit` would free memory that RocksDB's other threads use.
        #[cfg(unix)]
        let _ = std::os::unix::process::CommandExt::exec(
            std::process::Command::new("sh").args(["-c", &format!("exit {FAILED}")]),
        );
        std::process::exit(FAILED);
    }
}

/// Writes a line to standard output in one call.
fn say(line: String) {
    let mut output = std::io::stdout().lock();
    // Fails if the parent has closed the pipe, before the kill.
    let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
}

fn prepare(db: &Database) -> Result<()> {
    let log = db.collection::<Document>("log");
    log.create_index(Index::on(doc! { "writer": 1, "n": 1 }).unique()).run()?;
    log.create_index(Index::on(doc! { "words": 1 })).run()?;
    db.collection::<Document>("source").upsert_many(&source(0))?;
    Ok(())
}

/// Returns the documents of a generation, which one call writes.
fn source(generation: i64) -> Vec<Document> {
    (0..TOGETHER).map(|id| doc! { "_id": id, "generation": generation }).collect()
}

/// Commits numbered documents to the log. Some commits also write to other collections.
fn commits(db: &Database, writer: i32, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed ^ u64::from(writer.unsigned_abs()) << 32);
    let log = db.collection::<Document>("log");
    let last = log.find(doc! { "writer": writer }).sort(doc! { "n": -1 }).first()?;
    let first = last.and_then(|last| last.get_i64("n").ok()).unwrap_or_default() + 1;
    for n in first.. {
        let kind = random.choice(["one", "several", "update", "large"]).unwrap_or("one");
        let words = ["printer", "mail", if random.bool() { "vip" } else { "new" }];
        let document =
            doc! { "_id": { "writer": writer, "n": n }, "writer": writer, "n": n, "kind": kind, "words": words };
        match kind {
            "several" => db.transact(|tx| -> Result<()> {
                tx.collection("log").insert_one(&document)?;
                for other in ["left", "right"] {
                    tx.collection(other).insert_one(&doc! { "_id": { "writer": writer, "n": n }, "writer": writer })?;
                }
                Ok(())
            })?,
            "update" => db.transact(|tx| -> Result<()> {
                tx.collection("log").insert_one(&document)?;
                let counters = tx.collection::<Document>("counters");
                counters.update_one(doc! { "_id": writer }, doc! { "$set": { "n": n } }).upsert().run().map(drop)
            })?,
            "large" => {
                let mut large = document;
                large.insert("filler", "x".repeat(random.usize(..100_000)));
                log.insert_one(&large)?;
            }
            _ => drop(log.insert_one(&document)?),
        }
        say(format!("log {writer} {n}"));
    }
    Ok(())
}

/// Makes `Deferred` commits of numbered documents. A crash may lose the last ones, but none between others.
fn deferred(db: &Database) -> Result<()> {
    let last = db.collection::<Document>("deferred").find(doc! {}).sort(doc! { "_id": -1 }).first()?;
    let first = last.and_then(|last| last.get_i64("_id").ok()).unwrap_or_default() + 1;
    let mut n = first;
    loop {
        let committed = db.begin().and_then(|tx| {
            tx.collection("deferred").insert_one(&doc! { "_id": n, "filler": "x".repeat(700) })?;
            tx.commit_with(Durability::Deferred)
        });
        match committed {
            Ok(_) => {
                say(format!("deferred {n}"));
                n += 1;
            }
            // The first commit creates the collection, which can conflict with other changes of the catalog.
            Err(error) if error.is_retryable() || error.kind() == slate_core::ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The index that is built and dropped, on the collection `log`.
pub(super) const INDEX: &str = "kind_1_n_-1";

/// The number of the next generation, backup or copy, above those of earlier processes.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Repeatedly changes definitions, replaces collections, and copies the database. Prints `begins` before something is created or
/// dropped, and `present` or `absent` after it: a kill in between may leave either state.
fn definitions(db: &Database, folder: &Path, store: &str, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(!seed);
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    NEXT.store(u64::try_from(since_1970.as_micros()).unwrap_or_default(), Ordering::Relaxed);
    let mut finished_backup = None;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let generation = i64::try_from(number).unwrap_or(i64::MAX);
        let to = |name: &str| folder.join(format!("{name}-{number}"));
        match random.u8(..14) {
            0 => {
                let log = db.collection::<Document>("log");
                say(format!("begins {INDEX}"));
                if random.bool() {
                    log.create_index(Index::on(doc! { "kind": 1, "n": -1 })).run()?;
                    say(format!("present {INDEX}"));
                } else {
                    log.drop_index(INDEX)?;
                    say(format!("absent {INDEX}"));
                }
            }
            1 => {
                let stages = [doc! { "$set": { "generation": generation } }, doc! { "$out": "out" }];
                db.collection::<Document>("source").aggregate(stages).run()?;
                say(format!("generation out {generation}"));
            }
            2 => {
                let stages = [doc! { "$set": { "generation": generation } }, doc! { "$merge": "merged" }];
                db.collection::<Document>("source").aggregate(stages).run()?;
                say(format!("generation merged {generation}"));
            }
            3 => {
                say("begins renamed".into());
                say("begins new".into());
                let renamed = db.collection::<Document>("renamed");
                renamed.drop()?;
                db.collection::<Document>("new").drop()?;
                db.collection::<Document>("new").insert_many(&source(generation)).run()?;
                db.collection::<Document>("new").rename("renamed", RenameTarget::MustNotExist)?;
                say(format!("generation renamed {generation}"));
                say("absent new".into());
                say("present renamed".into());
            }
            4 => {
                let dropped = db.collection::<Document>("dropped");
                say("begins dropped".into());
                // An earlier round or process may have left it.
                dropped.drop()?;
                dropped.insert_many(&source(generation)).run()?;
                if random.bool() {
                    say("present dropped".into());
                } else {
                    dropped.drop()?;
                    say("absent dropped".into());
                }
            }
            5 => {
                say(format!("backup-begins {number}"));
                db.backup(to("backup"))?;
                say(format!("backup {number}"));
                finished_backup = Some(number);
            }
            6 => {
                say(format!("copy-begins {number}"));
                db.copy_to(&*format!("{store}:{}", to("copy").display())).run()?;
                say(format!("copy {number}"));
            }
            7 => match compact(db, &mut random) {
                Err(error) if error.is_retryable() || error.kind() == slate_core::ErrorKind::Conflict => {}
                compacted => compacted?,
            },
            8 => {
                say("flush-begins".into());
                db.flush()?;
                say("flushed".into());
            }
            10 => {
                let Some(backup) = finished_backup else { continue };
                say(format!("restore-begins {number} {backup}"));
                let from = format!("{store}:{}", folder.join(format!("backup-{backup}")).display());
                let from = Database::builder(&from).access(Access::ReadOnly).open()?;
                if !from.verify().run()?.is_sound() {
                    say("BROKEN a finished backup is not sound".into());
                }
                from.copy_to(&*format!("{store}:{}", to("restore").display())).run()?;
                say(format!("restore {number}"));
            }
            9 => {
                let snapshot = db.snapshot()?;
                let count = || snapshot.collection::<Document>("log").count_documents(doc! {}).run();
                let first = count()?;
                thread::sleep(std::time::Duration::from_millis(20));
                if count()? != first {
                    say("BROKEN a snapshot has changed".into());
                }
            }
            // Closing compacts files of redb.
            11 | 12 if store == "redb" => {
                beside(folder, store, generation)?;
                say(format!("generation {BESIDE} {generation}"));
            }
            _ => {
                db.collection::<Document>("log").delete_many(doc! { "nothing": 1 }).run()?;
                db.resume_index_builds()?;
            }
        }
    }
}

/// Compacts the database at once, or in steps that may end before the compaction is complete.
fn compact(db: &Database, random: &mut fastrand::Rng) -> Result<()> {
    if random.bool() {
        return db.compact();
    }
    let mut steps = random.u8(1..20);
    db.compact_while(|_, _| {
        steps -= 1;
        if steps > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map(drop)
}

/// The name of a second database, which is repeatedly opened and closed, and of its collection.
pub(super) const BESIDE: &str = "beside";

/// Number of documents of a generation in that database.
pub(super) const SPREAD: i32 = 300;

/// Number of older generations that stay in that database.
const KEPT: i64 = 6;

/// Writes a generation of documents and closes the database. Their keys lie between those of the earlier generations, so that
/// pages are split.
fn beside(folder: &Path, store: &str, generation: i64) -> Result<()> {
    let db = Database::open(&super::url_of(store, folder, BESIDE))?;
    let documents: Vec<Document> = (0..SPREAD)
        .map(|n| doc! { "_id": { "n": n, "generation": generation }, "generation": generation, "filler": "x".repeat(900) })
        .collect();
    let known = db.collection::<Document>(BESIDE).distinct("generation", doc! {}).run()?;
    let mut known: Vec<i64> = known.iter().filter_map(bson::Bson::as_i64).collect();
    known.sort_unstable();
    let oldest = known.iter().rev().nth(usize::try_from(KEPT).unwrap_or_default()).copied();
    db.transact(|tx| -> Result<()> {
        let beside = tx.collection::<Document>(BESIDE);
        beside.delete_many(doc! { "generation": { "$lte": oldest.unwrap_or(-1) } }).run()?;
        beside.insert_many(&documents).run().map(drop)
    })?;
    db.close()
}
