//! Array positions as names of elements.

use std::io::Write;

/// The name of an array element.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    text: [u8; 20],
    length: usize,
}

/// Returns the decimal digits of an array position.
pub(crate) fn digits(position: usize) -> Digits {
    let mut text = [0; 20];
    let mut rest = text.as_mut_slice();
    // The largest position has twenty digits.
    let written = write!(rest, "{position}").map(|()| 20 - rest.len());
    Digits { text, length: written.unwrap_or_default() }
}

impl Digits {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}
