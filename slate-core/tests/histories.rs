//! Applies the same random histories to all stores and to a model without a store. After each step all stores must be equal, the model
//! must agree with them, and every index must agree with the documents.
//!
//! `SLATE_CASES=10000 SLATE_SEED=7 cargo test -p slate-core --test histories` runs as many. A failing history is made as short as possible.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "histories/model.rs"]
mod model;

use std::fmt;

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{
    STORES, Store, TestDatabase, brief, multiset,
    random::{self, Pool, RandomIndex},
    random_values, raw, refusal, rows, runner,
};
use model::Model;
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestCaseError};
use slate_core::{
    Collection, ExplainVerbosity, Hint, ReadCollection, RenameTarget, ReturnDocument, Snapshot, Transaction,
    UpdateModifications, WriteOperation,
};

type Documents = Collection<RawDocumentBuf>;

const COLLECTIONS: [&str; 2] = ["x", "y"];

/// One call on one collection.
#[derive(Clone, Debug)]
enum Call {
    Insert(Vec<Document>),
    Update {
        filter: Document,
        update: UpdateModifications,
        many: bool,
        upsert: bool,
    },
    Replace {
        filter: Document,
        replacement: Document,
        upsert: bool,
    },
    Delete {
        filter: Document,
        many: bool,
    },
    FindOneAndUpdate {
        filter: Document,
        update: UpdateModifications,
        sort: Document,
    },
    FindOneAndDelete {
        filter: Document,
        sort: Document,
    },
    UpsertMany(Vec<Document>),
    MergeMany(Vec<Document>),
    BulkWrite {
        inserted: Document,
        filter: Document,
        update: UpdateModifications,
        ordered: bool,
    },
    /// Writes the documents that match into a collection by this stage.
    Write {
        filter: Document,
        stage: Document,
    },
    Rename(&'static str),
    HideIndex(usize, bool),
    CreateIndex(Box<RandomIndex>),
    DropIndex(usize),
    DropCollection,
}

#[derive(Clone)]
enum Step {
    Call(&'static str, Box<Call>),
    Transaction {
        calls: Vec<(&'static str, Call)>,
        commit: bool,
    },
    TakeSnapshot,
    Compact,
    Analyze(&'static str),
    /// Continues with a backup of the database.
    Restore,
    /// Continues with a copy of the database.
    Copy,
    /// Closes and reopens persistent databases.
    Reopen,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Call(name, call) => format!("{name}: {call:?}"),
            Self::Transaction { calls, commit } => format!("commit {commit}: {calls:?}"),
            Self::TakeSnapshot => "take a snapshot".into(),
            Self::Compact => "compact".into(),
            Self::Analyze(name) => format!("analyze {name}"),
            Self::Restore => "restore a backup".into(),
            Self::Copy => "copy".into(),
            Self::Reopen => "reopen".into(),
        };
        f.write_str(&brief(&text))
    }
}

/// Few `_id`s, so that they collide.
fn id() -> BoxedStrategy<Bson> {
    let mut ids = random_values::ids();
    ids.truncate(7);
    ids.extend([Bson::Double(3.0), Bson::Int32(255)]);
    select(ids).boxed()
}

fn with_id(pool: &Pool) -> BoxedStrategy<Document> {
    (id(), pool.body())
        .prop_map(|(id, body)| {
            let mut document = doc! { "_id": id };
            document.extend(body);
            document
        })
        .boxed()
}

fn update(pool: &Pool) -> BoxedStrategy<UpdateModifications> {
    prop_oneof![
        5 => operators(pool).prop_map(|update| UpdateModifications::Operators(raw(&update))),
        1 => pipeline(pool).prop_map(|stages| UpdateModifications::Pipeline(stages.iter().map(raw).collect())),
    ]
    .boxed()
}

/// Returns a pipeline whose result depends on the documents.
fn pipeline(pool: &Pool) -> BoxedStrategy<Vec<Document>> {
    let path = || pool.path().prop_filter("a field", |path| !path.starts_with("_id"));
    let value = prop_oneof![
        pool.operand().prop_map(|operand| doc! { "$literal": operand }.into()),
        path().prop_map(|path| Bson::from(format!("${path}"))),
    ];
    let set = (path(), value).prop_map(|(path, value)| doc! { "$set": { path: value } });
    let unset = path().prop_map(|path| doc! { "$unset": path });
    let keep = (path(), 0..2_i32).prop_map(|(path, shown)| doc! { "$project": { path: shown } });
    let replace = select(vec!["$a", "$b", "$$ROOT"]).prop_map(|field| {
        doc! { "$replaceWith": { "$mergeObjects": [{ "$cond": [{ "$eq": [{ "$type": field }, "object"] }, field, {}] }, { "_id": "$_id" }] } }
    });
    vec(prop_oneof![4 => set, 1 => unset, 1 => keep, 1 => replace], 1..3).boxed()
}

fn operators(pool: &Pool) -> BoxedStrategy<Document> {
    let operator = prop_oneof![
        6 => (Just("$set"), pool.operand()),
        2 => (Just("$set"), pool.nested()),
        2 => (Just("$unset"), Just(Bson::from(""))),
        3 => (Just("$inc"), (-1..3_i32).prop_map(Bson::from)),
        1 => (Just("$mul"), (0..3_i32).prop_map(Bson::from)),
        1 => (select(vec!["$min", "$max"]), pool.operand()),
        3 => (select(vec!["$push", "$addToSet"]), pool.operand()),
        1 => (Just("$pull"), pool.operand()),
        1 => (Just("$pop"), select(vec![Bson::Int32(1), Bson::Int32(-1)])),
        1 => (Just("$rename"), select(vec!["a", "b", "c"]).prop_map(Bson::from)),
        1 => (Just("$setOnInsert"), pool.operand()),
    ];
    vec((operator, pool.path()), 1..3)
        .prop_map(|operators| {
            let mut update = Document::new();
            for ((name, operand), path) in operators {
                let fields = update.entry(name.to_owned()).or_insert_with(|| Document::new().into());
                fields.as_document_mut().unwrap().insert(path, operand);
            }
            update
        })
        .boxed()
}

fn call(pool: &Pool) -> BoxedStrategy<Call> {
    let insert = vec(with_id(pool), 1..4).prop_map(Call::Insert);
    // An upsert without an `_id` would generate a different one on each store.
    let upserting = (id(), pool.filter(), option::weighted(0.3, Just(()))).prop_map(|(id, filter, upsert)| {
        let filter = if upsert.is_some() {
            doc! { "_id": id }
        } else {
            filter
        };
        (filter, upsert.is_some())
    });
    let changed = (upserting.clone(), update(pool), any::<bool>())
        .prop_map(|((filter, upsert), update, many)| Call::Update { filter, update, many, upsert });
    let replaced = (upserting, pool.body()).prop_map(|((filter, upsert), replacement)| Call::Replace {
        filter,
        replacement,
        upsert,
    });
    let deleted = (pool.filter(), any::<bool>()).prop_map(|(filter, many)| Call::Delete { filter, many });
    let taken = (pool.filter(), update(pool), pool.directed(2))
        .prop_map(|(filter, update, sort)| Call::FindOneAndUpdate { filter, update, sort });
    let removed = (pool.filter(), pool.directed(2)).prop_map(|(filter, sort)| Call::FindOneAndDelete { filter, sort });
    let several = || vec(with_id(pool), 1..4);
    let bulk = (with_id(pool), pool.filter(), update(pool), any::<bool>())
        .prop_map(|(inserted, filter, update, ordered)| Call::BulkWrite { inserted, filter, update, ordered });
    let stages = vec![
        doc! { "$out": "y" },
        doc! { "$merge": { "into": "y", "whenMatched": "merge" } },
        doc! { "$merge": { "into": "x", "whenMatched": "replace" } },
        doc! { "$merge": { "into": "y", "whenMatched": "keepExisting", "whenNotMatched": "insert" } },
    ];
    let written = (pool.filter(), select(stages)).prop_map(|(filter, stage)| Call::Write { filter, stage });
    prop_oneof![
        2 => several().prop_map(Call::UpsertMany),
        2 => several().prop_map(Call::MergeMany),
        1 => bulk,
        2 => written,
        1 => select(COLLECTIONS.to_vec()).prop_map(Call::Rename),
        1 => (0..3_usize, any::<bool>()).prop_map(|(place, hidden)| Call::HideIndex(place, hidden)),
        8 => insert,
        8 => changed,
        2 => replaced,
        2 => deleted,
        2 => taken,
        1 => removed,
        4 => pool.index().prop_map(|index| Call::CreateIndex(Box::new(index))),
        1 => (0..3_usize).prop_map(Call::DropIndex),
        1 => prop_oneof![1 => Just(Call::DropCollection), 2 => pool.index().prop_map(|index| Call::CreateIndex(Box::new(index)))],
    ]
    .boxed()
}

fn history() -> impl Strategy<Value = (Pool, Vec<Step>)> {
    random::pool().prop_flat_map(|pool| {
        let call = (prop_oneof![3 => Just(COLLECTIONS[0]), 1 => Just(COLLECTIONS[1])], call(&pool));
        let step = prop_oneof![
            12 => call.clone().prop_map(|(name, call)| Step::Call(name, Box::new(call))),
            3 => (vec(call, 1..5), any::<bool>()).prop_map(|(calls, commit)| Step::Transaction { calls, commit }),
            1 => Just(Step::TakeSnapshot),
            1 => prop_oneof![
                Just(Step::Compact),
                select(COLLECTIONS.to_vec()).prop_map(Step::Analyze),
                Just(Step::Restore),
                Just(Step::Copy),
            ],
            1 => Just(Step::Reopen),
        ];
        (Just(pool), vec(step, 1..14))
    })
}

fn run(collection: &Documents, call: &Call) -> Result<String, (i32, String)> {
    let show = |value: &dyn fmt::Debug| format!("{value:?}");
    let outcome = match call {
        Call::Insert(documents) => {
            let documents: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
            collection.insert_many(&documents).run().map(|ids| show(&ids))
        }
        Call::Update { filter, update, many, upsert } => {
            let update = if *many {
                collection.update_many(filter, update.clone())
            } else {
                collection.update_one(filter, update.clone())
            };
            let update = if *upsert { update.upsert() } else { update };
            update.run().map(|result| show(&result))
        }
        Call::Replace { filter, replacement, upsert } => {
            let replace = collection.replace_one(filter, &raw(replacement));
            let replace = if *upsert { replace.upsert() } else { replace };
            replace.run().map(|result| show(&result))
        }
        Call::Delete { filter, many } => {
            let delete = if *many { collection.delete_many(filter) } else { collection.delete_one(filter) };
            delete.run().map(|deleted| show(&deleted))
        }
        Call::FindOneAndUpdate { filter, update, sort } => collection
            .find_one_and_update(filter, update.clone())
            .sort(sort)
            .return_document(ReturnDocument::After)
            .run()
            .map(|found| show(&found)),
        Call::FindOneAndDelete { filter, sort } => {
            collection.find_one_and_delete(filter).sort(sort).run().map(|found| show(&found))
        }
        Call::UpsertMany(documents) => {
            let documents: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
            collection.upsert_many(&documents).map(|result| show(&result))
        }
        Call::MergeMany(documents) => collection.merge_many(documents).map(|result| show(&result)),
        Call::BulkWrite { inserted, filter, update, ordered } => {
            let operations = [
                WriteOperation::insert_one(inserted),
                WriteOperation::update_many(filter, update.clone()),
                WriteOperation::delete_one(filter),
            ];
            let refused = |index: usize, error: &slate_core::Error| format!("{index}: {:?}", refusal(error));
            collection.bulk_write(operations).ordered(*ordered).run().map(|result| {
                let errors: Vec<String> =
                    result.errors.iter().map(|failed| refused(failed.index, &failed.error)).collect();
                format!("{} {} {} {errors:?}", result.inserted_ids.len(), result.modified, result.deleted)
            })
        }
        Call::Write { filter, stage } => {
            let stages = [doc! { "$match": filter }, doc! { "$sort": { "_id": 1 } }, stage.clone()];
            collection.aggregate(stages).run().map(|rows| show(&rows.count()))
        }
        Call::Rename(to) => collection.rename(to, RenameTarget::DropExisting).map(|_| "renamed".into()),
        Call::HideIndex(place, hidden) => {
            let indexes = collection.list_indexes().map_err(|error| refusal(&error))?;
            let name = indexes.get(*place).map_or("none", |index| &index.name);
            let changed = if *hidden { collection.hide_index(name) } else { collection.show_index(name) };
            changed.map(|changed| show(&changed))
        }
        Call::CreateIndex(index) => collection.create_index(index.spec()).run().map(|name| show(&name)),
        Call::DropIndex(place) => {
            let indexes = collection.list_indexes().map_err(|error| refusal(&error))?;
            let name = indexes.get(*place).map_or("none", |index| &index.name);
            collection.drop_index(name).map(|dropped| show(&dropped))
        }
        Call::DropCollection => collection.drop().map(|dropped| show(&dropped)),
    };
    outcome.map_err(|error| refusal(&error))
}

/// Returns every document in the order of `_id`, and every index.
fn contents(collection: &ReadCollection<RawDocumentBuf>) -> String {
    let documents = rows(collection.find(doc! {}).hint(Hint::Forward));
    format!("{documents:?} {:?}", collection.list_indexes().map_err(|error| refusal(&error)))
}

/// Checks that each index agrees with the documents: for each value of the pool, every plan returns what the scan
/// returns.
fn check_indexes(collection: &ReadCollection<RawDocumentBuf>, pool: &Pool) -> Result<(), String> {
    for index in collection.list_indexes().map_err(|error| error.to_string())? {
        let condition = index.only.as_ref().map_or_else(Document::new, |only| only.try_into().unwrap());
        let mut filters = vec![condition.clone()];
        let paths = index.keys.iter().flat_map(|field| match field.unwrap().0.as_str() {
            // A wildcard index has entries for every path.
            wildcard if wildcard.ends_with("$**") => ["a", "b", "a.b"].map(String::from).to_vec(),
            path => vec![path.to_owned()],
        });
        for path in paths {
            filters.push(doc! { "$and": [condition.clone(), { &path: { "$exists": true } }] });
            for value in pool.values().iter().filter(|value| **value != Bson::Undefined) {
                filters.push(doc! { "$and": [condition.clone(), { &path: { "$eq": value } }] });
            }
            filters.push(doc! { "$and": [condition.clone(), { &path: { "$gt": 0 } }] });
        }
        for filter in filters {
            let right = rows(collection.find(&filter).force(0)).map_err(|error| format!("{error:?}"))?;
            let explained =
                collection.find(&filter).explain(ExplainVerbosity::QueryPlanner).map_err(|error| error.to_string())?;
            for plan in 1..explained.candidates() {
                let find = collection.find(&filter).force(plan);
                let drawn = find.clone().explain(ExplainVerbosity::QueryPlanner).map_err(|error| error.to_string())?;
                let got = rows(find).map_err(|error| format!("{filter}\n{drawn}\n{error:?}"))?;
                if multiset(&got) != multiset(&right) {
                    return Err(format!("{filter}\n{drawn}\nreturns {got:?}, expected {right:?}"));
                }
            }
        }
    }
    Ok(())
}

/// A database, and its open snapshots with their contents at the time of opening.
struct TestState {
    database: TestDatabase,
    snapshots: Vec<(Snapshot, String)>,
}

impl TestState {
    fn new(store: Store) -> Self {
        Self { database: store.open(), snapshots: Vec::new() }
    }

