//! The digits, exponents and types of results that are computed with decimals.

use super::{check, decimal, doc, refused};
use bson::{Bson, DateTime, bson};

#[test]
fn sums_and_differences_have_the_lesser_exponent() {
    check(
        doc! {},
        &[
            (bson!({ "$add": [decimal("1.50"), decimal("-1.5")] }), decimal("0.00")),
            (bson!({ "$add": [decimal("1E+3"), decimal("-1E+3")] }), decimal("0")),
            (bson!({ "$add": [decimal("-0.00"), 0] }), decimal("0.00")),
            (bson!({ "$add": [decimal("1E+3")] }), decimal("1000")),
            (bson!({ "$subtract": [decimal("1.50"), decimal("1.5")] }), decimal("0.00")),
            (bson!({ "$subtract": [decimal("1E+3"), decimal("1E+3")] }), decimal("0E+3")),
            (bson!({ "$sum": [decimal("0E-5"), decimal("0E+3")] }), decimal("0.00000")),
            (bson!({ "$sum": [decimal("0E+3")] }), decimal("0")),
            (bson!({ "$avg": [decimal("0.00"), decimal("0.0")] }), decimal("0.00")),
            (bson!({ "$multiply": [decimal("0.0"), decimal("0.00")] }), decimal("0.000")),
            (bson!({ "$divide": [decimal("0.00"), decimal("5")] }), decimal("0.00")),
            (bson!({ "$mod": [decimal("6.0"), decimal("3")] }), decimal("0.0")),
        ],
    );
}

#[test]
fn sums_of_mixed_types() {
    check(
        doc! {},
        &[
            // A double is converted with 15 digits by an expression, and exactly by an accumulator.
            (bson!({ "$add": [1.5, decimal("2.5")] }), decimal("4.00000000000000")),
            (bson!({ "$add": [0.1, decimal("1")] }), decimal("1.100000000000000")),
            (bson!({ "$add": [decimal("1"), 0.1, 0.2] }), decimal("1.300000000000000")),
            (bson!({ "$sum": [0.1, decimal("1")] }), decimal("1.100000000000000005551115123125783")),
            (bson!({ "$sum": [1e16, 1.0, decimal("0")] }), decimal("10000000000000001")),
            // Doubles are added from the first to the last.
            (bson!({ "$add": [0.1, 0.2, 0.3] }), bson!(0.1 + 0.2 + 0.3)),
            (bson!({ "$add": [1e100, 1, -1e100] }), bson!(0.0)),
            (bson!({ "$sum": [1e100, 1, -1e100] }), bson!(1.0)),
            (bson!({ "$add": [i32::MAX, 1, -1] }), bson!(i32::MAX)),
            (bson!({ "$add": [i32::MAX, 1] }), bson!(2_147_483_648_i64)),
            (bson!({ "$add": [i64::MAX, 1, -1] }), bson!(9_223_372_036_854_775_807.0)),
            (bson!({ "$add": [DateTime::from_millis(10), 0.5, 0.5] }), Bson::from(DateTime::from_millis(12))),
            (bson!({ "$add": [0.5, 0.5, DateTime::from_millis(10)] }), Bson::from(DateTime::from_millis(11))),
        ],
    );
}

