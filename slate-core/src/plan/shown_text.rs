use std::fmt::{self, Display, Write};

use slate_query::work;

/// The most bytes of an argument that an explanation shows: an argument can have 16 MiB, and each is shown several times. A longer text is
/// shown by its beginning, a longer document by its length.
pub(super) const MAX_SHOWN: usize = 64 << 10;

/// Returns the first [`MAX_SHOWN`] bytes of a text, with an ellipsis if there are more. Returns an empty text once the call is over,
/// because its explanation is dropped.
pub(super) fn shown_text(shown: impl Display) -> String {
    struct Beginning(String);
    impl Write for Beginning {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let most = part.len().min(MAX_SHOWN.saturating_sub(self.0.len()));
            let end = (0..=most).rev().find(|end| part.is_char_boundary(*end)).unwrap_or_default();
            let (shown, rest) = part.split_at(end);
            self.0.push_str(shown);
            if rest.is_empty() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut beginning = Beginning(String::new());
    if work::check().is_ok() && write!(beginning, "{shown}").is_err() {
        beginning.0.push('…');
    }
    // An error means that the call is over: it ends with the next check.
    let _ = work::take_copied(beginning.0.len());
    beginning.0
}
