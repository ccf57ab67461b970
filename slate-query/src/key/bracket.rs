use super::{encode::escape, tag};
use crate::{
    interval::{Interval, Place},
    order::Bracket,
};

/// All keys of a type class. Numbers include NaN; see [`above_nan`].
pub fn bracket_interval(bracket: Bracket) -> Interval {
    let (low, high) = tag::of(bracket);
    Interval::new(Place::before([low]), Place::after([high]))
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
