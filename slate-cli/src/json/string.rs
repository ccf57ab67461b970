use super::parser::{Fault, Parser, Result};

impl Parser<'_> {
    /// Reads a string in quotes of either kind.
    pub(super) fn string(&mut self) -> Result<String> {
        let (begin, quote) = (self.at, self.byte().unwrap_or(b'"'));
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let run = self.window.loaded(self.at);
            let length = run.iter().position(|byte| *byte == quote || matches!(byte, b'\\' | b'\n'));
            let length = length.unwrap_or(run.len());
            bytes.extend_from_slice(run.get(..length).unwrap_or_default());
            self.at += length;
            match self.byte() {
                None | Some(b'\n') => return Err(Fault { at: begin, why: "a string does not end on its line".into() }),
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return String::from_utf8(bytes)
                        .map_err(|_| Fault { at: begin, why: "a string is not UTF-8".into() });
                }
                // The run ended because no more bytes were in memory.
                Some(_) => {}
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let begin = self.at;
        self.at += 1;
        let escaped = self.byte().ok_or_else(|| self.fault("the text ends within a string"))?;
        self.at += 1;
        let plain = match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'u' | b'x' => {
                let character = self.code_point(if escaped == b'u' { 4 } else { 2 });
                let character =
                    character.ok_or_else(|| Fault { at: begin, why: "an escape is no character".into() })?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            b'"' | b'\'' | b'\\' | b'/' | b'`' | b'$' => escaped,
            _ => return Err(Fault { at: begin, why: format!("unknown escape \\{}", char::from(escaped)) }),
        };
        bytes.push(plain);
        Ok(())
    }

    /// Reads the hexadecimal digits after `\u` or `\x`. If they are the first half of a surrogate pair, the second half must
    /// follow as another `\u`. `None` if they are no character.
    fn code_point(&mut self, digits: usize) -> Option<char> {
        let first = self.hex(digits)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        for expected in [b'\\', b'u'] {
            if self.byte()? != expected {
                return None;
            }
            self.at += 1;
        }
        let second = self.hex(4).filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut number = 0;
        for _ in 0..digits {
            number = number * 16 + char::from(self.byte()?).to_digit(16)?;
            self.at += 1;
        }
        Some(number)
    }
}
