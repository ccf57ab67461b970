//! The layouts of dates in headers, as `mongoimport` names them: `date_go(2006-01-02)`, `date_ms(yyyy-MM-dd)`,
//! `date_oracle(YYYY-MM-DD)`. Each is translated to a format of `strptime`.

use jiff::{civil::DateTime, fmt::strtime::BrokenDownTime};

use crate::json;

/// The parts of a layout and the directives for them. If two parts fit, the first is used.
type Parts = &'static [(&'static str, &'static str)];

/// The reference date of Go's package `time` in its parts.
static GO: Parts = &[
    ("January", "%B"),
    ("Jan", "%b"),
    ("Monday", "%A"),
    ("Mon", "%a"),
    ("MST", ""),
    ("2006", "%Y"),
    ("Z07:00", ZULU_COLON),
    ("Z0700", ZULU),
    ("-07:00", "%:z"),
    ("-0700", "%z"),
    ("-07", "%:::z"),
    ("002", "%j"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("15", "%H"),
    ("PM", "%p"),
    ("pm", "%p"),
    ("_2", "%e"),
    ("1", "%m"),
    ("2", "%d"),
    ("3", "%I"),
    ("4", "%M"),
    ("5", "%S"),
];

/// The parts of layouts of .NET and of Excel.
static MS: Parts = &[
    ("dddd", "%A"),
    ("ddd", "%a"),
    ("dd", "%d"),
    ("d", "%d"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%m"),
    ("yyyy", "%Y"),
    ("yyy", "%Y"),
    ("yy", "%y"),
    ("hh", "%I"),
    ("h", "%I"),
    ("HH", "%H"),
    ("H", "%H"),
    ("mm", "%M"),
    ("m", "%M"),
    ("ss", "%S"),
    ("s", "%S"),
    ("tt", "%p"),
    ("zzz", "%:z"),
    ("zz", "%:::z"),
];

/// The parts of layouts of Oracle's `TO_DATE`, whose letters have no case.
static ORACLE: Parts = &[
    ("MONTH", "%B"),
    ("MON", "%b"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("DAY", "%A"),
    ("DY", "%a"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("YYYY", "%Y"),
    ("RRRR", "%Y"),
    ("YY", "%y"),
    ("RR", "%y"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("SS", "%S"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("TZH:TZM", "%:z"),
    ("TZH", "%:::z"),
];

/// Placeholders for offsets that can also be `Z`, for which `strptime` has no directive.
const ZULU_COLON: &str = "%:Z";
const ZULU: &str = "%Z";

/// The notation of a date layout, by the system that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Go,
    Ms,
    Oracle,
}

/// How the dates of a column are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DateLayout {
    format: String,
    /// The offset that replaces a final `Z`; `None` if the layout does not allow a `Z`.
    zulu: Option<&'static str>,
    digits: Digits,
}

/// What becomes of digits beyond milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    /// They are refused: the layout does not name them.
    Refused,
    /// They are dropped: the layout names them, and a date does not store them.
    Cut,
}

impl DateLayout {
    /// Translates a layout.
    ///
    /// # Errors
    /// Fails if the layout has no year or no month, or the name of a time zone.
    pub(super) fn new(dialect: Dialect, layout: &str) -> Result<Self, String> {
        let upper = layout.to_ascii_uppercase();
        let (parts, text) = match dialect {
            Dialect::Go => (GO, layout),
            Dialect::Ms => (MS, layout),
            Dialect::Oracle => (ORACLE, &*upper),
        };
        let (mut format, mut digits) = (String::new(), Digits::Refused);
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let part = parts.iter().find_map(|(part, directive)| Some((rest.strip_prefix(part)?, *directive)));
            if let Some((after, directive)) = part {
                if directive.is_empty() {
                    return Err("names of time zones are not supported, only offsets".into());
                }
                format.push_str(directive);
                rest = after;
                continue;
            }
            let (length, precision, directive) = fraction(dialect, rest);
            if length > 0 {
                format.push_str(directive);
                if precision > 3 {
                    digits = Digits::Cut;
                }
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            if let Some((literal, after)) = quoted(dialect, rest) {
                format.push_str(&literal.replace('%', "%%"));
                rest = after;
                continue;
            }
            if character == '%' {
                format.push('%');
            }
            format.push(character);
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
        let found = |directives: &[&str]| directives.iter().any(|directive| format.contains(directive));
        if !found(&["%Y", "%y"]) || !found(&["%m", "%b", "%B", "%j"]) {
            return Err(format!("the layout {layout:?} has no year or no month"));
        }
        let zulu = [(ZULU_COLON, "+00:00"), (ZULU, "+0000")].into_iter().find(|(end, _)| format.ends_with(end));
        let format = format.replace(ZULU_COLON, "%:z").replace(ZULU, "%z");
        // Seconds can have a fraction unless something else follows a point.
        let format = format.replace("%S", "%S%.f").replace("%S%.f.", "%S.");
        Ok(Self { format, zulu: zulu.map(|(_, offset)| offset), digits })
    }

    /// Returns the milliseconds since 1970 of a date. Without an offset it is UTC; without a day it is the first of the
    /// month. `None` if the text has another layout. Fails on digits beyond milliseconds that the layout does not name.
    pub(super) fn millis(&self, text: &str) -> Option<Result<i64, &'static str>> {
        let zulu = self.zulu.and_then(|offset| Some(format!("{}{offset}", text.strip_suffix('Z')?)));
        let mut parts = BrokenDownTime::parse(&self.format, zulu.as_deref().unwrap_or(text)).ok()?;
        if parts.day().is_none() && parts.day_of_year().is_none() {
            parts.set_day(Some(1)).ok()?;
        }
        let local = DateTime::from_parts(parts.to_date().ok()?, parts.to_time().ok()?);
        let nanos = json::nanos_at(local, parts.offset());
        match self.digits {
            Digits::Refused => Some(json::whole_millis(nanos)),
            Digits::Cut => json::floor_millis(nanos).map(Ok),
        }
    }
}

/// Returns the length of the fraction of a second that a layout begins with, the number of digits that it stands for, and
/// its directive. The directive is empty after a point: the directive for seconds reads such a fraction.
fn fraction(dialect: Dialect, layout: &str) -> (usize, usize, &'static str) {
    let digits: &[char] = match dialect {
        Dialect::Go => &['0', '9'],
        Dialect::Ms => &['f', 'F'],
        Dialect::Oracle => {
            let rest = layout.strip_prefix('.').unwrap_or(layout);
            let Some(after) = rest.strip_prefix("FF") else { return (0, 0, "") };
            let digit = after.chars().next().and_then(|digit| digit.to_digit(10));
            let length = layout.len() - after.len() + usize::from(digit.is_some());
            // Oracle's timestamps have six digits unless they say otherwise.
            return (length, digit.map_or(6, |digit| digit as usize), "");
        }
    };
    let Some(rest) = layout.strip_prefix(['.', ',']) else { return (0, 0, "") };
    let after = rest.trim_start_matches(digits);
    // Other digits are no fraction: `02.01.2006`.
    if after.len() == rest.len() || after.starts_with(|digit: char| digit.is_ascii_digit()) {
        return (0, 0, "");
    }
    (layout.len() - after.len(), rest.len() - after.len(), if layout.starts_with(',') { ",%f" } else { "" })
}

/// Returns the text in quotes that a layout begins with, and the rest of the layout; `None` without quotes.
fn quoted(dialect: Dialect, layout: &str) -> Option<(&str, &str)> {
    let quote = match dialect {
        Dialect::Go => return None,
        Dialect::Ms => '\'',
        Dialect::Oracle => '"',
    };
    layout.strip_prefix(quote)?.split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_by_the_layouts_of_mongoimport() {
        let millis = |text| json::nanos(text).map(json::whole_millis);
        let expected = millis("2024-02-29T14:05:06Z").unwrap().unwrap();
        for (dialect, layout, text) in [
            (Dialect::Go, "2006-01-02 15:04:05", "2024-02-29 14:05:06"),
            (Dialect::Go, "1/2/2006 3:04:05PM", "2/29/2024 2:05:06PM"),
            (Dialect::Go, "Mon, 02 Jan 2006 15:04:05 -0700", "Thu, 29 Feb 2024 16:05:06 +0200"),
            (Dialect::Go, "2006-01-02T15:04:05Z07:00", "2024-02-29T14:05:06Z"),
            (Dialect::Go, "2006-01-02T15:04:05Z07:00", "2024-02-29T16:05:06+02:00"),
            (Dialect::Go, "05.04.15 2006.01.02", "06.05.14 2024.02.29"),
            (Dialect::Go, "January _2 06, 15.04.05", "February 29 24, 14.05.06"),
            (Dialect::Ms, "dd.MM.yyyy HH:mm:ss", "29.02.2024 14:05:06"),
            (Dialect::Ms, "M/d/yy h:mm:ss tt", "2/29/24 2:05:06 PM"),
            (Dialect::Ms, "yyyy-MM-ddTHH:mm:sszzz", "2024-02-29T15:05:06+01:00"),
            (Dialect::Ms, "yyyy-MM-dd'T'HH:mm:ss", "2024-02-29T14:05:06"),
            (Dialect::Oracle, "YYYY-MM-DD\"T\"HH24:MI:SS", "2024-02-29T14:05:06"),
            (Dialect::Oracle, "DD-MON-YYYY HH24:MI:SS", "29-FEB-2024 14:05:06"),
            (Dialect::Oracle, "yyyy/mm/dd hh:mi:ss am", "2024/02/29 02:05:06 PM"),
            (Dialect::Oracle, "YYYYMMDDHH24MISS", "20240229140506"),
        ] {
            assert_eq!(DateLayout::new(dialect, layout).unwrap().millis(text), Some(Ok(expected)), "{layout}");
        }
        let fractions = [
            (Dialect::Go, "2006-01-02 15:04:05"),
            (Dialect::Go, "2006-01-02 15:04:05.000"),
            (Dialect::Go, "2006-01-02 15:04:05.999999"),
            (Dialect::Ms, "yyyy-MM-dd HH:mm:ss.fff"),
            (Dialect::Oracle, "YYYY-MM-DD HH24:MI:SS.FF3"),
        ];
        for (dialect, layout) in fractions {
            let millis = DateLayout::new(dialect, layout).unwrap().millis("2024-02-29 14:05:06.789");
            assert_eq!(millis, Some(Ok(expected + 789)), "{layout}");
        }
        for (dialect, layout, is_cut) in [
            (Dialect::Go, "2006-01-02 15:04:05", false),
            (Dialect::Go, "2006-01-02 15:04:05.000", false),
            (Dialect::Go, "2006-01-02 15:04:05.999999", true),
            (Dialect::Go, "2006-01-02 15:04:05.000000000", true),
            (Dialect::Ms, "yyyy-MM-dd HH:mm:ss.fff", false),
            (Dialect::Ms, "yyyy-MM-dd HH:mm:ss.ffffff", true),
            (Dialect::Oracle, "YYYY-MM-DD HH24:MI:SS.FF3", false),
            (Dialect::Oracle, "YYYY-MM-DD HH24:MI:SS.FF", true),
            (Dialect::Oracle, "YYYY-MM-DD HH24:MI:SS.FF6", true),
        ] {
            let layout = DateLayout::new(dialect, layout).unwrap();
            let millis = layout.millis("2024-02-29 14:05:06.789123").unwrap().ok();
            assert_eq!(millis, is_cut.then_some(expected + 789), "{layout:?}");
            assert_eq!(layout.millis("2024-02-29 14:05:06.789000"), Some(Ok(expected + 789)), "{layout:?}");
            assert_eq!(layout.millis("2024-02-29 14:05:06.7890000001"), None, "{layout:?}");
        }
        let layout = DateLayout::new(Dialect::Ms, "dd.MM.yyyy").unwrap();
        assert_eq!(layout.millis("31.12.9999"), millis("9999-12-31"));
        assert_eq!(DateLayout::new(Dialect::Go, "2006-01").unwrap().millis("2024-02"), millis("2024-02-01"));
        for wrong in ["2024-02-29", "30.02.2024", "29.02.2024 ", "", "29.02.24x"] {
            assert_eq!(layout.millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_layout_without_a_date_is_refused() {
        for layout in ["", "15:04", "yyyy-MM-dd", "2006", "2006-01-02 MST"] {
            assert!(DateLayout::new(Dialect::Go, layout).is_err(), "{layout}");
        }
    }
}
