//! Random histories.

use bson::{Bson, DateTime, Document, doc};
use proptest::{collection::vec, option, prelude::*, sample::select};
use slate_core::{
    ExistingCollections, RenameTarget, ReturnDocument, UpdateModifications, ValidationAction, ValidationLevel,
};

use super::{
    Step,
    call::{Call, Checks, Creation, Mode, NAMES, Read, Rules, Sink, ViewOf},
};
use crate::common::{
    random::{self, Pool},
    random_values, raw,
};

/// Few `_id`s, so that they collide.
fn id() -> BoxedStrategy<Bson> {
    let mut ids = random_values::ids();
    ids.truncate(7);
    ids.extend([Bson::Double(3.0), Bson::Int32(255)]);
    select(ids).boxed()
}

/// Dates of the first four seconds, alone and in arrays, and what is no date.
fn date() -> BoxedStrategy<Bson> {
    let date = (0..5_i64).prop_map(|second| Bson::DateTime(DateTime::from_millis(second * 1_000)));
    prop_oneof![
        6 => date.clone(),
        1 => vec(prop_oneof![3 => date, 1 => Just(Bson::from("now"))], 0..3).prop_map(Bson::Array),
        1 => Just(Bson::from("now")),
    ]
    .boxed()
}

fn with_id(pool: &Pool) -> BoxedStrategy<Document> {
    (id(), pool.body(), option::weighted(0.3, date()))
        .prop_map(|(id, body, date)| {
            let mut document = doc! { "_id": id };
            document.extend(body);
            document.extend(date.map(|date| ("t".to_owned(), date)));
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

/// Returns stages that make a document of a document and leave its `_id`.
fn stage(pool: &Pool) -> BoxedStrategy<Document> {
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
    prop_oneof![4 => set, 1 => unset, 1 => keep, 1 => replace].boxed()
}

/// Returns a pipeline whose result depends on the documents.
fn pipeline(pool: &Pool) -> BoxedStrategy<Vec<Document>> {
    vec(stage(pool), 1..3).boxed()
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
    let fields = vec((operator, pool.path()), 1..3).prop_map(|operators| {
        let mut update = Document::new();
        for ((name, operand), path) in operators {
            let fields = update.entry(name.to_owned()).or_insert_with(|| Document::new().into());
            fields.as_document_mut().unwrap().insert(path, operand);
        }
        update
    });
    prop_oneof![12 => fields, 1 => date().prop_map(|date| doc! { "$set": { "t": date } })].boxed()
}

fn name() -> BoxedStrategy<&'static str> {
    prop_oneof![6 => Just("x"), 2 => Just("y"), 2 => Just("v"), 1 => Just("$shop.x")].boxed()
}

fn rules(pool: &Pool) -> BoxedStrategy<Rules> {
    let filter = prop_oneof![
        2 => pool.filter(),
        1 => pool.path().prop_map(|path| doc! { path: { "$exists": true } }),
        1 => (pool.path(), select(vec!["int", "string", "array", "object"]))
            .prop_map(|(path, kind)| doc! { "$jsonSchema": { "properties": { path.split('.').next().unwrap_or("a"): { "bsonType": kind } } } }),
        1 => id().prop_map(|id| doc! { "_id": { "$ne": id } }),
    ];
    let level = select(vec![
        ValidationLevel::Strict,
        ValidationLevel::Strict,
        ValidationLevel::Moderate,
        ValidationLevel::Moderate,
        ValidationLevel::Off,
    ]);
    let action = prop_oneof![4 => Just(ValidationAction::Error), 1 => Just(ValidationAction::Warn)];
    (filter, level, action).prop_map(|(filter, level, action)| Rules { filter, level, action }).boxed()
}

fn view(pool: &Pool) -> BoxedStrategy<ViewOf> {
    let stage = prop_oneof![2 => pool.filter().prop_map(|filter| doc! { "$match": filter }), 1 => stage(pool)];
    (prop_oneof![4 => Just("x"), 1 => Just("y"), 1 => Just("v")], vec(stage, 0..3))
        .prop_map(|(on, pipeline)| ViewOf { on, pipeline })
        .boxed()
}

fn creation(pool: &Pool) -> BoxedStrategy<Creation> {
    let is_collated = || prop::bool::weighted(0.4);
    prop_oneof![
        (is_collated(), option::weighted(0.6, rules(pool)), any::<bool>())
            .prop_map(|(is_collated, rules, keeps_images)| Creation::Collection { is_collated, rules, keeps_images }),
        (view(pool), is_collated()).prop_map(|(view, is_collated)| Creation::View { view, is_collated }),
    ]
    .boxed()
}

fn checks() -> BoxedStrategy<Checks> {
    prop_oneof![5 => Just(Checks::Validated), 1 => Just(Checks::Bypassed)].boxed()
}

/// Returns a filter, and whether an update by it is an upsert, for which it then has an `_id`: otherwise each store would generate another.
fn upserting(pool: &Pool) -> BoxedStrategy<(Document, bool)> {
    (id(), pool.filter(), option::weighted(0.3, Just(())))
        .prop_map(|(id, filter, upsert)| {
            let filter = if upsert.is_some() {
                doc! { "_id": id }
            } else {
                filter
            };
            (filter, upsert.is_some())
        })
        .boxed()
}

fn changed(pool: &Pool) -> BoxedStrategy<Call> {
    (upserting(pool), update(pool), any::<bool>(), checks())
        .prop_map(|((filter, upsert), update, many, checks)| Call::Update { filter, update, many, upsert, checks })
        .boxed()
}

fn replaced(pool: &Pool) -> BoxedStrategy<Call> {
    (upserting(pool), pool.body())
        .prop_map(|((filter, upsert), replacement)| Call::Replace { filter, replacement, upsert })
        .boxed()
}

fn deleted(pool: &Pool) -> BoxedStrategy<Call> {
    (pool.filter(), any::<bool>()).prop_map(|(filter, many)| Call::Delete { filter, many }).boxed()
}

/// Returns an operation of a bulk write, which validators check.
fn operation(pool: &Pool) -> BoxedStrategy<Call> {
    let insert = with_id(pool).prop_map(|document| Call::Insert {
        documents: vec![document],
        mode: Mode::AllOrNothing,
        checks: Checks::Validated,
    });
    let changed = changed(pool).prop_map(|call| match call {
        Call::Update { filter, update, many, upsert, .. } => {
            Call::Update { filter, update, many, upsert, checks: Checks::Validated }
        }
        other => other,
    });
    prop_oneof![2 => insert, 2 => changed, 1 => replaced(pool), 1 => deleted(pool)].boxed()
}

fn read(pool: &Pool) -> BoxedStrategy<Read> {
    let find = (pool.filter(), option::of(pool.directed(2)), option::weighted(0.3, 1..4_u64))
        .prop_map(|(filter, sort, limit)| Read::Find { filter, sort, limit });
    let one = (pool.filter(), pool.directed(2)).prop_map(|(filter, sort)| Read::FindOne { filter, sort });
    let distinct = (select(vec!["a", "b", "a.b", "_id"]), pool.filter())
        .prop_map(|(path, filter)| Read::Distinct { path, filter });
    let lookup = (pool.filter(), select(vec!["x", "y", "v"]), select(vec!["_id", "a", "b"]))
        .prop_map(|(filter, from, foreign)| Read::Lookup { filter, from, foreign });
    let union =
        (pool.filter(), select(vec!["x", "y", "v"])).prop_map(|(filter, with)| Read::UnionWith { filter, with });
    prop_oneof![
        3 => find,
        1 => one,
        1 => id().prop_map(Read::ById),
        1 => pool.filter().prop_map(Read::Count),
        1 => Just(Read::Estimate),
        2 => distinct,
        2 => lookup,
        1 => union,
    ]
    .boxed()
}

fn definition(pool: &Pool) -> BoxedStrategy<Call> {
    let target = prop_oneof![2 => Just(RenameTarget::DropExisting), 1 => Just(RenameTarget::MustNotExist)];
    let ttl = (0..3_u32, prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(seconds, is_hidden, is_partial)| Call::CreateTtl { seconds, is_hidden, is_partial });
    prop_oneof![
        5 => pool.index().prop_map(|index| Call::CreateIndex(Box::new(index))),
        3 => ttl,
        2 => (0..3_usize, any::<bool>()).prop_map(|(place, hidden)| Call::HideIndex(place, hidden)),
        1 => (0..3_usize).prop_map(Call::DropIndex),
        1 => (select(NAMES.to_vec()), target).prop_map(|(to, target)| Call::Rename { to, target }),
        3 => creation(pool).prop_map(Call::Create),
        1 => view(pool).prop_map(Call::SetView),
        2 => option::weighted(0.8, rules(pool)).prop_map(Call::SetValidator),
        1 => any::<bool>().prop_map(Call::KeepImages),
        1 => Just(Call::DropCollection),
    ]
    .boxed()
}

fn sink() -> BoxedStrategy<Sink> {
    let into = || select(NAMES.to_vec());
    let kinds = vec![
        ("merge", "insert"),
        ("merge", "insert"),
        ("merge", "discard"),
        ("merge", "fail"),
        ("replace", "insert"),
        ("replace", "discard"),
        ("replace", "fail"),
        ("keepExisting", "insert"),
        ("fail", "insert"),
    ];
    prop_oneof![
        1 => into().prop_map(Sink::Out),
        3 => (into(), select(kinds))
            .prop_map(|(into, (matched, unmatched))| Sink::Merge { into, matched, unmatched }),
    ]
    .boxed()
}

fn call(pool: &Pool) -> BoxedStrategy<Call> {
    let mode = prop_oneof![4 => Just(Mode::AllOrNothing), 1 => Just(Mode::Ordered), 1 => Just(Mode::Unordered)];
    let insert = (vec(with_id(pool), 1..4), mode, checks()).prop_map(|(documents, mode, checks)| Call::Insert {
        documents,
        mode,
        checks,
    });
    let returns = select(vec![ReturnDocument::Before, ReturnDocument::After]);
    let taken = (pool.filter(), update(pool), pool.directed(2), returns)
        .prop_map(|(filter, update, sort, returns)| Call::FindOneAndUpdate { filter, update, sort, returns });
    let swapped = (pool.filter(), pool.body(), pool.directed(2))
        .prop_map(|(filter, replacement, sort)| Call::FindOneAndReplace { filter, replacement, sort });
    let removed = (pool.filter(), pool.directed(2)).prop_map(|(filter, sort)| Call::FindOneAndDelete { filter, sort });
    let several = || vec(with_id(pool), 1..4);
    let bulk = (vec(operation(pool), 1..4), any::<bool>())
        .prop_map(|(operations, ordered)| Call::BulkWrite { operations, ordered });
    let written = (pool.filter(), sink()).prop_map(|(filter, sink)| Call::Write { filter, sink });
    prop_oneof![
        2 => several().prop_map(Call::UpsertMany),
        2 => several().prop_map(Call::MergeMany),
        2 => bulk,
        2 => written,
        8 => insert,
        8 => changed(pool),
        2 => replaced(pool),
        2 => deleted(pool),
        2 => taken,
        1 => swapped,
        1 => removed,
        9 => definition(pool),
        4 => read(pool).prop_map(Call::Read),
    ]
    .boxed()
}

pub(crate) fn history() -> impl Strategy<Value = (Pool, Vec<Step>)> {
    random::pool().prop_flat_map(|pool| {
        let call = (name(), call(&pool)).boxed();
        let interleaved = (vec(call.clone(), 1..4), vec(call.clone(), 1..4), any::<bool>())
            .prop_map(|(first, second, is_serializable)| Step::Interleaved { first, second, is_serializable });
        let existing =
            select(vec![ExistingCollections::Refuse, ExistingCollections::Keep, ExistingCollections::Replace]);
        let expire =
            (0..6_i64, option::weighted(0.3, Just(1))).prop_map(|(second, limit)| Step::Expire { second, limit });
        let bulk = (vec((name(), operation(&pool)), 1..4), any::<bool>())
            .prop_map(|(operations, ordered)| Step::BulkWrite { operations, ordered });
        let step = prop_oneof![
            14 => call.clone().prop_map(|(name, call)| Step::Call(name, Box::new(call))),
            3 => (vec(call, 1..5), any::<bool>()).prop_map(|(calls, commit)| Step::Transaction { calls, commit }),
            2 => interleaved,
            1 => bulk,
            1 => prop_oneof![
                3 => expire,
                1 => (name(), 0..3_usize, 0..3_u32)
                    .prop_map(|(name, place, seconds)| Step::SetExpiry { name, place, seconds }),
            ],
            1 => Just(Step::TakeSnapshot),
            1 => prop_oneof![
                2 => Just(Step::Compact),
                2 => select(NAMES.to_vec()).prop_map(Step::Analyze),
                2 => Just(Step::Restore),
                2 => Just(Step::Copy),
                2 => existing.prop_map(Step::CopyOnto),
                1 => select(vec!["test", "shop"]).prop_map(Step::DropDatabase),
            ],
            1 => Just(Step::Reopen),
        ];
        (Just(pool), vec(step, 1..14))
    })
}
