//! A database that follows the change stream of another one.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use slate_core::{
    Access, ChangeEvent, ChangeStream, Collection, Database, ErrorKind, RenameTarget, Result, Sharing, Transaction,
};

use crate::Broken;

/// The database and the collection that contain the token of the last applied event. The commit that applies an event also writes its
/// token, so that the two always agree.
const STATE: (&str, &str) = ("replica", "state");

/// Maximum number of events that one commit applies.
const TOGETHER: usize = 200;

/// A copy of a database.
pub(super) struct Replica {
    db: Database,
    /// Number of events that were applied, also by earlier processes.
    pub(super) events: u64,
}

/// The result of following the change stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Followed {
    /// The copy is up to date.
    Everything,
    /// The log no longer contains the next event for the copy.
    Behind,
    /// An event does not fit the documents of the copy.
    Differs(String),
}

/// Follows a database until the process is killed. Ends the process with exit code 3 if the copy differs or a database fails.
pub fn follow(folder: &Path, store: &str) {
    let opened = || -> Result<(Database, Replica)> {
        let source = loop {
            // The process that writes may not have created it yet.
            let builder =
                Database::builder(&super::source(store, folder)).access(Access::ReadOnly).sharing(Sharing::WithReaders);
            match builder.open_timeout(super::OPEN_TIMEOUT).open() {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    thread::sleep(Duration::from_millis(1));
                }
                opened => break opened?,
            }
        };
        Ok((source, Replica::open(&super::copy(store, folder))?))
    };
    let fail = |why: String| {
        eprintln!("following failed: {why}");
        std::process::exit(3);
    };
    match opened() {
        Ok((source, replica)) => follow_forever(&source, replica).unwrap_or_else(fail),
        Err(error) => fail(format!("{error:?}")),
    }
}

/// Follows a database, and never returns without an error. Does nothing more once the log lacks the next event.
pub(super) fn follow_forever(source: &Database, mut replica: Replica) -> std::result::Result<(), String> {
    loop {
        match replica.follow(source, Duration::from_millis(50)) {
            Ok(Followed::Everything) => {}
            Ok(Followed::Behind) => loop {
                thread::park();
            },
            Ok(differs) => return Err(format!("{differs:?}")),
            // The writing process has not enabled the log yet.
            Err(error) if error.code() == 40_573 => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(format!("{error:?}")),
        }
    }
}

impl Replica {
    pub(super) fn open(url: &str) -> Result<Self> {
        let mut replica = Self { db: Database::open(url)?, events: 0 };
        let state = replica.state().find_by_id(1)?;
        replica.events = state.and_then(|state| state.get_i64("events").ok()).map_or(0, i64::unsigned_abs);
        Ok(replica)
    }

    fn state(&self) -> Collection<Document> {
        self.db.database(STATE.0).collection(STATE.1)
    }

    /// Opens the stream after the copy's token. `None` if nothing was written yet.
    fn stream(&self, source: &Database) -> Result<Option<ChangeStream>> {
        let watch = source.database("test").watch([] as [Document; 0]).expanded_events();
        let token = self.state().find_by_id(1)?.and_then(|state| state.get_document("token").cloned().ok());
        if let Some(token) = token {
            return watch.start_after(&token).run().map(Some);
        }
        // An empty copy starts with the log, which began with an empty database.
        let first = source.collection::<Document>("first").find_by_id(1)?;
        let time = first.and_then(|first| first.get_timestamp("time").ok());
        time.map(|time| watch.start_at(time).run()).transpose()
    }

    /// Applies all events in the log, and those that arrive within this time.
    pub(super) fn follow(&mut self, source: &Database, within: Duration) -> Result<Followed> {
        let mut stream = match self.stream(source) {
            Err(error) if error.code() == 286 => return Ok(Followed::Behind),
            opened => opened?,
        };
        let Some(stream) = &mut stream else { return Ok(Followed::Everything) };
        let until = Instant::now() + within;
        loop {
            let mut events = Vec::new();
            let mut wait = until.saturating_duration_since(Instant::now());
            while events.len() < TOGETHER {
                match stream.next_within(wait) {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(error) if error.code() == 286 => return Ok(Followed::Behind),
                    Err(error) => return Err(error),
                }
                wait = Duration::ZERO;
            }
            if events.is_empty() {
                return Ok(Followed::Everything);
            }
            // Within the writing process, a stream shows a commit before it is on the device. After a kill the copy must not contain
            // more than the database.
            match source.flush() {
                Err(error) if error.kind() == ErrorKind::ReadOnly => {}
                flushed => flushed?,
            }
            if let Some(differs) = self.commit(&events, &stream.resume_token())? {
                return Ok(differs);
            }
            self.events += u64::try_from(events.len()).unwrap_or_default();
        }
    }

