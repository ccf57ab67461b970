//! Index bounds in two notations: that of drawn plans, `[1] ∪ (5, ∞)`, and that of MongoDB's `explain`, `["[1, 1]", "(5, inf]"]`.

use slate_query::{
    collation,
    interval::{Interval, IntervalSet, Place, Side, above_nan, bracket_interval},
    key::{self, Decoded, TypeReader},
    number::non_finite_name,
    order::Bracket,
    pattern::Direction,
    raw::Value,
};

use super::shown_text::{MAX_SHOWN, shown_text};
use crate::catalog::IndexInfo;

/// Whether the strings in index bounds are plain or sort keys.
#[derive(Clone, Copy)]
pub(super) enum Strings {
    Plain,
    /// Sort keys of a collation.
    SortKeys,
}

impl Strings {
    pub(super) fn of(index: &IndexInfo) -> Self {
        if index.collation.is_some() { Self::SortKeys } else { Self::Plain }
    }
}

/// Maximum number of intervals of a set that are drawn: a list of values can have thousands.
const MAX_DRAWN: usize = 8;

/// Draws bounds on the path of a wildcard index's entries: one path, or a path and the paths below it.
pub(super) fn drawn_paths(set: &IntervalSet) -> String {
    let below = if set.len() > 1 { " and below" } else { "" };
    set.iter().next().map_or_else(String::new, |first| drawn_interval(first, Strings::Plain) + below)
}

/// Draws up to [`MAX_DRAWN`] intervals, and the number of further ones.
pub(super) fn drawn(set: &IntervalSet, strings: Strings) -> String {
    if set.is_empty() {
        return "nothing".into();
    }
    let mut drawn: Vec<String> = set.iter().take(MAX_DRAWN).map(|interval| drawn_interval(interval, strings)).collect();
    if set.len() > MAX_DRAWN {
        drawn.push(format!("… {} more", set.len() - MAX_DRAWN));
    }
    drawn.join(" ∪ ")
}

fn drawn_interval(interval: &Interval, strings: Strings) -> String {
    if let Some(point) = interval.as_point().and_then(|point| drawn_value(point, strings)) {
        return format!("[{point}]");
    }
    let is_whole = |(class, _): &&(Bracket, &str)| bracket_interval(*class) == *interval;
    if let Some((_, name)) = CLASS_NAMES.iter().find(is_whole) {
        return format!("all {name}");
    }
    let (low, high) =
        (place(interval.low(), IntervalEnd::Low, strings), place(interval.high(), IntervalEnd::High, strings));
    format!("{low}, {high}")
}

/// The classes of types with more than one value, as they are drawn.
const CLASS_NAMES: [(Bracket, &str); 13] = [
    (Bracket::Number, "numbers"),
    (Bracket::String, "strings"),
    (Bracket::Document, "documents"),
    (Bracket::Array, "arrays"),
    (Bracket::Binary, "binaries"),
    (Bracket::ObjectId, "ObjectIds"),
    (Bracket::Boolean, "booleans"),
    (Bracket::Date, "dates"),
    (Bracket::Timestamp, "timestamps"),
    (Bracket::Regex, "regular expressions"),
    (Bracket::DbPointer, "DBPointers"),
    (Bracket::Code, "codes"),
    (Bracket::CodeWithScope, "codes with scope"),
];

#[derive(Clone, Copy)]
enum IntervalEnd {
    Low,
    High,
}

fn place(place: &Place, end: IntervalEnd, strings: Strings) -> String {
    match (drawn_value(&place.prefix, strings), end, place.side) {
        (Some(value), IntervalEnd::Low, Side::Before) => format!("[{value}"),
        (Some(value), IntervalEnd::Low, Side::After) => format!("({value}"),
        (Some(value), IntervalEnd::High, Side::Before) => format!("{value})"),
        (Some(value), IntervalEnd::High, Side::After) => format!("{value}]"),
        (None, end, _) => boundary(place, end),
    }
}

