//! Index bounds in the notation of MongoDB's `explain`: `["[1, 1]", "(5, inf]"]`.

use slate_query::{
    collation,
    interval::{Interval, IntervalSet, Place, Side, above_nan, bracket_interval},
    key::{self, Decoded, TypeReader},
    number::non_finite_name,
    order::Bracket,
    pattern::Direction,
    raw::Value,
};

/// What the strings in index bounds are.
#[derive(Clone, Copy)]
pub(super) enum Strings {
    Plain,
    /// Sort keys of a collation.
    SortKeys,
}

/// An end of an interval: its value, and whether the interval contains it.
struct End {
    text: String,
    is_included: bool,
}

/// The least and the greatest value of each class of types, and whether the greatest belongs to it. The first value of the next class
/// is written where a class has no greatest value.
const CLASSES: [(Bracket, &str, &str, bool); 10] = [
    (Bracket::Number, "nan", "inf", true),
    (Bracket::String, "\"\"", "{}", false),
    (Bracket::Document, "{}", "[]", false),
    (Bracket::Array, "[]", "BinData(0, )", false),
    (Bracket::Binary, "BinData(0, )", "ObjectId('000000000000000000000000')", false),
    (Bracket::ObjectId, "ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')", true),
    (Bracket::Boolean, "false", "true", true),
    (Bracket::Date, "new Date(-9223372036854775808)", "new Date(9223372036854775807)", true),
    (Bracket::Timestamp, "Timestamp(0, 0)", "Timestamp(4294967295, 4294967295)", true),
    (Bracket::Regex, "/(?:)/", "DBRef(\"\", ObjectId('000000000000000000000000'))", false),
];

/// Returns the intervals in the order in which a scan visits them.
pub(super) fn bounds_text(set: &IntervalSet, direction: Direction, strings: Strings) -> Vec<String> {
    let text = |interval: &Interval| {
        let (low, high) = (low(interval, strings), high(interval, strings));
        match direction {
            Direction::Ascending => joined(&low, &high),
            Direction::Descending => joined(&high, &low),
        }
    };
    match direction {
        Direction::Ascending => set.iter().map(text).collect(),
        Direction::Descending => set.iter().rev().map(text).collect(),
    }
}

fn joined(first: &End, last: &End) -> String {
    let (open, close) = (if first.is_included { '[' } else { '(' }, if last.is_included { ']' } else { ')' });
    format!("{open}{}, {}{close}", first.text, last.text)
}

fn low(interval: &Interval, strings: Strings) -> End {
    let place = interval.low();
    if *place == above_nan() {
        return End { text: "-inf".into(), is_included: true };
    }
    if let Some(text) = value(&place.prefix, strings) {
        return End { text, is_included: place.side == Side::Before };
    }
    if let Some(text) = beginning(&place.prefix) {
        return End { text, is_included: true };
    }
    let class = CLASSES.iter().find(|(class, ..)| bracket_interval(*class).low() == place);
    let above = CLASSES.iter().find(|(class, ..)| bracket_interval(*class).high() == place);
    match (class, above) {
        (Some((_, least, ..)), _) => End { text: (*least).into(), is_included: true },
        (None, Some((_, _, greatest, is_in_class))) => End { text: (*greatest).into(), is_included: !is_in_class },
        (None, None) => End { text: "MinKey".into(), is_included: true },
    }
}

fn high(interval: &Interval, strings: Strings) -> End {
    let place = interval.high();
    if let Some(text) = value(&place.prefix, strings) {
        return End { text, is_included: place.side == Side::After };
    }
    if let Some(text) = after_beginning(place) {
        return End { text, is_included: false };
    }
    let class = CLASSES.iter().find(|(class, ..)| bracket_interval(*class).high() == place);
    let below = CLASSES.iter().find(|(class, ..)| bracket_interval(*class).low() == place);
    match (class, below) {
        (Some((_, _, greatest, is_in_class)), _) => End { text: (*greatest).into(), is_included: *is_in_class },
        (None, Some((_, least, ..))) => End { text: (*least).into(), is_included: false },
        (None, None) => End { text: "MaxKey".into(), is_included: true },
    }
}

/// Returns the text before which a bound on strings with a prefix is.
fn beginning(encoded: &[u8]) -> Option<String> {
    super::draw::string_beginning_with(encoded).map(|text| format!("{text:?}"))
}

fn after_beginning(place: &Place) -> Option<String> {
    let text = super::draw::string_beginning_with(&place.prefix)?;
    let text = match place.side {
        Side::Before => text,
        Side::After => super::draw::after_all_with_prefix(text)?,
    };
    Some(format!("{text:?}"))
}

/// Returns the text of a complete encoded value.
fn value(encoded: &[u8], strings: Strings) -> Option<String> {
    let mut rest = encoded;
    match key::decode(&mut rest, Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) if rest.is_empty() => match (strings, value.as_value().string()) {
            (Strings::SortKeys, Some(key)) => Some(format!("CollationKey({})", collation::show_sort_key(key))),
            _ => Some(text(value.as_value())),
        },
        Decoded::Missing if rest.is_empty() => Some("null".into()),
        Decoded::Value(_) | Decoded::Missing => None,
    }
}

fn text(value: Value<'_>) -> String {
    if let Some(id) = value.as_object_id() {
        return format!("ObjectId('{}')", bson::oid::ObjectId::from_bytes(id));
    }
    if let Some(millis) = value.as_millis() {
        return format!("new Date({millis})");
    }
    if let Some(name) = value.as_f64().and_then(non_finite_name) {
        return name.into();
    }
    format!("{value:?}")
}
