//! Dates as people write them: `July 4th, 2017 12:39:30 BST`, `4 Jul 2017 11am`, `7/4/17`, `04-07-2017`.
//!
//! The forms are those of the `timelib` library, by which MongoDB reads dates without a format, except relative ones (`tomorrow`).

mod tokens;
mod zones;

use jiff::civil::{Date, ISOWeekDate, Time, Weekday};

pub(super) use self::tokens::Cursor;

/// A written date with its time and its time zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenDate {
    pub(super) date: Date,
    pub(super) time: Time,
    /// The offset from UTC in minutes.
    pub(super) zone: Option<i64>,
}

/// The characters that may be between the parts of a date.
const BETWEEN: &[char] = &[' ', '\t', '.', '-'];

/// Reads a whole text. `None` if the text is not a date, or the date has no year.
pub(super) fn read(text: &str) -> Option<WrittenDate> {
    let mut cursor = Cursor::new(text);
    let (mut date, mut time, mut zone, mut weekday) = (None, None, None, None);
    loop {
        cursor.skip(&[' ', '\t', ',', '.']);
        if cursor.is_at_end() {
            break;
        }
        if date.is_none() && set(&mut date, cursor.try_read(self::date)) {
            continue;
        }
        if time.is_none() && set(&mut time, cursor.try_read(self::time)) {
            continue;
        }
        if date.is_none() && set(&mut date, cursor.try_read(pointed)) {
            continue;
        }
        if weekday.is_none() && set(&mut weekday, cursor.word(self::weekday)) {
            continue;
        }
        if zone.is_none() && set(&mut zone, zones::read(&mut cursor)) {
            continue;
        }
        return None;
    }
    let mut date: Date = date?;
    // If the date is not on the given day of the week, the next such day is meant.
    while let Some(weekday) = weekday
        && date.weekday() != weekday
    {
        date = date.tomorrow().ok()?;
    }
    Some(WrittenDate { date, time: time.unwrap_or(Time::midnight()), zone })
}

/// Reads a time zone. Returns its offset from UTC in minutes.
pub(super) fn zone(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.skip(&[' ', '\t']);
    zones::read(cursor)
}

fn set<T>(place: &mut Option<T>, found: Option<T>) -> bool {
    *place = found;
    place.is_some()
}

fn date(cursor: &mut Cursor<'_>) -> Option<Date> {
    type WrittenForm = fn(&mut Cursor<'_>) -> Option<Date>;
    let forms: [WrittenForm; 7] =
        [year_first, day_first, with_slashes, month_name_first, day_then_name, year_then_name, week];
    forms.into_iter().find_map(|form| cursor.try_read(form))
}

/// Reads `2017-7-4`, `17-7-4`, `2017-07` and `20170704`.
fn year_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    if let Some(number) = cursor.digits(8) {
        return of(number / 10_000, number / 100 % 100, number % 100);
    }
    let year = cursor.number(4)?;
    cursor.symbol(&['-'])?;
    let (month, _) = cursor.number(2)?;
    match cursor.symbol(&['-']) {
        Some(_) => of(full(year), month, cursor.number(2)?.0),
        None if year.1 == 4 => of(year.0, month, 1),
        None => None,
    }
}

/// Reads `4-7-2017` and `04.07.2017`.
fn day_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    let (day, _) = cursor.number(2)?;
    cursor.symbol(&['.', '-', '\t'])?;
    let (month, _) = cursor.number(2)?;
    cursor.symbol(&['.', '-'])?;
    of(cursor.digits(4)?, month, day)
}

/// Reads `4.7.17`, which may also be a time.
fn pointed(cursor: &mut Cursor<'_>) -> Option<Date> {
    let (day, _) = cursor.number(2)?;
    cursor.symbol(&['.', '\t'])?;
    let (month, _) = cursor.number(2)?;
    cursor.symbol(&['.'])?;
    let year = cursor.digits(2)?;
    of(full((year, 2)), month, day)
}

/// Reads `2017/7/4` and `7/4/17`.
fn with_slashes(cursor: &mut Cursor<'_>) -> Option<Date> {
    let first = cursor.number(4)?;
    cursor.symbol(&['/'])?;
    let (second, _) = cursor.number(2)?;
    cursor.symbol(&['/'])?;
    let third = cursor.number(4)?;
    if first.1 == 4 { of(first.0, second, third.0) } else { of(full(third), first.0, second) }
}

/// Reads `July 4th, 2017`, `Jul-04-2017` and `July 2017`.
fn month_name_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    let month = cursor.word(month)?;
    cursor.skip(BETWEEN);
    if let Some(year) = cursor.digits(4) {
        return of(year, month, 1);
    }
    let (day, _) = cursor.number(2)?;
    let has_suffix = cursor.word(ordinal).is_some();
    let before = cursor.rest().len();
    match cursor.symbol(&['-']) {
        Some(_) => {}
        None => cursor.skip(&[' ', '\t', ',', '.']),
    }
    if !has_suffix && cursor.rest().len() == before {
        return None;
    }
    of(full(cursor.number(4)?), month, day)
}

/// Reads `4 July 2017`, `4th Jul 2017`, `04-Jul-2017` and `4JUL17`.
fn day_then_name(cursor: &mut Cursor<'_>) -> Option<Date> {
    let (day, _) = cursor.number(2)?;
    cursor.word(ordinal);
    cursor.skip(BETWEEN);
    let month = cursor.word(month)?;
    cursor.skip(BETWEEN);
    of(full(cursor.number(4)?), month, day)
}

