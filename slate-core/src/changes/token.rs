use slate_query::{
    Code,
    raw::{Doc, Kind, Writer},
};

use super::Position;
use crate::{Error, Result};

/// A resume token: where a stream continues, as `{_data: text}`. The text has the hexadecimal digits of
///
/// ```text
/// version (u64), number of the event (u32), kind (u8), log (u32), part of a split event (u32)    big-endian
/// ```
///
/// so that the texts of a log sort as its events do. A stream with a start time in the future appends this time (u64) to them, until it has read a
/// commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) position: Position,
    pub(crate) kind: TokenKind,
    pub(crate) log: u32,
    /// The number of the part of a split event, counted from 0.
    pub(crate) part: u32,
    /// The start time of the stream: skips earlier commits after the position. 0 skips none.
    pub(crate) earliest: u64,
}

/// The item that a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An event.
    Event,
    /// A part of an event that was split.
    Part,
    /// The invalidation that follows an event.
    Invalidate,
    /// A position without an item.
    Mark,
}

const KINDS: [TokenKind; 4] = [TokenKind::Event, TokenKind::Part, TokenKind::Invalidate, TokenKind::Mark];

/// The bytes of a token without and with a start time.
const LENGTH: usize = 21;
const LENGTH_WITH_TIME: usize = LENGTH + 8;

impl Token {
    pub(crate) fn new(log: u32, position: Position, kind: TokenKind) -> Self {
        Self { position, kind, log, part: 0, earliest: 0 }
    }

    /// Returns the token as text.
    pub(crate) fn data(self) -> String {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).and_then(|at| u8::try_from(at).ok());
        let mut bytes = Vec::with_capacity(LENGTH_WITH_TIME);
        bytes.extend_from_slice(&self.position.version.to_be_bytes());
        bytes.extend_from_slice(&self.position.event.to_be_bytes());
        bytes.push(kind.unwrap_or_default());
        bytes.extend_from_slice(&self.log.to_be_bytes());
        bytes.extend_from_slice(&self.part.to_be_bytes());
        if self.earliest > 0 {
            bytes.extend_from_slice(&self.earliest.to_be_bytes());
        }
        bytes.iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// Returns the token as a document.
    pub(crate) fn document(self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.append_string(b"_data", self.data().as_bytes());
        writer.finish()
    }

    /// Reads a token.
    ///
    /// # Errors
    /// 40647 without a string `_data`; `FailedToParse` (9) if the string is not a token.
    pub(crate) fn read(token: Doc<'_>) -> Result<Self> {
        let Some(data) = token.get("_data").filter(|data| data.kind() == Kind::String).and_then(|data| data.as_str())
        else {
            let message = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::invalid(Code(40_647), message).at("_data"));
        };
        Self::parse(data).ok_or_else(|| {
            let message = format!("resume token string was not a valid hex string of this store: {data}");
            Error::invalid(Code::FAILED_TO_PARSE, message).at("_data")
        })
    }

    fn parse(data: &str) -> Option<Self> {
        let digits = data.as_bytes();
        let has_time = digits.len() == 2 * LENGTH_WITH_TIME;
        if !(has_time || digits.len() == 2 * LENGTH) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let number = |from: usize, to: usize| u64::from_str_radix(data.get(2 * from..2 * to)?, 16).ok();
        let position = Position { version: number(0, 8)?, event: u32::try_from(number(8, 12)?).ok()? };
        let kind = *KINDS.get(usize::try_from(number(12, 13)?).ok()?)?;
        let (log, part) = (u32::try_from(number(13, 17)?).ok()?, u32::try_from(number(17, 21)?).ok()?);
        let earliest = if has_time { number(LENGTH, LENGTH_WITH_TIME)? } else { 0 };
        Some(Self { position, kind, log, part, earliest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_sorts_like_its_position() {
        let mut last = String::new();
        for position in [(0, 0), (1, 0), (1, 7), (1, u32::MAX), (300, 2), (u64::MAX, 1)] {
            let position = Position { version: position.0, event: position.1 };
            for earliest in [0, 1 << 33] {
                let token = Token { position, kind: TokenKind::Part, log: 77, part: 3, earliest };
                assert_eq!(Token::read(Doc::new(&token.document())).unwrap(), token);
                assert!(token.data() > last);
                last = token.data();
            }
        }
        for damaged in ["", "00", "zz", &last.replace('F', "g"), &format!("{last}00")] {
            assert!(Token::parse(damaged).is_none(), "{damaged}");
        }
    }
}
