//! Applies the same random histories to all stores and to a model without a store. After each step all stores must be equal, the model
//! must agree with them and with what the calls have returned, every index must agree with the documents, and open snapshots must show what
//! they have shown.
//!
//! `SLATE_CASES=10000 SLATE_SEED=7 cargo test -p slate-core --features async --test histories` runs as many. A failing history is made as
//! short as possible.
//!
//! | operations of the public API in the histories | |
//! |---|---|
//! | writes of documents | `insert_many` (also `insert_one`) as a whole, ordered and unordered, `update_one`, `update_many`, `replace_one`, `delete_one`, `delete_many`, `find_one_and_update`, `find_one_and_replace`, `find_one_and_delete`, `upsert_many`, `merge_many`, `bulk_write` of a collection and of a database, `$out`, `$merge`; upserts, `bypass_document_validation` |
//! | reads | `find`, `find_one`, `find_by_id`, `count_documents`, `estimated_document_count`, `distinct`, `aggregate` with `$match`, `$lookup`, `$unionWith`; of collections and of views, on the database, within transactions and on snapshots |
//! | definitions | `create`, `create_with` (collations, validators, images, views), `set_view`, `set_validator`, `keep_images`, `rename` within a database and into another, `drop`, `create_index` (unique, sparse, partial, collated, wildcard, TTL, hidden), `hide_index`, `show_index`, `drop_index`, `collMod` with `expireAfterSeconds`, `analyze`, `list_collections`, `list_indexes` |
//! | database | `begin`, `commit`, `rollback`, two transactions at once at both isolation levels, `snapshot`, `expire` at a set time, `drop_database`, `list_database_names`, `backup`, `copy_to`, `flush`, `compact`, `verify`, closing and reopening |
//!
//! Not in the histories, and where it is tried instead:
//!
//! - change streams, live queries and the log of changes: `--test changes` compares them with a model of their own;
//! - `transact`, `migrate`, async calls, deadlines and cancellation: they run the same calls; `--test api`, `--test aio`, `--test deadlines`;
//! - `salvage`, damaged files, crashes and interrupted index builds: `--test damage`, and the trials of `slate-trials`;
//! - commands: `--test command` compares them with the calls; stages that compute rows: `--test pipelines`, and operators: `--test scripts`;
//! - expirations limited to more than one document, upserts without an `_id`: which documents or `_id`s they choose is not defined.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "histories/call.rs"]
mod call;
mod common;
#[path = "histories/indexes.rs"]
mod indexes;
#[path = "histories/model.rs"]
mod model;
#[path = "histories/strategy.rs"]
mod strategy;

use std::{collections::BTreeSet, fmt};

use bson::{DateTime, RawDocumentBuf, doc};
use common::{STORES, Store, TestDatabase, brief, multiset, random::Pool, raw, refusal, rows, runner};
use proptest::test_runner::TestCaseError;
use slate_core::{Error, ExistingCollections, Isolation, ReadCollection, Snapshot, Transaction, TransactionOptions};

use call::{Call, Documents, NAMES, Outcome, bulk_answer, operation, run, split};
use indexes::check_indexes;
use model::Model;

