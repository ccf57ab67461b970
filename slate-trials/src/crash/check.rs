//! Checks what a database contains after a kill.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bson::{Document, doc};
use slate_core::{Database, IndexState, Result};

use super::writer::{BESIDE, INDEX, SPREAD, TOGETHER};
use crate::Broken;

/// What the killed processes have acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// The last commit of each writer to the log.
    log: BTreeMap<i32, i64>,
    /// The newest generation of each collection that is replaced as a whole.
    generations: BTreeMap<String, i64>,
    /// For each index and collection that is created and dropped: whether it must exist.
    left: BTreeMap<String, Left>,
    deferred: Deferred,
    /// Backups, copies and restored databases: whether they were completed, and how long the log was before they began.
    copies: BTreeMap<String, Copied>,
    broken: Broken,
    commits: u64,
    unknown: u64,
    checked_copies: u64,
    checked_unfinished: u64,
}

/// Whether an index or a collection must exist after the last acknowledged change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Present,
    Absent,
    /// Both are allowed, because a later change has begun.
    Either,
}

/// How a process ends, and so which unsynced data may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// A kill: the data written to the operating system remain.
    Killed,
    /// A power cut: only the data on the device remain.
    #[cfg(unix)]
    PowerCut,
}

/// The acknowledged [`Durability::Deferred`](slate_core::Durability::Deferred) commits, which need not be on the device.
#[derive(Debug, Default)]
struct Deferred {
    /// The last one that was acknowledged.
    last: i64,
    /// The last one that must be on the device: a flush or a `Sync` commit that began after its acknowledgement was acknowledged,
    /// too.
    on_device: i64,
    /// The last one that was acknowledged before each writer's next commit began.
    before_next: BTreeMap<i32, i64>,
    before_flush: i64,
}

impl Deferred {
    /// Records that a `Sync` commit of a writer was acknowledged. The writer's next commit begins later.
    fn synced(&mut self, writer: i32) {
        if let Some(before) = self.before_next.insert(writer, self.last) {
            self.on_device = self.on_device.max(before);
        }
    }

    /// Checks that the last commit in the database, `there`, is not older than it must be, and continues from it.
    fn check(&mut self, there: i64, store: &str, ending: Ending, broken: &mut Broken) {
        // RocksDB writes each commit to the operating system, redb has it in memory.
        let least = if store == "rocksdb" && ending == Ending::Killed { self.last } else { self.on_device };
        if !(least..=self.last + 1).contains(&there) {
            broken.push(format!(
                "the last deferred commit is {there}; {least} must be there, {} was acknowledged",
                self.last
            ));
        }
        *self = Self { last: there, on_device: there, ..Self::default() };
    }
}

#[derive(Debug, Default)]
struct Copied {
    is_complete: bool,
    log: BTreeMap<i32, i64>,
}

impl Acknowledged {
    /// Records a line of a writer's output.
    pub(super) fn note(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (name, first, second) = (words.next(), words.next(), words.next());
        match (name, first, second) {
            (Some("log"), Some(writer), Some(n)) => {
                if let (Ok(writer), Ok(n)) = (writer.parse(), n.parse()) {
                    self.log.insert(writer, n);
                    self.deferred.synced(writer);
                    self.commits += 1;
                }
            }
            (Some("generation"), Some(collection), Some(generation)) => {
                // A line that was cut off has a shorter number.
                let generation: i64 = generation.parse().unwrap_or_default();
                let known = self.generations.entry(collection.to_owned()).or_default();
                *known = generation.max(*known);
            }
            (Some("deferred"), Some(n), _) => {
                self.deferred.last = self.deferred.last.max(n.parse().unwrap_or_default())
            }
            (Some("flush-begins"), ..) => self.deferred.before_flush = self.deferred.last,
            (Some("flushed"), ..) => {
                self.deferred.on_device = self.deferred.on_device.max(self.deferred.before_flush);
            }
            (Some(change @ ("begins" | "present" | "absent")), Some(name), _) => {
                let left = match change {
                    "present" => Left::Present,
                    "absent" => Left::Absent,
                    _ => Left::Either,
                };
                self.left.insert(name.to_owned(), left);
            }
            (Some("restore-begins"), Some(number), Some(backup)) => {
                let log = self.copies.get(&format!("backup-{backup}")).map(|backup| backup.log.clone());
                let copied = Copied { is_complete: false, log: log.unwrap_or_default() };
                self.copies.insert(format!("restore-{number}"), copied);
            }
            (Some("backup-begins" | "copy-begins"), Some(number), _) => {
                let kind = if line.starts_with("copy") { "copy" } else { "backup" };
                let log = self.log.clone();
                self.copies.insert(format!("{kind}-{number}"), Copied { is_complete: false, log });
            }
            (Some(kind @ ("backup" | "copy" | "restore")), Some(number), _) => {
                if let Some(copied) = self.copies.get_mut(&format!("{kind}-{number}")) {
                    copied.is_complete = true;
                }
            }
            (Some("BROKEN"), _, _) => self.broken.push(line.to_owned()),
            _ => {}
        }
    }

