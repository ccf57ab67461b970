//! Targets for filters, updates, projections, sorts, pipelines, expressions and definitions of indexes.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, oid::ObjectId};
use slate_core::{Hint, Index, OperatorKind, Result, UpdateModifications};

use super::{
    Verdict,
    database::{fault, filled, right, with_database},
    input::{Input, listed},
};

/// Returns documents with values of many types, with arrays, and with missing fields.
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

/// Returns the rows as texts, which are equal also where values such as NaN are not.
fn shown(rows: Result<Vec<Document>>) -> Result<Vec<String>> {
    Ok(rows?.iter().map(|row| row.to_string()).collect())
}

/// Returns a document as BSON bytes; `None` for another value.
fn raw(value: &Bson) -> Option<RawDocumentBuf> {
    value.as_document().and_then(|document| document.try_into().ok())
}

/// Returns whether two calls have the same result: whether the text has no operator for random numbers, new ids or the
/// time.
fn is_constant(text: &str) -> bool {
    !["$rand", "$sampleRate", "$$NOW", "$createObjectId", "$currentDate"].iter().any(|name| text.contains(name))
}

/// Returns the keys of a sort or an index, mostly with directions.
fn keys(input: &mut Input<'_>, names: &[&'static str]) -> Document {
    if let Some(Bson::Document(keys)) = input.text_value() {
        return keys;
    }
    let count = 1 + input.byte() % 3;
    let mut key = |_| {
        let direction = match input.byte() % 16 {
            0 => input.value(&["$meta"], 2),
            at => Bson::Int32(if at % 2 == 0 { 1 } else { -1 }),
        };
        (input.choice(names, "a").to_owned(), direction)
    };
    (0..count).map(&mut key).collect()
}

/// Checks that a filter finds the same documents with indexes and without.
pub(super) fn filter(data: &[u8]) -> Verdict {
    let filter = Input::new(data).argument_document(&listed(OperatorKind::Filter.names()), 0);
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
        // If evaluation fails at one document, a plan that does not reach it may still succeed.
        if let (Ok(indexed), Ok(plain), true) = (&indexed, &plain, is_constant(&filter.to_string())) {
            assert_eq!(indexed, plain, "{filter}");
        }
        if let (Ok(rows), true) = (&indexed, is_constant(&filter.to_string())) {
            let counted = db.collection::<Document>("indexed").count_documents(filter.clone()).run();
            assert!(counted.is_ok_and(|counted| usize::try_from(counted) == Ok(rows.len())), "count of {filter}");
        }
        Verdict::of(&indexed)
    })
}

/// Returns the operators of an update, mostly by the grammar, sometimes with any operands.
fn operators(input: &mut Input<'_>) -> Document {
    let names: Vec<&'static str> = listed(OperatorKind::Update.names());
    if input.byte().is_multiple_of(8) {
        return input.document(&names, 0);
    }
    let count = 1 + input.byte() % 2;
    let mut operator = |_| {
        let name = input.choice(&names, "$set");
        let operand = match input.byte() % 8 {
            0 => doc! { "$each": [input.value(&[], 3), 1, 2], "$slice": 2 }.into(),
            1 => doc! { "$gt": input.value(&[], 4) }.into(),
            2 => vec![input.value(&[], 3)].into(),
            3 => "z".into(),
            4 => doc! { "and": i32::from(input.byte()) }.into(),
            5 | 6 => i32::from(input.byte() % 4).into(),
            _ => input.value(&[], 2),
        };
        (
            name.to_owned(),
            doc! { input.choice(&["x", "b", "a.b", "c.0", "x.y", "a.$[]", "c.$[i]"], "x"): operand }.into(),
        )
    };
    (0..count).map(&mut operator).collect()
}

/// Executes an update by operators or by stages, in a transaction that is not committed.
pub(super) fn update(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let update = match input.text_list() {
        Some(stages) => UpdateModifications::Pipeline(stages.iter().filter_map(raw).collect()),
        None => {
            let update = input.text_value().unwrap_or_else(|| Bson::Document(operators(&mut input)));
            UpdateModifications::Operators(raw(&update).unwrap_or_default())
        }
    };
    let filter = match input.byte() % 4 {
        0 => input.argument_document(&listed(OperatorKind::Filter.names()), 3),
        _ => Document::new(),
    };
    with_database(|db| {
        let mut verdict = Verdict::Refused;
        let tx = right(db.begin());
        for name in ["plain", "indexed"] {
            let c = tx.collection::<Document>(name);
            let many = c.update_many(filter.clone(), update.clone()).run();
            let one = c.update_one(filter.clone(), update.clone()).upsert().run();
            if many.is_ok() || one.is_ok() {
                verdict = Verdict::Accepted;
            }
            if !right(c.verify().run()).is_sound() {
                fault(&format!("{name} is not sound after {update:?}"));
            }
        }
        tx.rollback();
        verdict
    })
}

pub(super) fn projection(data: &[u8]) -> Verdict {
    let projection = Input::new(data).argument_document(&listed(OperatorKind::Expression.names()), 0);
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
        let (indexed, plain) = (rows("indexed"), rows("plain"));
        if let (Ok(indexed), Ok(plain), true) = (&indexed, &plain, is_constant(&projection.to_string())) {
            assert_eq!(indexed, plain, "{projection}");
        }
        Verdict::of(&indexed)
    })
}

