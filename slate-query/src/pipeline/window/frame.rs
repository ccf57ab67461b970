//! The window of a document: a range of the documents of its partition.

use std::{cmp::Ordering, ops::Range};

use super::Partition;
use crate::{
    Code, Error, Result,
    expression::{DateUnit, Evaluated, Expression, Variables},
    number::Number,
    order,
    raw::{Doc, Kind, Value},
    sort::Sort,
};

/// The documents of a window, relative to the current one.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// All documents of the partition.
    All,
    /// From this many documents before or after the current one to this many.
    Documents(Limit<i64>, Limit<i64>),
    /// The documents whose sort value is between that of the current one plus the first limit and plus the second. With a unit, the limits are
    /// multiples of it.
    Range(Limit<Number>, Limit<Number>, Option<DateUnit>),
}

/// An end of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit<T> {
    Unbounded,
    /// The current document alone, also in a range. The limit 0 of a range includes all documents with an equal sort
    /// value.
    Current,
    At(T),
}

impl<T: PartialOrd> Limit<T> {
    fn is_at_most(&self, place: T) -> bool {
        !matches!(self, Self::At(limit) if *limit > place)
    }

    fn is_at_least(&self, place: T) -> bool {
        !matches!(self, Self::At(limit) if *limit < place)
    }
}

impl Frame {
    /// Returns whether the window has a lower end that moves, so that documents leave it.
    pub(super) fn slides(&self) -> bool {
        match self {
            Self::All => false,
            Self::Documents(lower, _) => *lower != Limit::Unbounded,
            Self::Range(lower, ..) => *lower != Limit::Unbounded,
        }
    }

    /// Returns whether the window is the whole partition. False for every range of values.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::All | Self::Documents(Limit::Unbounded, Limit::Unbounded))
    }

    /// Returns whether enough of the partition was read to know the window of the document at `row`.
    ///
    /// # Errors
    /// The errors of [`Frames::next`].
    pub(super) fn is_reached(&self, partition: &Partition, row: usize) -> Result<bool> {
        let documents = partition.len();
        if documents <= row {
            return Ok(false);
        }
        Ok(match self {
            Self::All | Self::Documents(_, Limit::Unbounded) => false,
            Self::Documents(_, Limit::Current) => true,
            Self::Documents(_, Limit::At(by)) => {
                let by = usize::try_from((*by).max(0)).unwrap_or(usize::MAX);
                row.saturating_add(by) < documents
            }
            Self::Range(_, Limit::Current, _) => true,
            Self::Range(_, upper, unit) => match limit_value(partition, row, upper, *unit)? {
                Some(greatest) => compare(partition, documents - 1, &greatest) == Ordering::Greater,
                None => false,
            },
        })
    }

    /// Returns whether the window of every document contains the document itself.
    pub(super) fn contains_current(&self) -> bool {
        match self {
            Self::All => true,
            Self::Documents(lower, upper) => lower.is_at_most(0) && upper.is_at_least(0),
            Self::Range(lower, upper, _) => {
                let zero = Number::Int32(0);
                lower.is_at_most(zero) && upper.is_at_least(zero)
            }
        }
    }

    /// Returns whether the window is the documents of the partition up to the current one.
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Documents(Limit::Unbounded, Limit::Current | Limit::At(0)))
    }

    /// Parses `{documents: [lower, upper]}` or `{range: [lower, upper], unit: …}`.
    pub(super) fn parse(window: Value<'_>, sort: Option<&Sort>, variables: &Variables) -> Result<Self> {
        let refused = |message: &str| Error::new(Code::FAILED_TO_PARSE, message).at("window");
        let window = window.as_document();
        let window = window.ok_or_else(|| refused("'window' field must be an object"))?;
        let (mut documents, mut range, mut unit) = (None, None, None);
        for element in window.elements() {
            match element.name {
                b"documents" => documents = Some(element.value),
                b"range" => range = Some(element.value),
                b"unit" => unit = Some(element.value),
                _ => return Err(refused("'window' field can only contain 'documents', 'range' and 'unit'")),
            }
        }
        match (documents, range) {
            (Some(_), Some(_)) => Err(refused("'window' field can have only one of 'documents' and 'range'")),
            (Some(_), None) if unit.is_some() => Err(refused("'unit' is only valid with 'range'")),
            (Some(limits), None) => {
                let (lower, upper) = limits_of(limits, variables, 0, whole)?;
                let frame = Self::Documents(lower, upper);
                if sort.is_none() && !frame.is_whole() {
                    return Err(Error::new(Code(5_339_901), "'documents' needs a sortBy, unless it is unbounded"));
                }
                Ok(frame)
            }
            (None, Some(limits)) => {
                let unit = unit.map(|unit| DateUnit::named(unit.as_str().unwrap_or_default())).transpose()?;
                let is_allowed = |number: &Number| unit.is_none() || whole(*number).is_some();
                let zero = Number::Int32(0);
                let (lower, upper) = limits_of(limits, variables, zero, |number| Some(number).filter(is_allowed))?;
                match sort.map(Sort::fields) {
                    Some([(_, crate::key::Direction::Ascending)]) => Ok(Self::Range(lower, upper, unit)),
                    Some([_]) => Err(Error::new(Code(8_947_401), "'range' needs a sortBy in ascending order")),
                    _ => Err(Error::new(Code(5_339_902), "'range' needs a sortBy of exactly one field")),
                }
            }
            (None, None) => match unit {
                Some(_) => Err(refused("'unit' is only valid with 'range'")),
                None => Ok(Self::All),
            },
        }
    }
}