    fn contents(&self) -> String {
        COLLECTIONS.map(|name| contents(&self.database.collection(name))).join("\n")
    }

    /// Returns the documents of all collections.
    fn documents(&self) -> Model {
        Model::of(COLLECTIONS.map(|name| {
            let collection: Documents = self.database.collection(name);
            (name, rows(collection.find(doc! {}).hint(Hint::Forward)).unwrap())
        }))
    }

    /// Executes a step. Returns a description of the outcome, and which calls have succeeded.
    fn step(self, step: &Step, pool: &Pool) -> Result<(Self, String, Vec<bool>), String> {
        let before = self.contents();
        let mut successes = Vec::new();
        let (mut state, outcome, failed) = match step {
            Step::Call(name, call) => {
                let outcome = run(&self.database.collection(name), call);
                let failed = outcome.is_err();
                successes.push(!failed);
                (self, format!("{outcome:?}"), failed)
            }
            Step::Transaction { calls, commit } => {
                let (outcome, committed) = self.transaction(calls, *commit, pool, &mut successes)?;
                (self, outcome, !committed)
            }
            Step::TakeSnapshot => {
                let snapshot = self.database.db.snapshot().unwrap();
                let shown = snapshot_contents(&snapshot);
                let mut state = self;
                state.snapshots.push((snapshot, shown));
                (state, String::new(), true)
            }
            Step::Compact => {
                // A snapshot can prevent it.
                let mut state = self;
                state.snapshots.clear();
                let compacted = state.database.db.compact().map_err(|error| refusal(&error));
                (state, format!("{compacted:?}"), true)
            }
            Step::Analyze(name) => {
                let analyzed = self.database.collection(name).analyze().is_ok();
                (self, String::new(), analyzed)
            }
            Step::Restore => (Self { database: self.database.restored(), snapshots: Vec::new() }, String::new(), true),
            Step::Copy => (Self { database: self.database.copied(), snapshots: Vec::new() }, String::new(), true),
            Step::Reopen => {
                // A snapshot keeps the database open.
                drop(self.snapshots);
                (Self { database: self.database.reopen(), snapshots: Vec::new() }, String::new(), true)
            }
        };
        if failed && state.contents() != before {
            return Err(format!("{outcome}: failed, but changed {before} to {}", state.contents()));
        }
        for name in COLLECTIONS {
            let collection = state.database.collection(name);
            check_indexes(&collection, pool)?;
            let report = collection.verify().run().map_err(|error| error.to_string())?;
            if !report.is_sound() {
                return Err(format!("{name}: {:?}", report.findings));
            }
        }
        state.snapshots.retain(|(snapshot, _)| !snapshot.list_collection_names().is_empty());
        for (snapshot, shown) in &state.snapshots {
            if snapshot_contents(snapshot) != *shown {
                return Err(format!("a snapshot changed from {shown} to {}", snapshot_contents(snapshot)));
            }
            check_indexes(&snapshot.collection(COLLECTIONS[0]), pool)?;
        }
        Ok((state, outcome, successes))
    }