#[test]
fn logarithms_have_the_digits_of_intels_library() {
    check(
        doc! { "nan": decimal("NaN") },
        &[
            // In 34 digits the nearest decimal ends in 5.
            (bson!({ "$ln": decimal("0.44516467335674429926") }), decimal("-0.8093110127813657567511670128460534")),
            (bson!({ "$ln": decimal("1.000") }), decimal("0")),
            (bson!({ "$ln": decimal("1E-6176") }), decimal("-14220.76553433122614449511522413063")),
            (bson!({ "$log10": decimal("80.02") }), decimal("1.903198547042978365517189778558356")),
            (bson!({ "$log10": decimal("1000") }), decimal("3")),
            (bson!({ "$log": [decimal("1000"), 10] }), decimal("3.000000000000000000000000000000000")),
            (bson!({ "$exp": decimal("85.63276100") }), decimal("1.548230334848345856396232944884240E+37")),
            (bson!({ "$exp": decimal("0.00") }), decimal("1")),
            (bson!({ "$exp": "$nan" }), decimal("NaN")),
            (bson!({ "$sqrt": "$nan" }), decimal("NaN")),
            (bson!({ "$sigmoid": decimal("1") }), decimal("0.7310585786300048792511592418218362")),
            (bson!({ "$sigmoid": decimal("-Infinity") }), decimal("0E-6176")),
            (bson!({ "$sigmoid": decimal("Infinity") }), decimal("1")),
        ],
    );
    // The logarithm of NaN is a double.
    for expression in [
        bson!({ "$type": { "$ln": "$nan" } }),
        bson!({ "$type": { "$log10": "$nan" } }),
        bson!({ "$type": { "$log": ["$nan", 2] } }),
        bson!({ "$type": { "$log": [decimal("2"), "$nan"] } }),
    ] {
        check(doc! { "nan": decimal("NaN") }, &[(expression, bson!("double"))]);
    }
    refused(doc! {}, &[(bson!({ "$ln": decimal("0.0") }), 28766), (bson!({ "$ln": decimal("-Infinity") }), 28766)]);
}

#[test]
fn powers_have_34_digits() {
    let greatest = || decimal("9.999999999999999999999999999999999E+6144");
    check(
        doc! {},
        &[
            (bson!({ "$pow": [decimal("1.5"), 2] }), decimal("2.250000000000000000000000000000000")),
            (bson!({ "$pow": [decimal("10"), decimal("20")] }), decimal("100000000000000000000.0000000000000")),
            (bson!({ "$pow": [decimal("0"), 2] }), decimal("0E-6176")),
            (bson!({ "$pow": [decimal("-0.0"), 3] }), decimal("0E-6176")),
            (bson!({ "$pow": [0, decimal("0")] }), decimal("1.000000000000000000000000000000000")),
            (bson!({ "$pow": [decimal("NaN"), 0] }), decimal("1.000000000000000000000000000000000")),
            (bson!({ "$pow": [decimal("-8"), 0.5] }), decimal("NaN")),
            (bson!({ "$pow": [decimal("-Infinity"), 3] }), decimal("-Infinity")),
            (bson!({ "$pow": [decimal("0.5"), decimal("Infinity")] }), decimal("0E-6176")),
            (bson!({ "$pow": [greatest(), 1] }), decimal("Infinity")),
            (bson!({ "$pow": [greatest(), 2] }), decimal("Infinity")),
        ],
    );
}

#[test]
fn rounding_appends_zeros() {
    check(
        doc! {},
        &[
            (bson!({ "$round": [decimal("1.5"), 3] }), decimal("1.500")),
            (bson!({ "$round": [decimal("1E+3"), 2] }), decimal("1000.00")),
            (bson!({ "$round": [decimal("5E+5"), -2] }), decimal("5.000E+5")),
            (bson!({ "$round": [decimal("1E+40"), 0] }), decimal("1.000000000000000000000000000000000E+40")),
            (bson!({ "$trunc": [decimal("1.5"), 40] }), decimal("1.500000000000000000000000000000000")),
            (bson!({ "$round": [decimal("0E+3"), 2] }), decimal("0.00")),
            (bson!({ "$trunc": [decimal("-0.9")] }), decimal("-0")),
            (bson!({ "$round": [decimal("49"), -2] }), decimal("0E+2")),
            (bson!({ "$round": [decimal("-Infinity"), 1] }), decimal("-Infinity")),
            (bson!({ "$ceil": decimal("-0.5") }), decimal("-0")),
            (bson!({ "$floor": decimal("1E+40") }), decimal("NaN")),
            (bson!({ "$abs": decimal("-1.50") }), decimal("1.50")),
        ],
    );
}
