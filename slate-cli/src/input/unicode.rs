//! Text in UTF-16 and UTF-32, as spreadsheets and tools of Windows write it. It is read as UTF-8.

use std::io::{self, Read};

/// Number of bytes that are decoded at once.
const CHUNK: usize = 1 << 14;

/// Replaces an invalid character: a byte that no text in UTF-8 contains, so that the reader of the format reports its place.
const INVALID: u8 = 0xff;

/// How characters are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
}

/// The byte-order marks. Those of UTF-32 come first, because one of them begins with the mark of UTF-16.
const MARKS: &[(Encoding, &[u8])] = &[
    (Encoding::Utf32Le, &[0xff, 0xfe, 0, 0]),
    (Encoding::Utf32Be, &[0, 0, 0xfe, 0xff]),
    (Encoding::Utf16Le, &[0xff, 0xfe]),
    (Encoding::Utf16Be, &[0xfe, 0xff]),
];

impl Encoding {
    /// Recognizes the encoding of a text by its first bytes. Returns also the length of its byte-order mark. Without a mark,
    /// the first characters must be ASCII.
    pub(super) fn recognize(head: &[u8]) -> Option<(Self, usize)> {
        if begins_bson(head) && !is_marked_utf32(head) {
            return None;
        }
        let marked =
            MARKS.iter().find(|(_, mark)| head.starts_with(mark)).map(|(encoding, mark)| (*encoding, mark.len()));
        marked.or_else(|| {
            let is_ascii = |encoding: &Self| {
                // A single unit can be ASCII by chance.
                let units: Vec<_> = head.chunks_exact(encoding.width()).take(3).collect();
                let is_text = |unit: &&[u8]| matches!(encoding.unit(unit), 0x20..=0x7e | 0x09 | 0x0a | 0x0d);
                units.len() >= 2 && units.iter().all(is_text)
            };
            MARKS.iter().map(|(encoding, _)| *encoding).find(is_ascii).map(|encoding| (encoding, 0))
        })
    }

    /// Returns the number of bytes of a unit.
    fn width(self) -> usize {
        match self {
            Self::Utf16Le | Self::Utf16Be => 2,
            Self::Utf32Le | Self::Utf32Be => 4,
        }
    }

    fn unit(self, bytes: &[u8]) -> u32 {
        let add = |unit: u32, byte: &u8| unit << 8 | u32::from(*byte);
        match self {
            Self::Utf16Le | Self::Utf32Le => bytes.iter().rev().fold(0, add),
            Self::Utf16Be | Self::Utf32Be => bytes.iter().fold(0, add),
        }
    }
}

/// Returns whether these are the first bytes of a BSON document: its length, a type, and a name that is not empty.
pub(super) fn begins_bson(head: &[u8]) -> bool {
    let [a, b, c, d, kind, name, ..] = head else { return false };
    let length = u32::from_le_bytes([*a, *b, *c, *d]);
    (5..=17 << 20).contains(&length) && matches!(kind, 0x01..=0x13 | 0x7f | 0xff) && *name != 0
}

/// Returns whether the text begins with the mark of UTF-32 and valid characters. The mark can also be the length of a BSON
/// document, but the bytes of its fields are hardly valid characters.
fn is_marked_utf32(head: &[u8]) -> bool {
    let encoding = Encoding::Utf32Le;
    let Some(text) = head.strip_prefix(&[0xff, 0xfe, 0, 0]) else { return false };
    text.chunks_exact(encoding.width())
        .take(8)
        .all(|unit| char::from_u32(encoding.unit(unit)).is_some_and(|unit| unit != '\0'))
}

/// A reader that converts a text to UTF-8.
pub(super) struct Utf8<R> {
    source: R,
    encoding: Encoding,
    /// Bytes that are not decoded, because the rest of their character was not read yet.
    encoded: Vec<u8>,
    decoded: Vec<u8>,
    /// Offset in `decoded` of the first byte that was not returned.
    start: usize,
}

impl<R: Read> Utf8<R> {
    pub(super) fn new(source: R, encoding: Encoding) -> Self {
        Self { source, encoding, encoded: Vec::new(), decoded: Vec::new(), start: 0 }
    }