    fn transaction(
        &self,
        calls: &[(&'static str, Call)],
        commit: bool,
        pool: &Pool,
        successes: &mut Vec<bool>,
    ) -> Result<(String, bool), String> {
        let transaction: Transaction = self.database.db.begin().unwrap();
        let mut outcomes = Vec::new();
        for (name, call) in calls {
            let collection = transaction.collection(name);
            let before = contents(&collection);
            let outcome = run(&collection, call);
            let over = matches!(rows(collection.find(doc! {})), Err((251, _)));
            if outcome.is_err() && !over && contents(&collection) != before {
                return Err(format!("{call:?}: failed, but changed {before} to {}", contents(&collection)));
            }
            successes.push(outcome.is_ok());
            outcomes.push(format!("{outcome:?} over {over}"));
            if !over {
                check_indexes(&collection, pool).map_err(|why| format!("in the transaction: {why}"))?;
            }
        }
        let ended = if commit { transaction.commit().map_err(|error| refusal(&error)) } else { Err((0, "".into())) };
        Ok((format!("{outcomes:?} {ended:?}"), ended.is_ok()))
    }
}

fn snapshot_contents(snapshot: &Snapshot) -> String {
    COLLECTIONS.map(|name| contents(&snapshot.collection(name))).join("\n")
}

/// The codes with which an index refuses what the model accepts: a key that is there already, two arrays, too many entries, a name
/// that is a position and a field.
const OF_INDEXES: [&str; 4] = ["Err((11000,", "Err((171,", "Err((201,", "Err((16746,"];

/// Checks that the documents after a step are those that the model allows.
fn check_model(model: &Model, step: &Step, successes: &[bool], after: &Model, outcome: &str) -> Result<(), String> {
    let is_allowed = match step {
        Step::Call(name, call) => {
            let has_succeeded = successes == [true];
            let is_of_index = OF_INDEXES.iter().any(|code| outcome.starts_with(code));
            let possible = model.after(name, call);
            possible.iter().any(|possible| possible.has_succeeded == has_succeeded && possible.state == *after)
                || !has_succeeded && is_of_index && after == model
        }
        Step::Transaction { calls, .. } => {
            let mut states = vec![model.clone()];
            for ((name, call), has_succeeded) in calls.iter().zip(successes) {
                if *has_succeeded {
                    let possible = states.iter().flat_map(|state| state.after(name, call));
                    states =
                        possible.filter(|possible| possible.has_succeeded).map(|possible| possible.state).collect();
                    states.dedup();
                }
            }
            let is_committed = outcome.rsplit("] ").next().is_some_and(|ended| ended.starts_with("Ok("));
            if is_committed { states.contains(after) } else { after == model }
        }
        Step::TakeSnapshot | Step::Compact | Step::Analyze(_) | Step::Restore | Step::Copy | Step::Reopen => {
            after == model
        }
    };
    if is_allowed {
        Ok(())
    } else {
        Err(format!("{outcome}: the model has {model:?}, and after the step {after:?} is there"))
    }
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
            let (state, outcome) = if matches!(step, Step::Reopen) && store == Store::Memory {
                (state, String::new())
            } else {
                let (state, outcome, successes) =
                    state.step(step, pool).map_err(|why| fail(format!("on {store:?}: {why}")))?;
                check_model(&model, step, &successes, &state.documents(), &outcome)
                    .map_err(|why| fail(format!("on {store:?}: {why}")))?;
                (state, outcome)
            };
            outcomes.push((store, format!("{outcome}, leaving {}", state.contents())));
            next.push(state);
        }
        for pair in outcomes.windows(2) {
            let [(left, one), (right, other)] = pair else { continue };
            if one != other {
                return Err(fail(format!("on {left:?} {one}\non {right:?} {other}")));
            }
        }
        model = next.first().map(TestState::documents).unwrap_or_default();
        states = next;
    }
    Ok(())
}

#[test]
fn stores_agree_over_histories_and_indexes_agree_with_documents() {
    let tested = runner(60).run(&history(), |(pool, steps)| check_history(&pool, &steps));
    if let Err(error) = tested {
        panic!("{error}");
    }
}
