use super::{encode::escape, tag};
use crate::{
    interval::{Interval, Place},
    order::Bracket,
};

/// All keys of a type class. Numbers include NaN; see [`above_nan`].
pub fn bracket_interval(bracket: Bracket) -> Interval {
    let (low, high) = tag::of(bracket);
    match bracket {
        Bracket::MinKey | Bracket::Undefined | Bracket::Null | Bracket::MaxKey => Interval::point([low]),
        // What follows a bare tag may be 0xff, so the places are named by its neighbours, which are no tags.
        Bracket::Number
        | Bracket::String
        | Bracket::Document
        | Bracket::Array
        | Bracket::Binary
        | Bracket::ObjectId
        | Bracket::Boolean
        | Bracket::Date
        | Bracket::Timestamp
        | Bracket::Regex
        | Bracket::DbPointer
        | Bracket::Code
        | Bracket::CodeWithScope => Interval::new(Place::after([low - 1]), Place::before([high + 1])),
    }
}

/// The key of NaN.
pub fn nan_interval() -> Interval {
    Interval::point([tag::NAN])
}

/// Where the numbers that are not NaN begin: below the key of negative infinity, above that of NaN.
pub fn above_nan() -> Place {
    Place::after([tag::NAN])
}

/// All keys of strings and symbols that begin with `prefix`.
pub fn prefix_interval(prefix: &[u8]) -> Interval {
    let mut bytes = vec![tag::STRING];
    escape(prefix, &mut bytes);
    Interval::new(Place::before(bytes.clone()), Place::after(bytes))
}
