//! Windows: the value of a function over a window is that of the accumulator over a group of the same documents.

use bson::{Bson, Document, bson, doc};

use super::{Documents, on_every_store, raw};

const ROWS: i32 = 60;

/// Values of all types, with equal ones of different types, null and missing ones.
fn value(n: i32) -> Option<Bson> {
    let number = n * 7_919 % 101 % 9;
    match n * 31 % 17 % 8 {
        0 => None,
        1 => Some(Bson::Null),
        2 => Some(f64::from(number).into()),
        3 => Some(["b", "B", "a", "ab"][number.unsigned_abs() as usize % 4].into()),
        4 => Some(bson!([number, { "x": "A" }])),
        5 => Some(f64::NAN.into()),
        _ => Some(number.into()),
    }
}

fn functions() -> Document {
    let by = |sort: Document, n: i32| doc! { "output": ["$v", "$_id"], "sortBy": sort, "n": n };
    let ends = |n: i32| doc! { "input": "$v", "n": n };
    doc! {
        "addToSet": { "$addToSet": "$v" },
        "first": { "$first": "$v" },
        "firstN": { "$firstN": ends(3) },
        "last": { "$last": "$v" },
        "lastN": { "$lastN": ends(4) },
        "top": { "$top": { "output": "$_id", "sortBy": { "v": 1 } } },
        "topN": { "$topN": by(doc! { "v": 1, "t": -1 }, 3) },
        "bottom": { "$bottom": { "output": "$_id", "sortBy": { "v": -1 } } },
        "bottomN": { "$bottomN": by(doc! { "v": 1 }, 4) },
        "maxN": { "$maxN": ends(3) },
        "minN": { "$minN": ends(5) },
        "median": { "$median": { "input": "$v", "method": "approximate" } },
        "percentile": { "$percentile": { "input": "$v", "p": [0, 0.25, 0.9, 1], "method": "approximate" } },
        "deviation": { "$stdDevSamp": "$t" },
    }
}

/// The rows of the window of `row`.
fn rows_of(limits: [Option<i32>; 2], row: i32) -> (i32, i32) {
    let [lower, upper] = limits;
    (lower.map_or(0, |lower| (row + lower).max(0)), upper.map_or(ROWS, |upper| (row + upper + 1).min(ROWS)))
}

fn rows(collection: &Documents, stages: Vec<Document>, collated: bool) -> Vec<Document> {
    let aggregate = collection.aggregate(stages);
    let aggregate = if collated { aggregate.collation(doc! { "locale": "en", "strength": 2 }) } else { aggregate };
    aggregate.collect().unwrap()
}

#[test]
fn a_function_over_a_window_has_the_value_of_a_group() {
    on_every_store(|database| {
        let collection: Documents = database.collection("c");
        let documents = (0..ROWS).map(|n| {
            let mut document = doc! { "_id": n, "t": n * 5 % 7 };
            document.extend(value(n).map(|value| ("v".into(), value)));
            raw(&document)
        });
        collection.insert_many(&documents.collect::<Vec<_>>()).run().unwrap();
        let windows = [
            [None, Some(0)],
            [Some(0), None],
            [Some(-7), Some(9)],
            [Some(-1), Some(1)],
            [Some(-9), Some(-4)],
            [Some(5), Some(8)],
        ];
        for (limits, collated) in windows.into_iter().flat_map(|limits| [(limits, false), (limits, true)]) {
            let limit = |limit: Option<i32>| limit.map_or("unbounded".into(), Bson::Int32);
            let over_window = |(name, function): (String, Bson)| {
                let mut function = function.as_document().unwrap().clone();
                function.insert("window", doc! { "documents": [limit(limits[0]), limit(limits[1])] });
                (name, function.into())
            };
            let output: Document = functions().into_iter().map(over_window).collect();
            let stages = vec![
                doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": output } },
                doc! { "$unset": ["_id", "t", "v"] },
            ];
            for (row, over_window) in (0..).zip(rows(&collection, stages, collated)) {
                let (from, to) = rows_of(limits, row);
                let mut group = doc! { "_id": null };
                group.extend(functions());
                let stages = vec![
                    doc! { "$match": { "_id": { "$gte": from, "$lt": to } } },
                    doc! { "$sort": { "_id": 1 } },
                    doc! { "$group": group },
                    doc! { "$unset": "_id" },
                ];
                let group = rows(&collection, stages, collated);
                assert!(group.len() == usize::from(from < to), "{from}..{to}");
                if let [group] = &group[..] {
                    // NaN differs from itself.
                    assert_eq!(
                        format!("{over_window:?}"),
                        format!("{group:?}"),
                        "{limits:?} at {row}, collated: {collated}"
                    );
                } else {
                    assert_eq!(over_window.get_array("topN").unwrap().len(), 0, "{limits:?} at {row}");
                    assert_eq!(over_window.get("median"), Some(&Bson::Null), "{limits:?} at {row}");
                }
            }
        }
    });
}
