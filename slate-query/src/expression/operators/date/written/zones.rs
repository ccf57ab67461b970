//! Time zones in written dates: abbreviations and offsets.

use super::Cursor;

/// Abbreviations with their offsets from UTC in minutes. Sorted by name.
static ABBREVIATIONS: &[(&str, i64)] = &[
    ("acdt", 630),
    ("acst", 570),
    ("adt", -180),
    ("aedt", 660),
    ("aest", 600),
    ("akdt", -480),
    ("akst", -540),
    ("ast", -240),
    ("awst", 480),
    ("bst", 60),
    ("cat", 120),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cst", -360),
    ("eat", 180),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("idt", 180),
    ("ist", 120),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("msd", 240),
    ("msk", 180),
    ("mst", -420),
    ("ndt", -150),
    ("nst", -210),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pkt", 300),
    ("pst", -480),
    ("sast", 120),
    ("utc", 0),
    ("wat", 60),
    ("west", 60),
    ("wet", 0),
];

/// Reads a time zone. Returns its offset from UTC in minutes.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.try_read(|cursor| {
        let name = cursor.word(|name| abbreviation(name).map(|minutes| (minutes, matches!(name, "gmt" | "utc"))));
        match name {
            None => offset(cursor),
            Some((minutes, true)) => Some(offset(cursor).unwrap_or(minutes)),
            Some((minutes, false)) => Some(minutes),
        }
    })
}

fn abbreviation(name: &str) -> Option<i64> {
    match name.as_bytes() {
        [letter] => military(*letter),
        _ => {
            let place = ABBREVIATIONS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
            ABBREVIATIONS.get(place).map(|(_, minutes)| *minutes)
        }
    }
}

/// Returns the offset of a military time zone from UTC in minutes: A to M without J are ahead of UTC, N to Y behind
/// it, Z is UTC.
fn military(letter: u8) -> Option<i64> {
    let hours = match letter {
        b'a'..=b'i' => i64::from(letter - b'a') + 1,
        b'k'..=b'm' => i64::from(letter - b'a'),
        b'n'..=b'y' => -i64::from(letter - b'n') - 1,
        b'z' => 0,
        _ => return None,
    };
    Some(hours * 60)
}

/// Reads `+2`, `+02`, `+0230`, `+2:30`.
fn offset(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.try_read(|cursor| {
        let sign = if cursor.symbol(&['+', '-'])? == '+' { 1 } else { -1 };
        let (number, digits) = cursor.number(4)?;
        let minutes = match digits {
            1 | 2 => {
                let minutes = cursor.try_read(|cursor| cursor.symbol(&[':']).and_then(|_| cursor.digits(2)));
                number * 60 + minutes.unwrap_or(0)
            }
            _ => number / 100 * 60 + number % 100,
        };
        Some(sign * minutes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(ABBREVIATIONS.is_sorted_by_key(|(name, _)| name));
    }
}