    /// Applies events and stores the token in one commit.
    fn commit(&self, events: &[ChangeEvent], token: &RawDocumentBuf) -> Result<Option<Followed>> {
        let (mut differs, token) = (None, decoded(token));
        self.db
            .transact(|tx| {
                differs = None;
                for event in events {
                    match apply(tx, event) {
                        Ok(true) => {}
                        Err(error) if error.kind() != ErrorKind::DuplicateKey => return Err(error),
                        refused => {
                            differs = Some(Followed::Differs(format!("{:?}: {refused:?}", event.as_raw())));
                            return Err(slate_core::Error::custom("the copy differs"));
                        }
                    }
                }
                let state = tx.collection_in::<Document>(STATE.0, STATE.1);
                let applied = i64::try_from(events.len()).unwrap_or_default();
                let change = doc! { "$set": { "token": &token }, "$inc": { "events": applied } };
                state.update_one(doc! { "_id": 1 }, change).upsert().run().map(drop)
            })
            .or_else(|error| if differs.is_some() { Ok(()) } else { Err(error) })?;
        Ok(differs)
    }

    /// Replaces the copy by all documents of the database. Nothing else may write meanwhile.
    pub(super) fn copy_again(&mut self, source: &Database) -> Result<()> {
        let token = source.database("test").watch([] as [Document; 0]).run()?.resume_token();
        for name in names(&self.db)? {
            self.db.collection::<Document>(&name).drop()?;
        }
        for name in names(source)? {
            let documents: Vec<Document> = source.collection(&name).find(doc! {}).collect()?;
            self.db.collection(&name).upsert_many(&documents)?;
        }
        let state = self.state();
        state.update_one(doc! { "_id": 1 }, doc! { "$set": { "token": decoded(&token) } }).upsert().run().map(drop)
    }

    /// Returns the differences between the copy and the database, and adds the number of documents to `compared`.
    pub(super) fn compare(&self, source: &Database, compared: &mut u64) -> Result<Broken> {
        let mut broken = Broken::new();
        let (names, copied) = (names(source)?, names(&self.db)?);
        if names != copied {
            broken.push(format!("the copy has the collections {copied:?} instead of {names:?}"));
        }
        for name in names {
            let of = |db: &Database| db.collection::<Document>(&name).find(doc! {}).sort(doc! { "_id": 1 }).collect();
            let (documents, copies): (Vec<Document>, Vec<Document>) = (of(source)?, of(&self.db)?);
            *compared += u64::try_from(documents.len()).unwrap_or_default();
            if documents.len() != copies.len() {
                broken.push(format!("{name} has {} documents, its copy {}", documents.len(), copies.len()));
            }
            let differing = documents.iter().zip(&copies).find(|(document, copy)| document != copy);
            broken.extend(differing.map(|(document, copy)| format!("{name}: {document} was copied as {copy}")));
        }
        Ok(broken)
    }
}

/// Decodes a document. An error is impossible, because the database has validated the bytes.
fn decoded(document: &RawDocument) -> Document {
    Document::try_from(document).unwrap_or_default()
}

fn names(db: &Database) -> Result<Vec<String>> {
    let mut names = db.database("test").list_collection_names()?;
    names.sort();
    Ok(names)
}

/// Applies an event. Returns `false` if the document to change is missing.
fn apply(tx: &Transaction, event: &ChangeEvent) -> Result<bool> {
    let document = event.as_raw();
    let named = |field: &str| document.get_document(field).and_then(|name| name.get_str("coll")).unwrap_or_default();
    let collection = tx.collection::<Document>(named("ns"));
    let key = || event.document_key().map(decoded).unwrap_or_default();
    Ok(match event.operation_type() {
        "insert" => {
            collection.insert_one(&event.full_document()?.unwrap_or_default())?;
            true
        }
        "replace" => {
            let replaced = collection.replace_one(key(), &event.full_document()?.unwrap_or_default()).run()?;
            replaced.matched == 1
        }
        "update" => {
            let description = event.update_description().map(decoded);
            let mut is_there = true;
            for update in updates(&description.unwrap_or_default()) {
                is_there &= collection.update_one(key(), update).run()?.matched == 1;
            }
            is_there
        }
        "delete" => collection.delete_one(key()).run()? == 1,
        "drop" => collection.drop()?,
        "create" => collection.create().map(|()| true)?,
        "rename" => collection.rename(named("to"), RenameTarget::DropExisting).map(|_| true)?,
        _ => true,
    })
}

/// Returns the updates that have the effect of an `updateDescription`.
fn updates(description: &Document) -> Vec<Document> {
    let mut truncations = Document::new();
    for truncated in description.get_array("truncatedArrays").into_iter().flatten().filter_map(Bson::as_document) {
        if let (Ok(field), Some(size)) = (truncated.get_str("field"), truncated.get("newSize")) {
            truncations.insert(field, doc! { "$each": [], "$slice": size });
        }
    }
    let mut changes = Document::new();
    let updated = description.get_document("updatedFields").cloned().unwrap_or_default();
    if !updated.is_empty() {
        changes.insert("$set", updated);
    }
    let removed = description.get_array("removedFields").into_iter().flatten().filter_map(Bson::as_str);
    let removed: Document = removed.map(|field| (field.to_owned(), Bson::from(1))).collect();
    if !removed.is_empty() {
        changes.insert("$unset", removed);
    }
    let truncations = (!truncations.is_empty()).then(|| doc! { "$push": truncations });
    truncations.into_iter().chain((!changes.is_empty()).then_some(changes)).collect()
}
