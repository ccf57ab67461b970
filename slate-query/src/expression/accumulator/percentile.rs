//! `$percentile` and `$median`. MongoDB's method `approximate` estimates the percentiles of many values; these are exact.

use super::AccumulatorState;
use crate::{
    Code, Error, Result,
    expression::{Evaluated, Expression, Variables},
    held::Held,
    number::Number,
    raw::{Doc, Value, Writer},
    work,
};

/// Which ranks of the values are computed.
#[derive(Clone, Debug)]
pub(in crate::expression) enum Ranks {
    Median,
    /// Each from 0 to 1.
    Percentiles(Box<[f64]>),
}

/// The values, in the order of the documents.
#[derive(Debug)]
pub(super) struct Percentile {
    values: Vec<f64>,
    ranks: Ranks,
}

impl Percentile {
    pub(super) fn new(ranks: Ranks) -> Self {
        Self { values: Vec::new(), ranks }
    }
}

impl AccumulatorState for Percentile {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.values.extend(number(value));
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.ranks.of(&mut self.values)
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<f64>()
    }
}

/// Returns a value as a number. `None` for NaN and for values of other types, which are ignored.
pub(crate) fn number(value: Option<Value<'_>>) -> Option<f64> {
    value.and_then(Number::of).filter(|number| !number.is_nan()).map(Number::to_f64)
}

impl Ranks {
    /// Returns the result for these values. Sorts them.
    fn of(&self, values: &mut [f64]) -> Evaluated<'static> {
        /// Up to this number of values are sorted without a check whether the call must end: a few milliseconds.
        const AT_ONCE: usize = 1 << 17;
        if values.len() > AT_ONCE {
            work::sort_by(values, f64::total_cmp);
        } else if work::spend(values.len()) {
            values.sort_unstable_by(f64::total_cmp);
        }
        self.at(values.len(), |place| values.get(place).copied())
    }

    /// Returns the result for this number of sorted values.
    pub(super) fn at(&self, count: usize, get: impl Fn(usize) -> Option<f64>) -> Evaluated<'static> {
        let at = |rank: f64| {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rank"
            )]
            let place = (rank * count as f64).ceil().max(1.0) as usize - 1;
            get(place.min(count.saturating_sub(1))).map_or(Evaluated::NULL, Evaluated::double)
        };
        match self {
            Self::Median => at(0.5),
            Self::Percentiles(ranks) => {
                let mut array = Writer::new();
                array.open_array(b"");
                for (place, rank) in ranks.iter().enumerate() {
                    array.append(place.to_string().as_bytes(), at(*rank).or_null());
                }
                array.close();
                let document = array.finish();
                let array = Doc::new(&document).elements().next().map(|element| element.value.to_owned());
                array.map_or(Evaluated::NULL, Evaluated::Owned)
            }
        }
    }

    /// Returns the percentile of the numbers in an array, or of a single number.
    ///
    /// # Errors
    /// As [`Held::add`].
    pub(in crate::expression) fn over(&self, value: Option<Value<'_>>) -> Result<Evaluated<'static>> {
        let array = value.and_then(Value::as_array);
        let _held = Held::of(array.map_or(0, |array| 2 * size_of::<f64>() * array.values().count()))?;
        let mut values: Vec<f64> = match array {
            Some(array) => array.values().filter_map(|value| number(Some(value))).collect(),
            None => number(value).into_iter().collect(),
        };
        Ok(self.of(&mut values))
    }

    /// Parses `p`, the percentiles to compute.
    ///
    /// # Errors
    /// 7750300 to 7750303 unless `p` is an array of numbers from 0 to 1.
    pub(in crate::expression) fn parse(p: Value<'_>) -> Result<Self> {
        let wrong = |code| {
            let message =
                format!("The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {p:?}");
            Error::new(Code(code), message).at("p")
        };
        let array = p.as_array().ok_or_else(|| wrong(7_750_300))?;
        let rank = |value| {
            let rank = Number::of(value).ok_or_else(|| wrong(7_750_302))?.to_f64();
            if (0.0..=1.0).contains(&rank) { Ok(rank) } else { Err(wrong(7_750_303)) }
        };
        let ranks = array.values().map(rank).collect::<Result<Box<[f64]>>>()?;
        if ranks.is_empty() { Err(wrong(7_750_301)) } else { Ok(Self::Percentiles(ranks)) }
    }
}

/// The operands of `$percentile` and `$median`: the input, and `p` unless it is a median.
pub(in crate::expression) struct Operands {
    pub(in crate::expression) input: Expression,
    pub(in crate::expression) ranks: Option<Expression>,
}

impl Operands {
    /// Fails with `FailedToParse` (9) unless the operand is an object, 40414 and 40415 for missing and unknown fields, `BadValue` (2) for an unknown method.
    pub(in crate::expression) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Self> {
        let wrong = || {
            let found = operand.kind().alias();
            Error::new(Code(7_429_703), format!("specification must be an object; found {name} of type {found}"))
        };
        let (mut input, mut ranks, mut has_method) = (None, None, false);
        for element in operand.as_document().ok_or_else(wrong)?.elements() {
            match element.name {
                b"input" => input = Some(Expression::parse(element.value, variables)?),
                b"p" if name == "$percentile" => ranks = Some(Expression::parse(element.value, variables)?),
                b"method" => match element.value.as_str() {
                    Some("approximate") => has_method = true,
                    Some(_) => {
                        let message = "Currently only 'approximate' can be used as percentile 'method'.";
                        return Err(Error::new(Code::BAD_VALUE, message).at("method"));
                    }
                    None => return Err(Error::new(Code::TYPE_MISMATCH, "'method' must be a string").at("method")),
                },
                _ => {
                    let message = format!("BSON field '{name}.{}' is an unknown field.", element.display_name());
                    return Err(Error::new(Code(40_415), message));
                }
            }
        }
        let missing = |field: &str| Error::new(Code(40_414), format!("{name} needs the field '{field}'"));
        if !has_method {
            return Err(missing("method"));
        }
        if name == "$percentile" && ranks.is_none() {
            return Err(missing("p"));
        }
        Ok(Self { input: input.ok_or_else(|| missing("input"))?, ranks })
    }
}
