use std::{cmp::Ordering, ops::Range};

use super::{
    output,
    tree::{Action, Branch},
};
use crate::{
    Code, Error, Result,
    named_list::NamedList,
    number::{Decimal, Number, Sign},
    raw::{Doc, Kind, Value},
};

/// The `$slice` of a projection: a range of an array's elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slice {
    /// The number of elements from the start, or from the end if negative.
    Ends(i32),
    /// `limit` elements after the first `skip`. A negative `skip` counts from the end.
    Middle { skip: i32, limit: i32 },
}

impl Slice {
    /// Parses the operand of `$slice`: a number, or `[skip, limit]`.
    ///
    /// # Errors
    /// 31272, 31273, 31257, 31258 and 31259 for anything else, which callers may parse as an expression.
    pub(super) fn parse(argument: Value<'_>) -> Result<Self> {
        if let Some(number) = Number::of(argument) {
            return Ok(Self::Ends(clamp(number)));
        }
        let Some(array) = argument.as_array() else {
            return Err(Error::new(Code(31273), "$slice takes a number or an array [skip, limit]"));
        };
        let mut values = array.values();
        let (Some(skip), Some(limit), None) = (values.next(), values.next(), values.next()) else {
            return Err(Error::new(Code(31272), "$slice takes an array of the form [skip, limit]"));
        };
        let skip = Number::of(skip).ok_or_else(|| Error::new(Code(31257), "$slice's skip must be a number"))?;
        let limit = Number::of(limit).ok_or_else(|| Error::new(Code(31258), "$slice's limit must be a number"))?;
        match (clamp(skip), clamp(limit)) {
            (skip, limit @ 1..) => Ok(Self::Middle { skip, limit }),
            (_, limit) => Err(Error::new(Code(31259), format!("$slice's limit must be positive, not {limit}"))),
        }
    }

    /// Returns the range of positions shown of an array of `length` elements.
    fn range(self, length: usize) -> Range<usize> {
        let (start, count) = match self {
            Self::Ends(limit @ 0..) => (0, size(limit)),
            Self::Ends(limit) => (length.saturating_sub(size(limit)), length),
            Self::Middle { skip: skip @ 0.., limit } => (size(skip), size(limit)),
            Self::Middle { skip, limit } => (length.saturating_sub(size(skip)), size(limit)),
        };
        start.min(length)..start.saturating_add(count).min(length)
    }

    fn apply(self, name: &[u8], array: Doc<'_>, out: &mut Vec<u8>) {
        let shown = self.range(array.values().count());
        output::array(out, name, array.values().skip(shown.start).take(shown.len()));
    }
}

/// The arrays that a projection slices, by the fields that lead to them.
#[derive(Debug, Default)]
pub(super) struct Slices(NamedList<Box<str>, Sliced>);

#[derive(Debug)]
enum Sliced {
    Array(Slice),
    Within(Slices),
}

impl Slices {
    pub(super) fn of(branch: &Branch) -> Self {
        let mut slices = NamedList::default();
        for (name, action) in branch.fields.iter() {
            let sliced = match action {
                Action::Slice(slice) => Some(Sliced::Array(*slice)),
                Action::Within(branch) => {
                    Some(Self::of(branch)).filter(|slices| !slices.is_empty()).map(Sliced::Within)
                }
                Action::Include | Action::Exclude | Action::ElemMatch(_) | Action::Positional | Action::Computed(_) => {
                    None
                }
            };
            if let Some(sliced) = sliced {
                slices.push(name.clone(), sliced);
            }
        }
        Self(slices)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes `doc` with its arrays sliced. Descends into documents within arrays, not into nested arrays.
    pub(super) fn apply(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        let start = output::open(out);
        let mut is_sliced = vec![false; self.0.len()];
        for (element, bytes) in output::fields(doc) {
            let place = self.0.place(element.name);
            // If the field is repeated, the path refers to the first one.
            let place = place
                .filter(|place| is_sliced.get_mut(*place).is_some_and(|is_sliced| !std::mem::replace(is_sliced, true)));
            let sliced = place.and_then(|place| self.0.as_slice().get(place)).map(|(_, sliced)| sliced);
            match (sliced, element.value.as_array(), element.value.as_document()) {
                (Some(Sliced::Array(slice)), Some(array), _) => slice.apply(element.name, array, out),
                (Some(Sliced::Within(slices)), Some(array), _) => slices.elements(element.name, array, out),
                (Some(Sliced::Within(slices)), _, Some(document)) => {
                    output::head(out, Kind::Document, element.name);
                    slices.apply(document, out);
                }
                _ => out.extend_from_slice(bytes),
            }
        }
        output::close(out, start);
    }

    fn elements(&self, name: &[u8], array: Doc<'_>, out: &mut Vec<u8>) {
        output::head(out, Kind::Array, name);
        let start = output::open(out);
        for (element, bytes) in output::fields(array) {
            match element.value.as_document() {
                Some(document) => {
                    output::head(out, Kind::Document, element.name);
                    self.apply(document, out);
                }
                None => out.extend_from_slice(bytes),
            }
        }
        output::close(out, start);
    }
}

fn size(number: i32) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)
}

