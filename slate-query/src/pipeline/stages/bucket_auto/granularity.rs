//! Series of preferred numbers, to which the boundaries of buckets are rounded.

use crate::{
    number::{Decimal, Number},
    raw::Value,
};

/// A series of preferred numbers.
#[derive(Clone, Debug)]
pub(super) enum Granularity {
    PowersOfTwo,
    /// Ascending numbers within a power of ten, and their multiples by powers of ten.
    Series(Vec<f64>),
}

/// The Renard numbers and the series 1-2-5.
static RENARD: &[(&str, &[i16])] = &[
    ("1-2-5", &[10, 20, 50]),
    ("R5", &[10, 16, 25, 40, 63]),
    ("R10", &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800]),
    ("R20", &[100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900]),
    // Without 335, as in MongoDB.
    (
        "R40",
        &[
            100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315,
            355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
        ],
    ),
    (
        "R80",
        &[
            103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307, 325,
            345, 365, 387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975,
        ],
    ),
];

/// The E24 series of preferred numbers, of two digits. E12 is every second number of E24 and E6 every fourth.
static E24: &[i16] = &[10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];

impl Granularity {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let every =
            |series: &[i16], step: usize| series.iter().step_by(step).map(|number| f64::from(*number)).collect();
        Some(Self::Series(match name {
            "POWERSOF2" => return Some(Self::PowersOfTwo),
            "E6" => every(E24, 4),
            "E12" => every(E24, 2),
            "E24" => every(E24, 1),
            "E48" => every(&e192(), 4),
            "E96" => every(&e192(), 2),
            "E192" => every(&e192(), 1),
            _ => every(RENARD.iter().find(|(known, _)| *known == name)?.1, 1),
        }))
    }

    /// Returns the least number of the series that is greater than `number`. Zero stays zero.
    pub(super) fn up(&self, number: Number) -> Number {
        if !has_neighbours(number) {
            return number;
        }
        let Self::Series(series) = self else {
            return power_of_two(number, |exponent, _| exponent + 1);
        };
        let (number, [ten, mut scale]) = prepared(number);
        let at = |place: Option<&f64>, scale: Number| like(number, place).times(scale);
        while number >= at(series.last(), scale) {
            scale = scale.times(ten);
        }
        while number < at(series.first(), scale) {
            let least = at(series.first(), scale);
            scale = scale.over(ten);
            if number >= at(series.last(), scale) {
                return least;
            }
        }
        let scaled = series.iter().map(|member| at(Some(member), scale));
        scaled.into_iter().find(|member| *member > number).unwrap_or(number)
    }

    /// Returns the greatest number of the series that is less than `number`. Zero stays zero.
    pub(super) fn down(&self, number: Number) -> Number {
        if !has_neighbours(number) {
            return number;
        }
        let Self::Series(series) = self else {
            return power_of_two(number, |exponent, is_power| if is_power { exponent - 1 } else { exponent });
        };
        let (number, [ten, mut scale]) = prepared(number);
        let at = |place: Option<&f64>, scale: Number| like(number, place).times(scale);
        while number <= at(series.first(), scale) {
            scale = scale.over(ten);
        }
        if scale.to_f64() == 0.0 {
            return scale;
        }
        while number > at(series.last(), scale) {
            let greatest = at(series.last(), scale);
            scale = scale.times(ten);
            if number <= at(series.first(), scale) {
                return greatest;
            }
        }
        let scaled = series.iter().map(|member| at(Some(member), scale));
        scaled.into_iter().take_while(|member| *member < number).last().unwrap_or(number)
    }
}

/// Returns a value as a number that can be rounded.
///
/// # Errors
/// MongoDB's code and what is wrong with the value.
pub(super) fn number(value: Value<'_>) -> Result<Number, (i32, String)> {
    let found = value.kind().alias();
    let number = Number::of(value)
        .ok_or_else(|| (40_258, format!("$bucketAuto can round only numbers by a granularity, but found {found}")))?;
    if number.is_nan() {
        return Err((40_259, "$bucketAuto cannot round NaN by a granularity".into()));
    }
    if number < Number::Int32(0) {
        return Err((40_260, "$bucketAuto cannot round negative numbers by a granularity".into()));
    }
    Ok(number)
}

/// Returns the E192 series by its definition: the powers of the 192nd root of ten, rounded to three digits, except for
/// 920, which the definition would round to 919.
fn e192() -> Vec<i16> {
    let exact = |place: i32| (100.0 * 10_f64.powf(f64::from(place) / 192.0)).round();
    #[expect(clippy::cast_possible_truncation, reason = "below 1,000")]
    let member = |place| if place == 185 { 920 } else { exact(place) as i16 };
    (0..192).map(member).collect()
}

/// Returns whether the number is neither zero nor infinite.
fn has_neighbours(number: Number) -> bool {
    number.is_finite() && number != Number::Int32(0)
}

/// Returns the number as a decimal or a double, and ten and one of the same type.
fn prepared(number: Number) -> (Number, [Number; 2]) {
    match number {
        Number::Decimal(_) => (number, [10, 1].map(|whole| Number::Decimal(Decimal::from(whole)))),
        _ => (Number::Double(number.to_f64()), [10.0, 1.0].map(Number::Double)),
    }
}