/// Reads `2017-Jul-04` and `2017 July`.
fn year_then_name(cursor: &mut Cursor<'_>) -> Option<Date> {
    let year = cursor.number(4)?;
    cursor.skip(BETWEEN);
    let month = cursor.word(month)?;
    let day = cursor.try_read(|cursor| cursor.symbol(&['-']).and_then(|_| cursor.number(2)));
    match day {
        Some((day, _)) => of(full(year), month, day),
        None if year.1 == 4 => of(year.0, month, 1),
        None => None,
    }
}

/// Reads `2017-W27-2`, `2017W272` and `2017W27`.
fn week(cursor: &mut Cursor<'_>) -> Option<Date> {
    let year = cursor.digits(4)?;
    cursor.symbol(&['-']);
    cursor.word(|word| (word == "w").then_some(()))?;
    let (week, day) = match cursor.number(3)? {
        (week, 2) => {
            let day = cursor.try_read(|cursor| cursor.symbol(&['-']).and_then(|_| cursor.digits(1)));
            (week, day.unwrap_or(1))
        }
        (both, 3) => (both / 10, both % 10),
        _ => return None,
    };
    of_week(year, week, day)
}

/// Returns a day of an ISO week. Week 53 of a year with 52 weeks is the first one of the next year. `None` for other
/// weeks than 1 to 53 and other days than 1 to 7.
pub(super) fn of_week(year: i64, week: i64, day: i64) -> Option<Date> {
    let first = ISOWeekDate::new(i16::try_from(year).ok()?, 1, Weekday::Monday).ok()?.date();
    let days = (1..=53).contains(&week).then_some((week - 1) * 7)? + (1..=7).contains(&day).then_some(day - 1)?;
    first.checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}

/// Reads `12:39`, `12:39:30.5`, `T12.39`, `11am`, `11:30 p.m.`, `noon` and `midnight`.
fn time(cursor: &mut Cursor<'_>) -> Option<Time> {
    let named = cursor.word(|word| match word {
        "noon" => Some(12),
        "midnight" => Some(0),
        _ => None,
    });
    if let Some(hour) = named {
        return Time::new(hour, 0, 0, 0).ok();
    }
    cursor.word(|word| (word == "t").then_some(()));
    let (hour, _) = cursor.number(2)?;
    let parted = |cursor: &mut Cursor<'_>, by: &[char]| {
        cursor.try_read(|cursor| cursor.symbol(by).and_then(|_| cursor.number(2)).map(|(number, _)| number))
    };
    let minute = parted(cursor, &[':', '.']);
    let second = minute.and_then(|_| parted(cursor, &[':', '.']));
    let fraction = second.and_then(|_| cursor.try_read(fraction)).unwrap_or(0);
    let half = cursor.try_read(half_of_day);
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
        None => minute.map(|_| hour)?,
    };
    let small = |number: i64| i8::try_from(number).ok();
    Time::new(small(hour)?, small(minute.unwrap_or(0))?, small(second.unwrap_or(0))?, fraction).ok()
}

/// Reads a separator and up to nine digits of a fraction of a second. Returns nanoseconds.
fn fraction(cursor: &mut Cursor<'_>) -> Option<i32> {
    cursor.symbol(&['.', ',', ':'])?;
    let (number, digits) = cursor.number(9)?;
    i32::try_from(number * 10_i64.pow(9 - u32::try_from(digits).ok()?)).ok()
}

/// Reads `am` or `p.m.`. Returns the hours before that half of the day: 0 or 12.
fn half_of_day(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.skip(&[' ', '\t']);
    let hours = |letter: &str| match letter {
        "a" => Some(0),
        "p" => Some(12),
        _ => None,
    };
    if let Some(hours) = cursor.word(|word| hours(word.strip_suffix('m')?)) {
        cursor.symbol(&['.']);
        return Some(hours);
    }
    let hours = cursor.word(hours)?;
    cursor.symbol(&['.'])?;
    cursor.word(|word| (word == "m").then_some(()))?;
    cursor.symbol(&['.']);
    Some(hours)
}

fn of(year: i64, month: i64, day: i64) -> Option<Date> {
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Returns a year that may be written with two digits: 70 to 99 mean 1970 to 1999, 0 to 69 mean 2000 to 2069.
fn full((year, digits): (i64, usize)) -> i64 {
    match year {
        _ if digits == 4 => year,
        0..70 => year + 2_000,
        70..100 => year + 1_900,
        _ => year,
    }
}

fn ordinal(word: &str) -> Option<()> {
    matches!(word, "st" | "nd" | "rd" | "th").then_some(())
}

/// Returns the number of a month with this name, its first three letters, or a Roman numeral.
fn month(word: &str) -> Option<i64> {
    const ROMAN: [&str; 12] = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"];
    let is_name =
        |month: &&str| *month == word || month.get(..3) == Some(word) || (*month == "september" && word == "sept");
    let place = super::from_string::MONTHS.iter().position(is_name);
    let place = place.or_else(|| ROMAN.iter().position(|numeral| *numeral == word))?;
    i64::try_from(place + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = NAMES.iter().position(|name| {
        *name == word
            || name.get(..3) == Some(word)
            || matches!((*name, word), ("tuesday", "tues") | ("thursday", "thur" | "thurs"))
    })?;
    Weekday::from_monday_one_offset(i8::try_from(place + 1).ok()?).ok()
}