/// Returns the nearest int32 by MongoDB's rules for `$slice`: doubles are truncated, decimals rounded half to even, NaN
/// is zero.
fn clamp(number: Number) -> i32 {
    if number.is_nan() {
        return 0;
    }
    let whole = match number.to_i64_truncating() {
        Some(whole) => whole,
        None if number.signum() == Ordering::Less => i64::MIN,
        None => i64::MAX,
    };
    let rounded = match number {
        Number::Decimal(decimal) => whole.saturating_add(rounding(whole, decimal)),
        Number::Int32(_) | Number::Int64(_) | Number::Double(_) => whole,
    };
    i32::try_from(rounded).unwrap_or(if rounded < 0 { i32::MIN } else { i32::MAX })
}

/// Returns the difference between a decimal's integer part and its value rounded half to even.
fn rounding(whole: i64, decimal: Decimal) -> i64 {
    let (sign, away) = match Number::Decimal(decimal).signum() {
        Ordering::Less => (Sign::Negative, -1),
        Ordering::Equal | Ordering::Greater => (Sign::Positive, 1),
    };
    let half = Number::Decimal(Decimal::rounded(sign, u128::from(whole.unsigned_abs()) * 10 + 5, -1));
    match (Number::Decimal(decimal).cmp(&half), sign) {
        (Ordering::Equal, _) => away * (whole & 1),
        (Ordering::Greater, Sign::Positive) | (Ordering::Less, Sign::Negative) => away,
        (Ordering::Greater, Sign::Negative) | (Ordering::Less, Sign::Positive) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_count_from_the_front_or_the_back() {
        assert_eq!(Slice::Ends(2).range(3), 0..2);
        assert_eq!(Slice::Ends(5).range(3), 0..3);
        assert_eq!(Slice::Ends(-2).range(3), 1..3);
        assert_eq!(Slice::Ends(i32::MIN).range(3), 0..3);
        assert_eq!(Slice::Ends(0).range(3), 0..0);
    }

    #[test]
    fn a_negative_skip_counts_from_the_end_and_stops_at_the_front() {
        assert_eq!(Slice::Middle { skip: 1, limit: 5 }.range(3), 1..3);
        assert_eq!(Slice::Middle { skip: 9, limit: 5 }.range(3), 3..3);
        assert_eq!(Slice::Middle { skip: -2, limit: 1 }.range(3), 1..2);
        assert_eq!(Slice::Middle { skip: -9, limit: 2 }.range(3), 0..2);
    }

    #[test]
    fn numbers_are_read_as_the_nearest_int32() {
        assert_eq!(clamp(Number::Double(1.9)), 1);
        assert_eq!(clamp(Number::Double(-1.9)), -1);
        assert_eq!(clamp(Number::Double(f64::NAN)), 0);
        assert_eq!(clamp(Number::Double(f64::NEG_INFINITY)), i32::MIN);
        assert_eq!(clamp(Number::Int64(i64::MAX)), i32::MAX);
        let decimal = |text: &str| clamp(Number::Decimal(text.parse().unwrap()));
        assert_eq!(["0.5", "1.5", "2.5", "2.6", "-1.5", "-2.4", "1E400"].map(decimal), [0, 2, 2, 3, -2, -2, i32::MAX]);
    }
}