/// Converts a member of a series to the type of `number`.
fn like(number: Number, member: Option<&f64>) -> Number {
    let member = member.copied().unwrap_or_default();
    match number {
        Number::Decimal(_) => Number::Decimal(Decimal::exactly(member)),
        _ => Number::Double(member),
    }
}

/// Returns a power of two. `choose` computes its exponent from the number's binary exponent, and from whether the
/// number is a power of two.
fn power_of_two(number: Number, choose: fn(i32, bool) -> i32) -> Number {
    let (exponent, is_power) = match number.to_i64() {
        Some(whole) if !matches!(number, Number::Double(_) | Number::Decimal(_)) => {
            let exponent = i32::try_from(whole.unsigned_abs().ilog2()).unwrap_or_default();
            (exponent, whole.count_ones() == 1)
        }
        _ => {
            let logarithm = number.to_f64().log2();
            // The decimal is beyond the range of doubles.
            if !logarithm.is_finite() {
                return number;
            }
            #[expect(clippy::cast_possible_truncation, reason = "between -1,100 and 1,100")]
            let exponent = logarithm.floor() as i32;
            (exponent, logarithm.fract() == 0.0)
        }
    };
    let exponent = choose(exponent, is_power);
    match (number, u32::try_from(exponent).ok().and_then(|exponent| 1_i64.checked_shl(exponent))) {
        (Number::Decimal(_), _) => Number::Decimal(Decimal::exactly(f64::from(exponent).exp2())),
        (_, Some(whole @ 1..)) => i32::try_from(whole).map_or(Number::Int64(whole), Number::Int32),
        _ => Number::Double(f64::from(exponent).exp2()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str) -> Granularity {
        Granularity::parse(name).unwrap()
    }

    #[test]
    fn numbers_are_rounded_to_their_neighbours_in_the_series() {
        for (name, number, down, up) in [
            ("R5", 10.0, 6.3, 16.0),
            ("R5", 11.0, 10.0, 16.0),
            ("R5", 0.07, 0.063, 0.1),
            ("R20", 1000.0, 900.0, 1120.0),
            ("1-2-5", 3.0, 2.0, 5.0),
            ("E6", 1.0, 0.68, 1.5),
            ("E24", 9.5, 9.1, 10.0),
            ("E48", 100.0, 95.3, 105.0),
            ("E192", 925.0, 920.0, 931.0),
            ("POWERSOF2", 1.0, 0.5, 2.0),
            ("POWERSOF2", 0.3, 0.25, 0.5),
            ("POWERSOF2", 1000.5, 512.0, 1024.0),
            ("R80", 0.0, 0.0, 0.0),
            ("R80", f64::INFINITY, f64::INFINITY, f64::INFINITY),
        ] {
            let close = |a: Number, b: f64| a.to_f64() == b || (a.to_f64() / b - 1.0).abs() < 1e-12;
            let (lower, upper) = (series(name).down(Number::Double(number)), series(name).up(Number::Double(number)));
            assert!(close(lower, down) && close(upper, up), "{name} {number}: {lower:?} {upper:?}");
        }
        assert_eq!(series("POWERSOF2").up(Number::Int64(1 << 40)), Number::Int64(1 << 41));
        assert_eq!(series("POWERSOF2").down(Number::Int32(9)), Number::Int32(8));
        // Below the least normal double.
        for (number, down, up) in [(1e-310, -1030, -1029), (f64::from(-1030_i16).exp2(), -1031, -1029)] {
            assert_eq!(series("POWERSOF2").down(Number::Double(number)), Number::Double(f64::from(down).exp2()));
            assert_eq!(series("POWERSOF2").up(Number::Double(number)), Number::Double(f64::from(up).exp2()));
        }
        assert_eq!(series("POWERSOF2").up(Number::Double(5e-324)), Number::Double(1e-323));
        let tenth = Number::Decimal("0.12".parse().unwrap());
        assert_eq!(series("R10").up(tenth), Number::Decimal("0.125".parse().unwrap()));
    }

    #[test]
    fn extreme_numbers_end_the_search() {
        for name in ["R5", "R80", "E192", "POWERSOF2"] {
            for number in [f64::MIN_POSITIVE, 5e-324, f64::MAX] {
                series(name).down(Number::Double(number));
                series(name).up(Number::Double(number));
            }
            for number in ["1E-6176", "9E+6144"] {
                let number = Number::Decimal(number.parse().unwrap());
                series(name).down(number);
                series(name).up(number);
            }
        }
    }

    #[test]
    fn the_series_are_ascending() {
        for name in ["1-2-5", "R5", "R10", "R20", "R40", "R80", "E6", "E12", "E24", "E48", "E96", "E192"] {
            let Granularity::Series(series) = series(name) else { panic!("{name}") };
            assert!(series.is_sorted_by(|a, b| a < b), "{name}");
        }
        assert!(Granularity::parse("R6").is_none());
    }
}