    /// Returns a broken promise if no commit was acknowledged, so that there was nothing to check.
    pub(super) fn checked(&self) -> Broken {
        if self.commits == 0 { vec!["nothing was tried: no commit was acknowledged".into()] } else { Broken::new() }
    }

    /// Discards what was acknowledged in the previous database, except the counts.
    pub(super) fn begin_database(&mut self) {
        let Self { commits, unknown, checked_copies, checked_unfinished, .. } = *self;
        *self = Self { commits, unknown, checked_copies, checked_unfinished, ..Self::default() };
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{} acknowledged commits, {} more that were not acknowledged, {} backups and copies checked, {} unfinished ones",
            self.commits, self.unknown, self.checked_copies, self.checked_unfinished
        )
    }
}

/// Opens the database after a process has ended and returns the promises that are broken.
pub(super) fn check(url: &str, folder: &Path, ending: Ending, acknowledged: &mut Acknowledged) -> Broken {
    let mut broken = std::mem::take(&mut acknowledged.broken);
    let checked = Database::open(url).and_then(|db| {
        whole(&db, acknowledged, &mut broken)?;
        let store = url.split(':').next().unwrap_or_default();
        acknowledged.deferred.check(last_deferred(&db)?, store, ending, &mut broken);
        definitions(&db, acknowledged, &mut broken)?;
        next_write(&db)
    });
    match checked {
        Ok(()) => {}
        Err(error) => broken.push(format!("after the kill: {error:?}")),
    }
    if folder.join(BESIDE).exists() {
        let url = format!("{}:{}", url.split(':').next().unwrap_or_default(), folder.join(BESIDE).display());
        let newest = acknowledged.generations.get(BESIDE).copied().unwrap_or_default();
        if let Err(error) = beside(&url, newest, &mut broken) {
            broken.push(format!("{BESIDE}, after the kill: {error:?}"));
        }
    }
    for (name, copied) in std::mem::take(&mut acknowledged.copies) {
        let path = folder.join(&name);
        if path.exists() {
            acknowledged.checked_copies += u64::from(copied.is_complete);
            acknowledged.checked_unfinished += u64::from(!copied.is_complete);
            let store = url.split(':').next().unwrap_or_default();
            match copy(&format!("{store}:{}", path.display()), &name, &copied) {
                Ok(faults) => broken.extend(faults.into_iter().map(|fault| format!("{name}: {fault}"))),
                Err(error) => broken.push(format!("{name} (completed: {}) fails: {error:?}", copied.is_complete)),
            }
        } else if copied.is_complete {
            broken.push(format!("{name} was completed and is not there"));
        }
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
    }
    broken
}

/// Checks a backup, a copy or a restored database, which the end of the process may have interrupted: it shows one commit, not
/// older than the last one that was acknowledged before its creation began. An unfinished copy may also show none of the
/// collections. A backup that exists is complete, acknowledged or not, because its file is renamed last.
fn copy(url: &str, name: &str, copied: &Copied) -> Result<Broken> {
    let (db, mut faults) = (Database::open(url)?, Broken::new());
    sound(&db, &mut faults)?;
    let names = db.list_collection_names()?;
    let is_begun = names.iter().all(|name| name.starts_with(UNFINISHED));
    if !is_begun && names.iter().any(|name| name.starts_with(UNFINISHED)) {
        faults.push(format!("some collections have their names, others do not: {names:?}"));
    }
    if is_begun && !copied.is_complete && !name.starts_with("backup") {
        return Ok(faults);
    }
    let numbers = log(&db, &mut faults)?;
    for (writer, n) in &copied.log {
        if numbers.get(writer) < Some(n) {
            faults.push(format!("commit {n} of writer {writer} is missing, which was older"));
        }
    }
    for collection in ["out", "merged", "renamed", "new", "dropped"] {
        let found = generations(&db, collection)?;
        if !found.is_empty() && found.values().ne([&TOGETHER]) {
            faults.push(format!("{collection} is there in part: {found:?}"));
        }
    }
    Ok(faults)
}