    /// Decodes the next bytes. Returns whether there were any.
    fn decode(&mut self) -> io::Result<bool> {
        self.decoded.clear();
        self.start = 0;
        let before = self.encoded.len();
        self.source.by_ref().take(CHUNK as u64).read_to_end(&mut self.encoded)?;
        let at_end = self.encoded.len() == before;
        let width = self.encoding.width();
        let mut units = self.encoded.chunks_exact(width).map(|unit| self.encoding.unit(unit)).peekable();
        let mut used = 0;
        while let Some(unit) = units.next() {
            let is_high = width == 2 && (0xd800..0xdc00).contains(&unit);
            let low = units.peek().copied().filter(|low| is_high && (0xdc00..0xe000).contains(low));
            if is_high && units.peek().is_none() && !at_end {
                break;
            }
            let code = low.map_or(unit, |low| 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            if low.is_some() {
                units.next();
                used += width;
            }
            used += width;
            match char::from_u32(code) {
                Some(character) => {
                    self.decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => self.decoded.push(INVALID),
            }
        }
        self.encoded.drain(..used);
        if at_end && !self.encoded.is_empty() {
            self.encoded.clear();
            self.decoded.push(INVALID);
        }
        Ok(!at_end || !self.decoded.is_empty())
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.decoded.len() {
            if !self.decode()? {
                return Ok(0);
            }
        }
        let mut ahead = self.decoded.get(self.start..).unwrap_or_default();
        let length = ahead.read(buffer)?;
        self.start += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
        let units16 = text.encode_utf16();
        match encoding {
            Encoding::Utf16Le => units16.flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => units16.flat_map(u16::to_be_bytes).collect(),
            Encoding::Utf32Le => text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect(),
            Encoding::Utf32Be => text.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect(),
        }
    }

    fn decode(bytes: &[u8], encoding: Encoding) -> Vec<u8> {
        let mut text = Vec::new();
        Utf8::new(bytes, encoding).read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn encodings_are_recognized_with_and_without_a_mark() {
        for (encoding, mark) in MARKS {
            for text in ["a,b\n1,2\n", "\ta", "{}", "x\r\n", "é", "名前", "Имя"] {
                let bytes = [mark.to_vec(), encode(text, *encoding)].concat();
                assert_eq!(Encoding::recognize(&bytes), Some((*encoding, mark.len())), "{encoding:?} {text}");
            }
            for text in ["a,b\n1,2\n", "\ta", "{}", "x\r\n"] {
                assert_eq!(Encoding::recognize(&encode(text, *encoding)), Some((*encoding, 0)), "{encoding:?} {text}");
            }
        }
        for text in ["", "a", "a,b\n", "é,ü\n", "名前", "\0\0\0\0"] {
            assert_eq!(Encoding::recognize(text.as_bytes()), None, "{text}");
        }
        // Lengths of documents that are also the beginning of a text.
        for length in [0xfeff, 0x0061_feff, 0x0061_0061, 0x61, 0x2000, 0x0022_007b_u32] {
            let head = [&length.to_le_bytes()[..], b"\x02_id\0"].concat();
            assert_eq!(Encoding::recognize(&head), None, "{length:x}");
        }
    }

    #[test]
    fn what_is_no_character_is_no_utf8() {
        assert_eq!(decode(&[0x61, 0, 0, 0xd8, 0x62, 0], Encoding::Utf16Le), b"a\xffb");
        assert_eq!(decode(&[0x61, 0, 0, 0xdc, 0x62, 0], Encoding::Utf16Le), b"a\xffb");
        assert_eq!(decode(&[0x61, 0, 0, 0xd8], Encoding::Utf16Le), b"a\xff");
        assert_eq!(decode(&[0x61, 0, 0x62], Encoding::Utf16Le), b"a\xff");
        assert_eq!(decode(&[0, 0x11, 0, 0, 0, 0, 0, 0x61], Encoding::Utf32Be), b"\xffa");
    }

    proptest! {
        #[test]
        fn text_is_decoded_as_it_was_encoded(text in any::<String>(), repeat in prop::sample::select(&[1_usize, 3_000][..])) {
            // Longer than what is decoded at once.
            let text = text.repeat(repeat);
            for (encoding, _) in MARKS {
                prop_assert!(decode(&encode(&text, *encoding), *encoding) == text.as_bytes());
            }
        }
    }
}