/// Returns a number as an integer; `None` if it is not whole or beyond int32.
fn whole(number: Number) -> Option<i64> {
    number.to_i64().filter(|number| i32::try_from(*number).is_ok())
}

/// Parses the two ends of a window. A number may be a constant expression. `zero` is the place of the current document.
fn limits_of<T: PartialOrd + Copy>(
    limits: Value<'_>,
    variables: &Variables,
    zero: T,
    number: impl Fn(Number) -> Option<T>,
) -> Result<(Limit<T>, Limit<T>)> {
    let refused = |message: &str| Error::new(Code::FAILED_TO_PARSE, message).at("window");
    let mut values = limits.as_array().into_iter().flat_map(Doc::values);
    let (Some(lower), Some(upper), None) = (values.next(), values.next(), values.next()) else {
        return Err(refused("window bounds must be a 2-element array"));
    };
    let not_a_number = || refused("window bounds must be 'unbounded', 'current' or a number");
    let limit = |value: Value<'_>| match value.as_str() {
        Some("unbounded") => Ok(Limit::Unbounded),
        Some("current") => Ok(Limit::Current),
        Some(_) => Err(not_a_number()),
        None => {
            let expression = Expression::parse(value, variables)?;
            let constant = expression.as_constant().ok_or_else(|| refused("window bounds must be constant"))?;
            let limit = constant.as_value().and_then(Number::of).and_then(&number);
            limit.map(Limit::At).ok_or_else(not_a_number)
        }
    };
    let (lower, upper) = (limit(lower)?, limit(upper)?);
    let place = |limit: &Limit<T>| match limit {
        Limit::Unbounded => None,
        Limit::Current => Some(zero),
        Limit::At(place) => Some(*place),
    };
    if let (Some(lower), Some(upper)) = (place(&lower), place(&upper))
        && lower > upper
    {
        return Err(Error::new(Code(5_339_900), "the lower bound of a window must not exceed its upper bound"));
    }
    Ok((lower, upper))
}

/// The windows of the documents of a partition, one after the other.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The window of the previous document. Both ends only move forward.
    range: Range<usize>,
}

impl Frames {
    /// Returns the last window.
    pub(super) fn last(&self) -> &Range<usize> {
        &self.range
    }

    /// Returns the window of the document at `row`, in a partition that is complete or [contains
    /// it](Frame::is_reached).
    pub(super) fn next(&mut self, frame: &Frame, partition: &Partition, row: usize) -> Result<Range<usize>> {
        let rows = partition.len();
        let moved = |by: i64| {
            let by_abs = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
            if by < 0 { row.checked_sub(by_abs) } else { Some(row.saturating_add(by_abs)) }
        };
        self.range = match frame {
            Frame::All => 0..rows,
            Frame::Documents(lower, upper) => {
                let lower = match lower {
                    Limit::Unbounded => 0,
                    Limit::Current => row,
                    Limit::At(by) => moved(*by).unwrap_or(0),
                };
                let upper = match upper {
                    Limit::Unbounded => rows,
                    Limit::Current => row + 1,
                    Limit::At(by) => moved(*by).map_or(0, |last| last.saturating_add(1)),
                };
                lower.min(rows)..upper.clamp(lower.min(rows), rows)
            }
            Frame::Range(lower, upper, unit) => {
                let Range { start: mut from, end: mut to } = self.range.clone();
                match limit_value(partition, row, lower, *unit)? {
                    _ if *lower == Limit::Current => from = row,
                    Some(least) => {
                        while from < rows && compare(partition, from, &least) == Ordering::Less {
                            from += 1;
                        }
                    }
                    None => {}
                }
                match limit_value(partition, row, upper, *unit)? {
                    _ if *upper == Limit::Current => to = row + 1,
                    Some(greatest) => {
                        while to < rows && compare(partition, to, &greatest) != Ordering::Greater {
                            to += 1;
                        }
                    }
                    None => to = rows,
                }
                from.min(to)..to
            }
        };
        Ok(self.range.clone())
    }
}

/// Returns the value at an end of a range; `None` if it is unbounded. Fails if the sort value of `row` is not a number or,
/// with a unit, not a date.
fn limit_value(
    partition: &Partition,
    row: usize,
    limit: &Limit<Number>,
    unit: Option<DateUnit>,
) -> Result<Option<Evaluated<'static>>> {
    let value = partition.sort_value(row);
    let kind = value.map_or("missing", |value| value.kind().alias());
    match unit {
        None => {
            let number = value.and_then(Number::of).ok_or_else(|| {
                Error::new(Code(5_429_414), format!("a range needs a sortBy field that is a number, not {kind}"))
            })?;
            Ok(match limit {
                Limit::Unbounded => None,
                Limit::Current => Some(number.into()),
                Limit::At(by) => Some(number.plus(*by).into()),
            })
        }
        Some(unit) => {
            let date = value.filter(|value| value.kind() == Kind::DateTime).and_then(Value::as_millis);
            let date = date.ok_or_else(|| {
                Error::new(
                    Code(5_429_513),
                    format!("a range with a unit needs a sortBy field that is a date, not {kind}"),
                )
            })?;
            let moved = match limit {
                Limit::Unbounded => return Ok(None),
                Limit::Current => date,
                Limit::At(by) => unit.added_in_utc(date, by.to_i64().unwrap_or_default())?,
            };
            Ok(Some(Evaluated::date(moved)))
        }
    }
}

fn compare(partition: &Partition, row: usize, with: &Evaluated<'_>) -> Ordering {
    let null = Value::NULL;
    order::compare(partition.sort_value(row).unwrap_or(null), with.as_value().unwrap_or(null))
}
