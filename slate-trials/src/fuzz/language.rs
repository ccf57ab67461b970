//! Filters, updates, projections, sorts, pipelines, expressions and definitions of indexes.

use bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use slate_core::{Hint, Index, OperatorKind, Result};

use super::{
    fault,
    input::{Input, listed},
    right, with_database,
};

/// Documents with values of every type, with arrays, and with fields that are missing.
pub(super) fn documents() -> Vec<Document> {
    let values: [Bson; 14] = [
        Bson::Null,
        1.into(),
        (-7_i64).into(),
        2.5.into(),
        f64::NAN.into(),
        "text".into(),
        true.into(),
        Bson::DateTime(DateTime::from_millis(1_700_000_000_000)),
        Bson::ObjectId(ObjectId::from_bytes([7; 12])),
        vec![1, 2, 3].into(),
        Bson::Array(vec![doc! { "b": 1 }.into(), doc! { "b": [2, 3] }.into(), 5.into()]),
        doc! { "b": { "c": "x" }, "0": 4 }.into(),
        Bson::MaxKey,
        Bson::Array(Vec::new()),
    ];
    let documents = (0..).zip(values).map(|(id, value)| match id % 3 {
        0 => doc! { "_id": id, "a": value },
        1 => doc! { "_id": id, "a": value, "b": id % 4 },
        _ => doc! { "_id": id, "b": value, "c": [id, "s"] },
    });
    documents.chain([doc! { "_id": 99 }]).collect()
}

/// Returns the rows with every value that only equals itself by its text, such as NaN.
fn shown(rows: Result<Vec<Document>>) -> Result<Vec<String>> {
    Ok(rows?.iter().map(|row| row.to_string()).collect())
}

/// A filter finds the same documents with indexes and without.
pub(super) fn filter(data: &[u8]) {
    let filter = Input::new(data).document(&listed(OperatorKind::Filter.names()), 0);
    with_database(|db| {
        let find = |collection: &str, hint: Option<Hint>| {
            let find = db.collection::<Document>(collection).find(filter.clone()).sort(doc! { "_id": 1 });
            let find = match hint {
                Some(hint) => find.hint(hint),
                None => find,
            };
            shown(find.collect())
        };
        let (indexed, plain) = (find("indexed", None), find("plain", Some(Hint::Forward)));
        match (&indexed, &plain) {
            (Ok(indexed), Ok(plain)) => assert_eq!(indexed, plain, "{filter}"),
            // A plan may not reach the document at which evaluating fails.
            (Err(_), Err(_)) | (Ok(_), Err(_)) | (Err(_), Ok(_)) => {}
        }
        if let Ok(rows) = &indexed {
            let counted = db.collection::<Document>("indexed").count_documents(filter.clone()).run();
            assert!(counted.is_ok_and(|counted| usize::try_from(counted) == Ok(rows.len())), "count of {filter}");
        }
    });
}

/// An update, in a transaction that is not committed.
pub(super) fn update(data: &[u8]) {
    let mut input = Input::new(data);
    let operators: Vec<&'static str> = listed(OperatorKind::Update.names());
    let update = input.document(&operators, 0);
    let filter = input.document(&listed(OperatorKind::Filter.names()), 3);
    with_database(|db| {
        let tx = right(db.begin());
        for name in ["plain", "indexed"] {
            let c = tx.collection::<Document>(name);
            let _ = c.update_many(filter.clone(), update.clone()).run();
            let _ = c.update_one(filter.clone(), update.clone()).upsert().run();
            if !right(c.verify().run()).is_sound() {
                fault(&format!("{name} is not sound after {update}"));
            }
        }
        tx.rollback();
    });
}

pub(super) fn projection(data: &[u8]) {
    let projection = Input::new(data).document(&listed(OperatorKind::Expression.names()), 0);
    with_database(|db| {
        let rows = |collection: &str| {
            shown(
                db.collection::<Document>(collection)
                    .find(doc! {})
                    .sort(doc! { "_id": 1 })
                    .projection(projection.clone())
                    .collect(),
            )
        };
        if let (Ok(indexed), Ok(plain)) = (rows("indexed"), rows("plain")) {
            assert_eq!(indexed, plain, "{projection}");
        }
    });
}

pub(super) fn sort(data: &[u8]) {
    let mut sort = Input::new(data).document(&["$meta"], 2);
    sort.insert("_id", 1);
    with_database(|db| {
        let rows =
            |collection: &str| shown(db.collection::<Document>(collection).find(doc! {}).sort(sort.clone()).collect());
        if let (Ok(indexed), Ok(plain)) = (rows("indexed"), rows("plain")) {
            assert_eq!(indexed, plain, "{sort}");
        }
    });
}

pub(super) fn expression(data: &[u8]) {
    let expression = Input::new(data).value(&listed(OperatorKind::Expression.names()), 0);
    with_database(|db| {
        let rows = |collection: &str| {
            let stages = [doc! { "$sort": { "_id": 1 } }, doc! { "$project": { "x": expression.clone() } }];
            shown(db.collection::<Document>(collection).aggregate(stages).collect())
        };
        // Random numbers and the time differ from call to call.
        let text = expression.to_string();
        let is_constant = !["$rand", "$$NOW", "$createObjectId", "$currentDate"].iter().any(|name| text.contains(name));
        if let (Ok(indexed), Ok(plain), true) = (rows("indexed"), rows("plain"), is_constant) {
            assert_eq!(indexed, plain, "{expression}");
        }
    });
}

/// A pipeline. Its last stage may write into a collection, so it has a database of its own.
pub(super) fn pipeline(data: &[u8]) {
    let mut input = Input::new(data);
    let (stages, arguments) = (listed(OperatorKind::Stage.names()), {
        let mut names = listed(OperatorKind::Expression.names());
        names.extend(OperatorKind::Accumulator.names());
        names.extend(["by", "from", "into", "on", "as", "let", "pipeline", "output", "groupBy", "boundaries", "path"]);
        names
    });
    let mut pipeline = Vec::new();
    for _ in 0..=input.byte() % 3 {
        let name = stages.get(usize::from(input.byte()) % stages.len().max(1)).copied().unwrap_or("$match");
        pipeline.push(doc! { name: input.value(&arguments, 0) });
    }
    let writes = pipeline.iter().any(|stage| stage.contains_key("$out") || stage.contains_key("$merge"));
    let run = |db: &slate_core::Database| {
        let aggregate = db.collection::<Document>("indexed").aggregate(pipeline.clone());
        let _ = aggregate.memory_limit(1 << 20).deadline(std::time::Duration::from_secs(5)).collect();
    };
    if writes { run(&super::filled()) } else { with_database(run) }
}

/// The definition of an index, in a transaction that is not committed.
pub(super) fn index(data: &[u8]) {
    let mut input = Input::new(data);
    let keys = input.document(&["$**", "a.$**"], 2);
    let options = input.byte();
    let mut index = Index::on(keys.clone());
    if options % 2 == 1 {
        index = index.unique();
    }
    if options & 2 > 0 {
        index = index.sparse();
    }
    if options & 4 > 0 {
        index = index.only(input.document(&listed(OperatorKind::Filter.names()), 2));
    }
    with_database(|db| {
        let tx = right(db.begin());
        let c = tx.collection::<Document>("plain");
        if c.create_index(index).run().is_ok() && !right(c.verify().run()).is_sound() {
            fault(&format!("the index {keys} does not agree with its documents"));
        }
        tx.rollback();
    });
}