/// The prefix of the collections of a copy that is not complete; see [`slate_core::CopyTo::run`].
const UNFINISHED: &str = "slate.copy.";

/// Checks that the database contains each acknowledged commit of the log and each newest generation.
fn whole(db: &Database, acknowledged: &mut Acknowledged, broken: &mut Broken) -> Result<()> {
    sound(db, broken)?;
    let numbers = log(db, broken)?;
    for (writer, acknowledged_n) in &mut acknowledged.log {
        let there = numbers.get(writer).copied().unwrap_or_default();
        match there - *acknowledged_n {
            0 => {}
            // The process was killed between the next commit and its acknowledgement.
            1 => acknowledged.unknown += 1,
            _ => broken.push(format!(
                "writer {writer}: commit {acknowledged_n} was acknowledged, the last one there is {there}"
            )),
        }
        *acknowledged_n = there;
    }
    for collection in ["out", "merged", "renamed"] {
        let found = generations(db, collection)?;
        let newest = acknowledged.generations.entry(collection.to_owned()).or_default();
        match &*found.iter().collect::<Vec<_>>() {
            // `renamed` is dropped before it is created again.
            [] if *newest == 0 || collection == "renamed" => {}
            [(generation, documents)] if **documents == TOGETHER => {
                // An unacknowledged rename may not have replaced the earlier generation.
                let is_settled = acknowledged.left.get(collection) != Some(&Left::Either);
                if *generation < newest && is_settled {
                    broken.push(format!("{collection} has generation {generation}, {newest} was acknowledged"));
                }
                *newest = **generation;
            }
            _ => broken.push(format!("{collection} is there in part: {found:?}")),
        }
    }
    for collection in ["new", "dropped"] {
        let found = generations(db, collection)?;
        if !found.is_empty() && found.values().ne([&TOGETHER]) {
            broken.push(format!("{collection} is there in part: {found:?}"));
        }
    }
    Ok(())
}

/// Checks that the results of acknowledged builds, creations and renames exist, and those of acknowledged drops do not.
fn definitions(db: &Database, acknowledged: &Acknowledged, broken: &mut Broken) -> Result<()> {
    let names = db.list_collection_names()?;
    let index = db.collection::<Document>("log").list_indexes()?.into_iter().find(|index| index.name == INDEX);
    for (name, left) in &acknowledged.left {
        let is_present = match (&**name, &index) {
            (INDEX, index) => index.as_ref().is_some_and(|index| index.state == IndexState::Ready),
            (name, _) => names.iter().any(|known| known == name),
        };
        // An index that is being built is neither absent nor present.
        let is_absent = if name == INDEX { index.is_none() } else { !is_present };
        match left {
            Left::Present if !is_present => broken.push(format!("{name} was made, and is not there")),
            Left::Absent if !is_absent => broken.push(format!("{name} was dropped or renamed, and is there")),
            Left::Present | Left::Absent | Left::Either => {}
        }
    }
    Ok(())
}

/// Checks the second database, which is repeatedly opened and closed: the newest acknowledged generation exists, and each one
/// that exists is complete.
fn beside(url: &str, newest: i64, broken: &mut Broken) -> Result<()> {
    let db = Database::open(url)?;
    sound(&db, broken)?;
    let found = generations(&db, BESIDE)?;
    if newest > 0 && !found.contains_key(&newest) {
        broken.push(format!("{BESIDE} lacks generation {newest}, which was acknowledged"));
    }
    if found.values().any(|documents| *documents != SPREAD) {
        broken.push(format!("{BESIDE} has a generation in part: {found:?}"));
    }
    Ok(())
}