pub(super) fn sort(data: &[u8]) -> Verdict {
    let mut sort = keys(&mut Input::new(data), &["a", "b", "c", "a.b", "a.0", "b.c.d", "x", "", "$a"]);
    sort.insert("_id", 1);
    with_database(|db| {
        let rows =
            |collection: &str| shown(db.collection::<Document>(collection).find(doc! {}).sort(sort.clone()).collect());
        let (indexed, plain) = (rows("indexed"), rows("plain"));
        if let (Ok(indexed), Ok(plain)) = (&indexed, &plain) {
            assert_eq!(indexed, plain, "{sort}");
        }
        Verdict::of(&indexed)
    })
}

pub(super) fn expression(data: &[u8]) -> Verdict {
    let expression = Input::new(data).argument(&listed(OperatorKind::Expression.names()));
    with_database(|db| {
        let rows = |collection: &str| {
            let stages = [doc! { "$sort": { "_id": 1 } }, doc! { "$project": { "x": expression.clone() } }];
            shown(db.collection::<Document>(collection).aggregate(stages).collect())
        };
        let (indexed, plain) = (rows("indexed"), rows("plain"));
        if let (Ok(indexed), Ok(plain), true) = (&indexed, &plain, is_constant(&expression.to_string())) {
            assert_eq!(indexed, plain, "{expression}");
        }
        Verdict::of(&indexed)
    })
}

/// Returns a stage, mostly by its grammar, sometimes with any arguments.
fn stage(input: &mut Input<'_>, depth: u8) -> Document {
    let expressions = listed(OperatorKind::Expression.names());
    let (accumulators, windows) = (OperatorKind::Accumulator.names(), OperatorKind::WindowFunction.names());
    let path = |input: &mut Input<'_>| input.choice(&["$a", "$b", "$a.b", "$_id", "$c"], "$a");
    match input.byte() % 17 {
        0 => doc! { "$match": input.document(&listed(OperatorKind::Filter.names()), 2) },
        1 => doc! { "$project": { "x": input.value(&expressions, 2) } },
        2 => doc! { "$set": { "a": input.value(&expressions, 2), "b.x": path(input) } },
        3 => doc! { "$sort": keys(input, &["a", "b", "a.b", "_id"]) },
        4 => doc! { "$limit": 1 + i32::from(input.byte() % 20) },
        5 => doc! { "$skip": i32::from(input.byte() % 20) },
        6 => {
            let name = input.choice(&listed(accumulators), "$sum");
            doc! { "$group": { "_id": path(input), "n": { name: input.value(&expressions, 2) } } }
        }
        7 => doc! { "$unwind": { "path": path(input), "preserveNullAndEmptyArrays": input.byte().is_multiple_of(2) } },
        8 => doc! { "$lookup": { "from": "plain", "localField": "a", "foreignField": "b", "as": "x" } },
        9 if depth < 2 => doc! { "$facet": { "f": [stage(input, depth + 1), stage(input, depth + 1)] } },
        10 => doc! { "$sortByCount": path(input) },
        11 => doc! { "$bucketAuto": { "groupBy": path(input), "buckets": 1 + i32::from(input.byte() % 5) } },
        12 => {
            let name = input.choice(&listed(windows), "$sum");
            let output =
                doc! { "w": { name: input.value(&expressions, 3), "window": { "documents": [-1, "current"] } } };
            doc! { "$setWindowFields": { "partitionBy": path(input), "sortBy": { "_id": 1 }, "output": output } }
        }
        13 => doc! { "$replaceWith": { "$mergeObjects": [{ "x": input.value(&expressions, 2) }, "$$ROOT"] } },
        14 if depth < 2 => doc! { "$unionWith": { "coll": "plain", "pipeline": [stage(input, depth + 1)] } },
        15 => {
            doc! { "$merge": { "into": "new", "whenMatched": input.choice(&["merge", "keepExisting", "fail"], "merge") } }
        }
        _ => {
            let mut names = expressions;
            names.extend(accumulators);
            names.extend([
                "by",
                "from",
                "into",
                "on",
                "as",
                "let",
                "pipeline",
                "output",
                "groupBy",
                "boundaries",
                "path",
            ]);
            doc! { input.choice(&listed(OperatorKind::Stage.names()), "$match"): input.value(&names, 0) }
        }
    }
}

/// Executes a pipeline, in a database of its own if its stages write.
pub(super) fn pipeline(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let pipeline: Vec<Document> = match input.text_list() {
        Some(stages) => stages.iter().filter_map(|stage| stage.as_document().cloned()).collect(),
        None => {
            let count = input.byte() % 3;
            (0..=count).map(|_| stage(&mut input, 0)).collect()
        }
    };
    let writes = pipeline.iter().any(|stage| stage.contains_key("$out") || stage.contains_key("$merge"));
    let run = |db: &slate_core::Database| {
        let aggregate = db.collection::<Document>("indexed").aggregate(pipeline.clone());
        Verdict::of(&aggregate.memory_limit(1 << 20).deadline(std::time::Duration::from_secs(5)).collect())
    };
    if writes { run(&filled()) } else { with_database(run) }
}

/// Creates an index in a transaction that is not committed.
pub(super) fn index(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let keys = keys(&mut input, &["a", "b", "c", "a.b", "b.c.d", "_id", "x", "$**", "a.$**", "$a"]);
    let options = input.byte();
    let mut index = Index::on(keys.clone());
    if options % 2 == 1 {
        index = index.unique();
    }
    if options & 2 > 0 {
        index = index.sparse();
    }
    if options & 4 > 0 {
        index = index.only(input.argument_document(&listed(OperatorKind::Filter.names()), 2));
    }
    with_database(|db| {
        let tx = right(db.begin());
        let c = tx.collection::<Document>("plain");
        let created = c.create_index(index).run();
        if created.is_ok() && !right(c.verify().run()).is_sound() {
            fault(&format!("the index {keys} does not agree with its documents"));
        }
        tx.rollback();
        Verdict::of(&created)
    })
}
