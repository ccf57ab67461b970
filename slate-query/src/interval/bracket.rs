use super::{Interval, Place};
use crate::{
    key::{escape, tag},
    order::Bracket,
};

/// Returns the interval of all keys of a type class. Numbers include NaN; see [`above_nan`].
pub fn bracket_interval(bracket: Bracket) -> Interval {
    let (low, high) = tag::of(bracket);
    match bracket {
        Bracket::MinKey | Bracket::Undefined | Bracket::Null | Bracket::MaxKey => Interval::point([low]),
        // A bare tag may be followed by 0xff, so the bounds are at the adjacent bytes, which are not tags.
        _ => Interval::new(Place::after([low - 1]), Place::before([high + 1])),
    }
}

/// Returns the key of NaN.
pub fn nan_interval() -> Interval {
    Interval::point([tag::NAN])
}

/// Returns the lower bound of the numbers other than NaN: above the key of NaN and below that of negative infinity.
pub fn above_nan() -> Place {
    Place::after([tag::NAN])
}

/// Returns the interval of the keys of all strings and symbols that begin with `prefix`.
pub fn prefix_interval(prefix: &[u8]) -> Interval {
    let mut bytes = vec![tag::STRING];
    escape(prefix, &mut bytes);
    Interval::new(Place::before(bytes.clone()), Place::after(bytes))
}
