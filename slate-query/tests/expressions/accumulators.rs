//! Accumulators: over documents, arrays and operands.

use bson::{Bson, Document, bson, doc};
use slate_query::{
    Result,
    expression::{
        Env, Variables,
        accumulator::{AccumulatorSpec, Gathered},
    },
    raw::{Doc, OwnedValue, Value},
};

use super::{check, refused};

#[test]
fn percentiles_are_values_of_the_input() {
    let percentile =
        |input: Bson, p: Bson| bson!({ "$percentile": { "input": input, "p": p, "method": "approximate" } });
    let median = |input: Bson| bson!({ "$median": { "input": input, "method": "approximate" } });
    check(
        doc! { "a": [5, 1, "x", 3.5, null, f64::NAN], "n": 7_i64, "p": [1] },
        &[
            (median("$a".into()), bson!(3.5)),
            (median(bson!([1, 2, 3, 4])), bson!(2.0)),
            (median("$n".into()), bson!(7.0)),
            (median("$none".into()), Bson::Null),
            (percentile("$a".into(), bson!([0, 0.34, 0.99, 1])), bson!([1.0, 3.5, 5.0, 5.0])),
            (percentile("$a".into(), "$p".into()), bson!([5.0])),
            (percentile(bson!([]), bson!([0.5])), bson!([null])),
        ],
    );
    refused(
        doc! {},
        &[
            (percentile(1.into(), bson!(0.5)), 7_750_300),
            (percentile(1.into(), bson!([])), 7_750_301),
            (percentile(1.into(), bson!(["x"])), 7_750_302),
            (percentile(1.into(), bson!([1.5])), 7_750_303),
            (bson!({ "$median": { "input": 1 } }), 40_414),
            (bson!({ "$median": { "input": 1, "method": "exact" } }), 2),
            (bson!({ "$median": { "input": 1, "method": "approximate", "p": [1] } }), 40_415),
        ],
    );
}

/// Accumulates the documents.
fn accumulate(name: &str, operand: &Bson, documents: &[Document]) -> Result<Bson> {
    let operand = OwnedValue::from(operand);
    let accumulator = AccumulatorSpec::parse(name, operand.as_value(), &Variables::default())?;
    let mut gathered = Gathered::default();
    for document in documents {
        let bytes = document.to_vec().unwrap();
        accumulator.add(&mut gathered, Value::NULL, &Env::new(Doc::new(&bytes), 0), 1)?;
    }
    Ok(accumulator.finish(&mut gathered).as_value().unwrap().to_bson().unwrap())
}

#[test]
fn accumulators_gather_values_of_documents() {
    let documents = [
        doc! { "a": 3, "s": "x", "l": [1] },
        doc! { "a": null },
        doc! { "a": 1.5, "s": "y", "l": [2, 1] },
        doc! { "a": 3_i64, "s": "x" },
    ];
    for (name, operand, expected) in [
        ("$sum", bson!("$a"), bson!(7.5)),
        ("$avg", bson!("$a"), bson!(2.5)),
        ("$min", bson!("$a"), bson!(1.5)),
        ("$max", bson!("$a"), bson!(3)),
        ("$first", bson!("$s"), bson!("x")),
        ("$last", bson!("$s"), bson!("x")),
        ("$push", bson!("$s"), bson!(["x", "y", "x"])),
        ("$addToSet", bson!("$a"), bson!([3, null, 1.5])),
        ("$count", bson!({}), bson!(4)),
        ("$firstN", bson!({ "input": "$s", "n": 2 }), bson!(["x", null])),
        ("$lastN", bson!({ "input": "$s", "n": 2 }), bson!(["y", "x"])),
        ("$minN", bson!({ "input": "$a", "n": 2 }), bson!([1.5, 3])),
        ("$maxN", bson!({ "input": "$a", "n": 9 }), bson!([3, 3_i64, 1.5])),
        ("$top", bson!({ "output": "$a", "sortBy": { "a": -1 } }), bson!(3)),
        ("$bottomN", bson!({ "output": "$s", "sortBy": { "a": 1 }, "n": 2 }), bson!(["x", "x"])),
        ("$mergeObjects", bson!({ "s": "$s" }), bson!({ "s": "x" })),
        ("$concatArrays", bson!("$l"), bson!([1, 2, 1])),
        ("$setUnion", bson!("$l"), bson!([1, 2])),
    ] {
        assert_eq!(accumulate(name, &operand, &documents).unwrap(), expected, "{name}");
    }
    for (name, operand, expected) in [
        ("$sum", bson!("$a"), bson!(0)),
        ("$avg", bson!("$a"), Bson::Null),
        ("$stdDevSamp", bson!("$a"), Bson::Null),
        ("$push", bson!("$a"), bson!([])),
        ("$top", bson!({ "output": "$a", "sortBy": { "a": 1 } }), Bson::Null),
    ] {
        assert_eq!(accumulate(name, &operand, &[]).unwrap(), expected, "{name} of nothing");
    }
    let numbers: Vec<_> = [2, 4, 4, 4, 5, 5, 7, 9].iter().map(|n| doc! { "a": n }).collect();
    assert_eq!(accumulate("$stdDevPop", &bson!("$a"), &numbers).unwrap(), bson!(2.0));
    for (name, operand, code) in [
        ("$none", bson!(1), 15952),
        ("$sum", bson!([1, 2]), 40237),
        ("$firstN", bson!({ "input": 1, "n": 0 }), 7_548_606),
        ("$mergeObjects", bson!("$s"), 5_911_200),
    ] {
        assert_eq!(accumulate(name, &operand, &documents).unwrap_err().code().0, code, "{name}");
    }
}

#[test]
fn accumulators_are_also_expressions() {
    check(
        doc! { "a": [1, 2.5, "x"], "b": 4 },
        &[
            (bson!({ "$sum": "$a" }), bson!(3.5)),
            (bson!({ "$sum": ["$a", "$b"] }), bson!(4)),
            (bson!({ "$avg": ["$b", 2] }), bson!(3.0)),
            (bson!({ "$max": "$a" }), bson!("x")),
            (bson!({ "$min": ["$b", "$none"] }), bson!(4)),
            (bson!({ "$firstN": { "input": "$a", "n": 1 } }), bson!([1])),
            (bson!({ "$maxN": { "input": "$a", "n": 2 } }), bson!(["x", 2.5])),
        ],
    );
}