#[derive(Clone)]
enum Step {
    Call(&'static str, Box<Call>),
    Transaction {
        calls: Vec<(&'static str, Call)>,
        commit: bool,
    },
    /// Two transactions that begin at the same commit. Their calls alternate.
    Interleaved {
        first: Vec<(&'static str, Call)>,
        second: Vec<(&'static str, Call)>,
        is_serializable: bool,
    },
    /// A bulk write of a database.
    BulkWrite {
        operations: Vec<(&'static str, Call)>,
        ordered: bool,
    },
    /// Deletes what is due at this second.
    Expire {
        second: i64,
        limit: Option<u64>,
    },
    SetExpiry {
        name: &'static str,
        place: usize,
        seconds: u32,
    },
    DropDatabase(&'static str),
    TakeSnapshot,
    Compact,
    Analyze(&'static str),
    /// Continues with a backup of the database.
    Restore,
    /// Continues with a copy of the database.
    Copy,
    /// Continues with a copy into a database that has a collection.
    CopyOnto(ExistingCollections),
    /// Closes and reopens persistent databases.
    Reopen,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Call(name, call) => format!("{name}: {call:?}"),
            Self::Transaction { calls, commit } => format!("commit {commit}: {calls:?}"),
            Self::Interleaved { first, second, is_serializable } => {
                format!("serializable {is_serializable}: {first:?} beside {second:?}")
            }
            Self::BulkWrite { operations, ordered } => format!("bulk write, ordered {ordered}: {operations:?}"),
            Self::Expire { second, limit } => format!("expire at {second}, at most {limit:?}"),
            Self::SetExpiry { name, place, seconds } => format!("{name}: expire after {seconds} by index {place}"),
            Self::DropDatabase(name) => format!("drop database {name}"),
            Self::TakeSnapshot => "take a snapshot".into(),
            Self::Compact => "compact".into(),
            Self::Analyze(name) => format!("analyze {name}"),
            Self::Restore => "restore a backup".into(),
            Self::Copy => "copy".into(),
            Self::CopyOnto(existing) => format!("copy beside others: {existing:?}"),
            Self::Reopen => "reopen".into(),
        };
        f.write_str(&brief(&text))
    }
}

/// What a step has done, for the comparison with the model and with other stores.
#[derive(Debug)]
enum Done {
    /// Nothing, or nothing that changes a document or an option.
    Nothing,
    /// The code and the message.
    Refused(#[expect(dead_code, reason = "is compared with that of other stores")] String),
    Calls(Vec<Outcome>),
    Transaction {
        calls: Vec<Outcome>,
        end: Result<(), String>,
    },
    Interleaved {
        first: (Vec<Outcome>, Result<(), String>),
        second: (Vec<Outcome>, Result<(), String>),
    },
    Expired(u64),
    Dropped,
    Copied,
}

/// A database, and its open snapshots with their contents at the time of opening.
struct TestState {
    database: TestDatabase,
    snapshots: Vec<(Snapshot, String)>,
}

/// The code of a call on a transaction that has ended.
const TRANSACTION_OVER: i32 = 251;

impl TestState {
    fn new(store: Store) -> Self {
        Self { database: store.open(), snapshots: Vec::new() }
    }

    fn model(&self) -> Model {
        Model::of(&self.database.db)
    }

    /// Returns all that can be read and listed.
    fn contents(&self) -> String {
        format!("{:?} {:?}", self.model(), self.database.db.list_collections().unwrap())
    }

    /// Returns the same, without change.
    fn done(self, done: Done) -> Result<(Self, Done), String> {
        Ok((self, done))
    }

    /// Executes a step.
    fn step(self, step: &Step, pool: &Pool) -> Result<(Self, Done), String> {
        let before = self.contents();
        let (mut state, done) = self.execute(step, pool)?;
        let failed = match &done {
            Done::Refused(_) => true,
            Done::Calls(outcomes) => outcomes.iter().all(Result::is_err),
            Done::Transaction { end, .. } => end.is_err(),
            _ => false,
        };
        if failed && state.contents() != before {
            return Err(format!("{done:?}: failed, but changed {before} to {}", state.contents()));
        }
        state.check(pool)?;
        state.check_snapshots(pool)?;
        Ok((state, done))
    }

    fn execute(mut self, step: &Step, pool: &Pool) -> Result<(Self, Done), String> {
        let db = &self.database.db;
        let refused = |error: &Error| Done::Refused(format!("{:?}", refusal(error)));
        match step {
            Step::Call(name, call) => {
                let outcome = run(&self.database.collection(name), call);
                self.done(Done::Calls(vec![outcome]))
            }
            Step::Transaction { calls, commit } => {
                let done = transaction(db, calls, *commit, pool)?;
                self.done(done)
            }
            Step::Interleaved { first, second, is_serializable } => {
                let done = interleaved(db, first, second, *is_serializable);
                self.done(done)
            }
            Step::BulkWrite { operations, ordered } => {
                let operations = operations.iter().map(|(name, call)| (*name, operation(call)));
                let written = db.bulk_write(operations).ordered(*ordered).run();
                let outcome = written.map(|result| bulk_answer(&result)).map_err(|error| refusal(&error));
                self.done(Done::Calls(vec![outcome]))
            }
            Step::Expire { second, limit } => {
                let expire = db.expire().at(DateTime::from_millis(second * 1_000));
                let expire = if let Some(limit) = limit { expire.limit(*limit) } else { expire };
                let expired = expire.run().map_err(|error| error.to_string())?;
                self.done(Done::Expired(expired.documents))
            }
            Step::SetExpiry { name, place, seconds } => {
                let index = self.model().index(name, *place).map_or("none".into(), |(index, _)| index);
                let (database, own) = split(name);
                let seconds = i64::from(*seconds);
                let index = doc! { "name": index, "expireAfterSeconds": seconds };
                let changed = db.command(raw(&doc! { "collMod": own, "$db": database, "index": index }));
                let done = changed.map_or_else(|error| refused(&error), |_| Done::Dropped);
                self.done(done)
            }
            Step::DropDatabase(name) => {
                db.database(name).drop_database().map_err(|error| error.to_string())?;
                self.done(Done::Dropped)
            }
            Step::TakeSnapshot => {
                let snapshot = db.snapshot().unwrap();
                let shown = snapshot_contents(&snapshot);
                self.snapshots.push((snapshot, shown));
                self.done(Done::Nothing)
            }
            Step::Compact => {
                // A snapshot can prevent it.
                self.snapshots.clear();
                let done = self.database.db.flush().and_then(|()| self.database.db.compact());
                let done = done.map_or_else(|error| refused(&error), |()| Done::Nothing);
                self.done(done)
            }
            Step::Analyze(name) => {
                let analyzed = self.database.collection(name).analyze();
                let done = analyzed.map_or_else(|error| refused(&error), |()| Done::Nothing);
                self.done(done)
            }
            Step::Restore => Self { database: self.database.restored(), snapshots: Vec::new() }.done(Done::Nothing),
            Step::Copy => Self { database: self.database.copied(), snapshots: Vec::new() }.done(Done::Nothing),
            Step::CopyOnto(existing) => {
                let target = self.database.store.open();
                target.collection("y").insert_one(&raw(&doc! { "_id": "there" })).unwrap();
                match db.copy_to(&target.db).existing(*existing).run() {
                    Ok(_) => Self { database: target, snapshots: Vec::new() }.done(Done::Copied),
                    Err(error) => self.done(refused(&error)),
                }
            }
            Step::Reopen => {
                // A snapshot keeps the database open.
                drop(self.snapshots);
                Self { database: self.database.reopen(), snapshots: Vec::new() }.done(Done::Nothing)
            }
        }
    }

    /// Checks what must hold between the parts of the database.
    fn check(&self, pool: &Pool) -> Result<(), String> {
        let model = self.model();
        for (name, is_collection) in model.names() {
            let collection = self.database.collection(name);
            if !is_collection {
                check_view(&collection, &model, name)?;
                continue;
            }
            check_indexes(&collection, pool)?;
            let report = collection.verify().run().map_err(|error| error.to_string())?;
            if !report.is_sound() {
                return Err(format!("{name}: {:?}", report.findings));
            }
        }
        let databases: BTreeSet<&str> = model.names().map(|(name, _)| split(name).0).collect();
        let listed = self.database.db.list_database_names().map_err(|error| error.to_string())?;
        let names: Vec<&str> = model.names().map(|(name, _)| name).collect();
        let mut all = self.database.db.list_collection_names().map_err(|error| error.to_string())?;
        all.sort();
        let mut wanted = names.clone();
        wanted.sort_unstable();
        if !databases.iter().eq(listed.iter()) || wanted != all {
            return Err(format!("the databases are {listed:?} and the collections {all:?}, but {wanted:?} exist"));
        }
        Ok(())
    }

    fn check_snapshots(&mut self, pool: &Pool) -> Result<(), String> {
        self.snapshots.retain(|(snapshot, _)| !snapshot.list_collection_names().is_empty());
        for (snapshot, shown) in &self.snapshots {
            if snapshot_contents(snapshot) != *shown {
                return Err(format!("a snapshot changed from {shown} to {}", snapshot_contents(snapshot)));
            }
            for collection in snapshot.list_collections().iter().filter(|collection| collection.view.is_none()) {
                check_indexes(&snapshot.collection(&collection.name), pool)?;
            }
        }
        Ok(())
    }
}

/// Checks that a view shows what its pipeline makes of the documents of the model.
fn check_view(view: &Documents, model: &Model, name: &str) -> Result<(), String> {
    match (rows(view.find(doc! {})), model.all_rows(name)) {
        // Views of views have one collation.
        (Err((167, _)), _) | (Err(_), None) => Ok(()),
        (Ok(shown), Some(rows)) if multiset(&shown) == multiset(&rows) => Ok(()),
        (shown, rows) => Err(format!("the view {name} shows {shown:?}, and the model has {rows:?}")),
    }
}

fn snapshot_contents(snapshot: &Snapshot) -> String {
    let documents = NAMES.map(|name| rows(snapshot.collection(name).find(doc! {})));
    format!("{documents:?} {:?}", snapshot.list_collections())
}

/// Returns every document in the order of `_id`, and every index.
fn contents(collection: &ReadCollection<RawDocumentBuf>) -> String {
    format!("{:?} {:?}", call::all(collection), collection.list_indexes().map_err(|error| refusal(&error)))
}

fn transaction(
    db: &slate_core::Database,
    calls: &[(&'static str, Call)],
    commit: bool,
    pool: &Pool,
) -> Result<Done, String> {
    let transaction: Transaction = db.begin().unwrap();
    let mut outcomes = Vec::new();
    for (name, call) in calls {
        let collection = transaction.collection(name);
        let before = contents(&collection);
        let outcome = run(&collection, call);
        let is_over = matches!(rows(collection.find(doc! {})), Err((TRANSACTION_OVER, _)));
        if outcome.is_err() && !is_over && contents(&collection) != before {
            return Err(format!("{call:?}: failed, but changed {before} to {}", contents(&collection)));
        }
        if !is_over && collection.list_indexes().is_ok() {
            check_indexes(&collection, pool).map_err(|why| format!("in the transaction: {why}"))?;
        }
        outcomes.push(outcome);
    }
    let end = if commit {
        transaction.commit().map_err(|error| format!("{:?}", refusal(&error)))
    } else {
        transaction.rollback();
        Err("rolled back".into())
    };
    Ok(Done::Transaction { calls: outcomes, end })
}

fn interleaved(
    db: &slate_core::Database,
    first: &[(&'static str, Call)],
    second: &[(&'static str, Call)],
    is_serializable: bool,
) -> Done {
    let isolation = if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
    let options = TransactionOptions::new().isolation(isolation).detached();
    let transactions = [db.begin_with(&options).unwrap(), db.begin_with(&options).unwrap()];
    let mut outcomes = [Vec::new(), Vec::new()];
    for at in 0..first.len().max(second.len()) {
        for (which, calls) in [first, second].into_iter().enumerate() {
            if let Some((name, call)) = calls.get(at) {
                outcomes[which].push(run(&transactions[which].collection(name), call));
            }
        }
    }
    let ends = transactions.map(|one| one.commit().map_err(|error| format!("{:?}", refusal(&error))));
    let [first, second] = outcomes;
    let [first_end, second_end] = ends;
    Done::Interleaved { first: (first, first_end), second: (second, second_end) }
}

/// The codes of calls that a transaction does not have, and of calls after it has ended.
const NOT_WITHIN_TRANSACTIONS: [i32; 3] = [263, 20, TRANSACTION_OVER];

/// Returns the states in which calls that returned this, one after the other, can leave a transaction.
fn after_calls(model: &Model, calls: &[(&'static str, Call)], outcomes: &[Outcome]) -> Vec<Model> {
    let mut states = vec![model.clone()];
    for ((name, call), outcome) in calls.iter().zip(outcomes) {
        if matches!(outcome, Err((code, _)) if NOT_WITHIN_TRANSACTIONS.contains(code)) {
            continue;
        }
        states = states.iter().flat_map(|state| state.after(name, call, outcome)).collect();
        states.dedup();
    }
    states
}

/// Returns whether a step that did this can leave this state.
fn is_allowed(model: &Model, step: &Step, done: &Done, after: &Model) -> Result<bool, String> {
    Ok(match (step, done) {
        (Step::Call(name, call), Done::Calls(outcomes)) => {
            outcomes.iter().flat_map(|outcome| model.after(name, call, outcome)).any(|state| state == *after)
        }
        (Step::BulkWrite { operations, ordered }, Done::Calls(outcomes)) => {
            let operations: Vec<(&'static str, &Call)> = operations.iter().map(|(name, call)| (*name, call)).collect();
            outcomes.iter().flat_map(|outcome| model.bulk(&operations, *ordered, outcome)).any(|state| state == *after)
        }
        (Step::Transaction { calls, .. }, Done::Transaction { calls: outcomes, end }) => {
            let states = after_calls(model, calls, outcomes);
            if end.is_ok() { states.contains(after) } else { !states.is_empty() && after == model }
        }
        (Step::Interleaved { first, second, is_serializable }, Done::Interleaved { first: one, second: other }) => {
            let (firsts, seconds) = (after_calls(model, first, &one.0), after_calls(model, second, &other.0));
            if firsts.is_empty() || seconds.is_empty() {
                return Ok(false);
            }
            match (&one.1, &other.1) {
                (Err(_), Err(_)) => model == after,
                (Ok(()), Err(_)) => firsts.contains(after),
                (Err(_), Ok(())) => seconds.contains(after),
                (Ok(()), Ok(())) if *is_serializable => {
                    let one_first = firsts.iter().flat_map(|state| after_calls(state, second, &other.0));
                    let other_first = seconds.iter().flat_map(|state| after_calls(state, first, &one.0));
                    one_first.chain(other_first).any(|state| state == *after)
                }
                (Ok(()), Ok(())) => {
                    let pairs = firsts.iter().flat_map(|one| seconds.iter().map(move |other| (one, other)));
                    let merged: Vec<_> = pairs.map(|(one, other)| model::merged(model, one, other)).collect();
                    match merged.iter().find_map(|merged| merged.as_ref().err()) {
                        Some(why) if merged.iter().all(Result::is_err) => return Err(why.clone()),
                        _ => merged.iter().flatten().any(|merged| merged == after),
                    }
                }
            }
        }
        (Step::Expire { second, limit }, Done::Expired(deleted)) => {
            model.expired(*second, *limit, *deleted).contains(after)
        }
        (Step::SetExpiry { name, place, seconds }, Done::Dropped) => {
            let index = model.index(name, *place);
            index.and_then(|(index, _)| model.set_expiry(name, &index, *seconds)).is_some_and(|state| state == *after)
        }
        (Step::SetExpiry { name, place, .. }, Done::Refused(_)) => {
            after == model && !model.index(name, *place).is_some_and(|(_, is_ttl)| is_ttl)
        }
        (Step::DropDatabase(name), Done::Dropped) => model.without_database(name) == *after,
        (Step::CopyOnto(existing), Done::Copied) => model.copied_beside(*existing).is_some_and(|state| state == *after),
        (Step::CopyOnto(existing), Done::Refused(_)) => after == model && model.copied_beside(*existing).is_none(),
        (_, Done::Nothing) => after == model,
        (Step::Compact | Step::Analyze(_), Done::Refused(_)) => after == model,
        _ => false,
    })
}

fn check_history(pool: &Pool, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut states: Vec<TestState> = STORES.into_iter().map(TestState::new).collect();
    let mut model = Model::default();
    for (place, step) in steps.iter().enumerate() {
        let fail = |why: String| TestCaseError::fail(brief(&format!("step {place}, {step:?}: {why}")));
        let mut outcomes: Vec<(Store, String)> = Vec::new();
        let mut next = Vec::new();
        for state in states {
            let store = state.database.store;
            // Closing a memory store would discard it, so it stays open.
            let (state, done) = if matches!(step, Step::Reopen) && store == Store::Memory {
                (state, Done::Nothing)
            } else {
                state.step(step, pool).map_err(|why| fail(format!("on {store:?}: {why}")))?
            };
            let after = state.model();
            match is_allowed(&model, step, &done, &after) {
                Ok(true) => {}
                Ok(false) => {
                    let why = format!("{done:?}: the model has {model:?}, and after the step {after:?} is there");
                    return Err(fail(format!("on {store:?}: {why}")));
                }
                Err(why) => return Err(fail(format!("on {store:?}: {done:?}: {why}"))),
            }
            outcomes.push((store, format!("{done:?}, leaving {}", state.contents())));
            next.push(state);
        }
        for pair in outcomes.windows(2) {
            let [(left, one), (right, other)] = pair else { continue };
            if one != other {
                return Err(fail(format!("on {left:?} {one}\non {right:?} {other}")));
            }
        }
        model = next.first().map(TestState::model).unwrap_or_default();
        states = next;
    }
    Ok(())
}

#[test]
fn stores_agree_over_histories_and_indexes_agree_with_documents() {
    let tested = runner(60).run(&strategy::history(), |(pool, steps)| check_history(&pool, &steps));
    if let Err(error) = tested {
        panic!("{error}");
    }
}
