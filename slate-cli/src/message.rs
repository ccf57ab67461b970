//! Messages on standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// Writes a line to standard error. Ignores a failure, because the reader may have closed standard error.
macro_rules! message {
    ($($text:tt)*) => { $crate::message::write(format_args!($($text)*)) };
}
pub(crate) use message;

/// Writes a line, as [`message!`] does.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Shortens a text to `longest` characters, its beginning and its end with `…` between them. A shorter text is
/// unchanged.
pub(crate) fn abridged(text: &str, longest: usize) -> String {
    // A text never has more characters than bytes, so this spares counting them.
    if text.len() <= longest || text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    let half = longest / 2;
    let head = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().rev().nth(longest - half - 1).map_or(0, |(at, _)| at);
    format!("{}…{}", text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default())
}

/// How failures are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// A message and a hint.
    #[default]
    Text,
    /// One line: a JSON object with the message, the code and its name, the hint, and the exit code.
    Json,
}

impl ErrorFormat {
    /// Returns the format that `--errors` or `SLATE_ERRORS` selects. Reads the arguments itself, because errors of parsing them have the
    /// format, too.
    pub(crate) fn get() -> Self {
        let arguments: Vec<String> = std::env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
        let next = arguments.windows(2).filter_map(|pair| match pair {
            [option, value] if option == "--errors" => Some(value.clone()),
            _ => None,
        });
        let joined = arguments.iter().filter_map(|argument| argument.strip_prefix("--errors=").map(str::to_owned));
        let named = next.chain(joined).next().or_else(|| std::env::var("SLATE_ERRORS").ok());
        if named.is_some_and(|name| name == "json") { Self::Json } else { Self::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::abridged;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(abridged("abcdef", 6), "abcdef");
        assert_eq!(abridged("abcdefg", 6), "abc…efg");
        assert_eq!(abridged("äöüäöü", 6), "äöüäöü");
        assert_eq!(abridged("äöüßäöü", 5), "äö…äöü");
        assert_eq!(abridged("", 3), "");
    }
}