/// Returns the number of the last deferred commit.
fn last_deferred(db: &Database) -> Result<i64> {
    let last = db.collection::<Document>("deferred").find(doc! {}).sort(doc! { "_id": -1 }).first()?;
    Ok(last.and_then(|last| last.get_i64("_id").ok()).unwrap_or_default())
}

/// Returns how many documents of each generation a collection has.
fn generations(db: &Database, collection: &str) -> Result<BTreeMap<i64, i32>> {
    let mut found = BTreeMap::new();
    for document in db.collection::<Document>(collection).find(doc! {}).run()? {
        *found.entry(document?.get_i64("generation").unwrap_or(-1)).or_default() += 1;
    }
    Ok(found)
}

/// Checks that indexes and documents agree.
fn sound(db: &Database, broken: &mut Broken) -> Result<()> {
    let report = db.verify().run()?;
    if !report.is_sound() {
        broken.push(format!("indexes and documents do not agree: {report:?}"));
    }
    Ok(())
}

/// Checks that each commit of the log is complete and that none is missing between others. Returns the last number of each
/// writer.
fn log(db: &Database, broken: &mut Broken) -> Result<BTreeMap<i32, i64>> {
    // All collections are read in one snapshot, because a copy may be a live database.
    let snapshot = db.snapshot()?;
    let mut numbers: BTreeMap<i32, (i64, i64)> = BTreeMap::new();
    let (mut several, mut updates) = (BTreeSet::new(), BTreeMap::new());
    for document in snapshot.collection::<Document>("log").find(doc! {}).projection(doc! { "filler": 0 }).run()? {
        let document = document?;
        let (Ok(writer), Ok(n)) = (document.get_i32("writer"), document.get_i64("n")) else { continue };
        let (count, last) = numbers.entry(writer).or_default();
        (*count, *last) = (*count + 1, n.max(*last));
        match document.get_str("kind") {
            Ok("several") => drop(several.insert((writer, n))),
            Ok("update") => {
                let last: &mut i64 = updates.entry(writer).or_default();
                *last = n.max(*last);
            }
            _ => {}
        }
    }
    for (writer, (count, last)) in &numbers {
        if count != last {
            broken.push(format!("writer {writer}: the log has {count} commits, the last one is {last}"));
        }
    }
    for collection in ["left", "right"] {
        let ids = snapshot.collection::<Document>(collection).find(doc! {}).run()?.map(|document| {
            let document = document?;
            let id = document.get_document("_id").cloned().unwrap_or_default();
            Ok((id.get_i32("writer").unwrap_or(-1), id.get_i64("n").unwrap_or(-1)))
        });
        let found: BTreeSet<(i32, i64)> = ids.collect::<Result<_>>()?;
        if found != several {
            let differing: Vec<_> = found.symmetric_difference(&several).take(5).collect();
            broken.push(format!("commits to log, left and right are there in part: {collection} {differing:?}"));
        }
    }
    for document in snapshot.collection::<Document>("counters").find(doc! {}).run()? {
        let document = document?;
        let (writer, n) = (document.get_i32("_id").unwrap_or(-1), document.get_i64("n").unwrap_or(-1));
        if updates.remove(&writer) != Some(n) {
            broken.push(format!("the counter of writer {writer} is {n}, which its last update in the log is not"));
        }
    }
    if !updates.is_empty() {
        broken.push(format!("counters are missing: {updates:?}"));
    }
    let deferred = snapshot.collection::<Document>("deferred");
    let count = deferred.count_documents(doc! {}).run()?;
    let last = deferred.find(doc! {}).sort(doc! { "_id": -1 }).first()?;
    let last = last.and_then(|last| last.get_i64("_id").ok()).unwrap_or_default();
    if i64::try_from(count) != Ok(last) {
        broken.push(format!("there are {count} deferred commits, and the last one is {last}"));
    }
    Ok(numbers.into_iter().map(|(writer, (_, last))| (writer, last)).collect())
}

/// Checks that the database accepts a write.
fn next_write(db: &Database) -> Result<()> {
    let after = db.collection::<Document>("after");
    after.update_one(doc! { "_id": 1 }, doc! { "$inc": { "kills": 1 } }).upsert().run()?;
    Ok(())
}