/// Formats a position that is not a value: next to all strings with a prefix, or between two classes of types.
fn boundary(place: &Place, end: IntervalEnd) -> String {
    let first_text = string_beginning_with(&place.prefix).and_then(|text| match place.side {
        Side::Before => Some(text),
        Side::After => after_all_with_prefix(text),
    });
    let of_class = |is_at: fn(&Interval) -> &Place| {
        CLASS_NAMES.iter().find(|(class, _)| is_at(&bracket_interval(*class)) == place).map(|(_, name)| *name)
    };
    match (end, first_text) {
        (IntervalEnd::Low, Some(text)) => format!("[{}", quoted(&text)),
        (IntervalEnd::High, Some(text)) => format!("{})", quoted(&text)),
        (IntervalEnd::Low, None) => format!("({}", of_class(Interval::high).unwrap_or("…")),
        (IntervalEnd::High, None) => format!("{})", of_class(Interval::low).unwrap_or("…")),
    }
}

fn drawn_value(encoded: &[u8], strings: Strings) -> Option<String> {
    decoded(encoded, |value| match (strings, value.string()) {
        (Strings::SortKeys, Some(key)) => shown_text(collation::show_sort_key(key)),
        _ => shown_text(format_args!("{value:?}")),
    })
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

/// Returns the intervals in MongoDB's notation, in the order in which a scan visits them. Stops after about [`MAX_SHOWN`] bytes and adds how
/// many intervals follow.
pub(super) fn bounds_text(set: &IntervalSet, direction: Direction, strings: Strings) -> Vec<String> {
    let text = |interval: &Interval| {
        let (low, high) = (low(interval, strings), high(interval, strings));
        match direction {
            Direction::Ascending => joined(&low, &high),
            Direction::Descending => joined(&high, &low),
        }
    };
    // The shortest interval is `[1, 1]`.
    let most = MAX_SHOWN / "[1, 1]".len();
    let first: Vec<&Interval> = match direction {
        Direction::Ascending => set.iter().take(most).collect(),
        Direction::Descending => set.iter().rev().take(most).collect(),
    };
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for interval in first {
        if bytes >= MAX_SHOWN {
            break;
        }
        let text = text(interval);
        bytes += text.len();
        shown.push(text);
    }
    if shown.len() < set.len() {
        shown.push(format!("… {} more", set.len() - shown.len()));
    }
    shown
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

/// Returns the prefix in a bound on all strings with a prefix; `None` for other bounds.
fn beginning(encoded: &[u8]) -> Option<String> {
    string_beginning_with(encoded).map(|text| quoted(&text))
}

fn after_beginning(place: &Place) -> Option<String> {
    let text = string_beginning_with(&place.prefix)?;
    let text = match place.side {
        Side::Before => text,
        Side::After => after_all_with_prefix(text)?,
    };
    Some(quoted(&text))
}

fn quoted(text: &str) -> String {
    shown_text(format_args!("{text:?}"))
}

fn value(encoded: &[u8], strings: Strings) -> Option<String> {
    decoded(encoded, |value| match (strings, value.string()) {
        (Strings::SortKeys, Some(key)) => shown_text(format_args!("CollationKey({})", collation::show_sort_key(key))),
        _ => text(value),
    })
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
    shown_text(format_args!("{value:?}"))
}

/// Returns the text of an encoded value: "null" for a missing field, `None` if the bytes are not exactly one value.
fn decoded(encoded: &[u8], text: impl FnOnce(Value<'_>) -> String) -> Option<String> {
    let mut rest = encoded;
    match key::decode(&mut rest, Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) if rest.is_empty() => Some(text(value.as_value())),
        Decoded::Missing if rest.is_empty() => Some("null".into()),
        Decoded::Value(_) | Decoded::Missing => None,
    }
}

/// Returns the string with these key bytes, which lack the end byte; `None` for other types.
fn string_beginning_with(encoded: &[u8]) -> Option<String> {
    const END: u8 = 0x01;
    let whole = [encoded, &[END]].concat();
    match key::decode(&mut whole.as_slice(), Direction::Ascending, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) => value.as_value().text().map(|text| String::from_utf8_lossy(text).into_owned()),
        Decoded::Missing => None,
    }
}

/// Returns the least string after all strings that begin with `text`, if there is one: {$gte: "pr", $lt: "ps"} matches those that begin with
/// "pr".
fn after_all_with_prefix(mut text: String) -> Option<String> {
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}
