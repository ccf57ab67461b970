//! Generates values and documents from arbitrary bytes. The same bytes always give the same value, so a fuzzer that changes bytes changes
//! values.
//!
//! Bytes that begin with `{` or `[` and are a document or a list in MongoDB's notation give that value. A zero byte ends such a text, and
//! further input can follow it. The inputs of `fuzz/corpus` are such texts, so they can be read, and stay valid when the names or the number
//! of operators change.

use std::collections::BTreeSet;

use bson::{Binary, Bson, DateTime, Decimal128, Document, Regex, Timestamp, oid::ObjectId, spec::BinarySubtype};

/// Bytes that are consumed from the front. After the last one, every further byte is 0.
pub(super) struct Input<'d>(&'d [u8]);

/// Maximum depth of a value.
const DEPTH: u8 = 5;

/// Names of fields.
const FIELDS: [&str; 10] = ["a", "b", "c", "a.b", "a.0", "b.c.d", "_id", "", "$a", "x"];

impl<'d> Input<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// Consumes and returns the value that the input begins with as a text; `None` if it begins otherwise.
    pub(super) fn text_value(&mut self) -> Option<Bson> {
        if !matches!(self.0.first(), Some(b'{' | b'[')) {
            return None;
        }
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        let value = slate_cli::fuzz::argument(std::str::from_utf8(text).ok()?)?;
        self.0 = rest.get(1..).unwrap_or_default();
        Some(value)
    }

    /// Consumes and returns the list that the input begins with as a text; `None` if it begins otherwise.
    pub(super) fn text_list(&mut self) -> Option<Vec<Bson>> {
        let mut ahead = Self(self.0);
        let Some(Bson::Array(list)) = ahead.text_value() else { return None };
        *self = ahead;
        Some(list)
    }

    /// Returns the value that the input begins with as a text, or else a generated one whose names are operators or fields.
    pub(super) fn argument(&mut self, operators: &[&'static str]) -> Bson {
        self.text_value().unwrap_or_else(|| self.value(operators, 0))
    }

    /// Returns the document that the input begins with as a text, or else a generated one.
    pub(super) fn argument_document(&mut self, operators: &[&'static str], depth: u8) -> Document {
        let mut ahead = Self(self.0);
        match ahead.text_value() {
            Some(Bson::Document(document)) => {
                *self = ahead;
                document
            }
            _ => self.document(operators, depth),
        }
    }

    /// Returns one of the choices; `otherwise` if there are none.
    pub(super) fn choice<T: Copy>(&mut self, choices: &[T], otherwise: T) -> T {
        let at = usize::from(self.byte()) % choices.len().max(1);
        choices.get(at).copied().unwrap_or(otherwise)
    }

    /// Returns a copy of `whole`, in half of the cases with some bytes replaced.
    pub(super) fn perhaps_damaged(mut self, whole: &[u8]) -> Vec<u8> {
        if self.byte().is_multiple_of(2) { whole.to_vec() } else { self.damage(whole) }
    }

    /// Returns a copy of `whole` with up to four runs of up to eight bytes replaced, which is sometimes also cut off.
    pub(super) fn damage(mut self, whole: &[u8]) -> Vec<u8> {
        let mut damaged = whole.to_vec();
        for _ in 0..=self.byte() % 4 {
            let at = usize::try_from(u32::from_le_bytes(self.bytes())).unwrap_or_default() % damaged.len().max(1);
            for byte in damaged.iter_mut().skip(at).take(1 + usize::from(self.byte() % 8)) {
                *byte ^= self.byte();
            }
        }
        if self.byte() == 255 {
            damaged.truncate(usize::from(u16::from_le_bytes(self.bytes())));
        }
        damaged
    }

    /// Returns the name of one of the operators or of a field.
    fn name(&mut self, operators: &[&'static str]) -> String {
        let choice = usize::from(self.byte());
        let name = match operators.get(choice % (operators.len() + FIELDS.len())) {
            Some(operator) => operator,
            None => FIELDS.get(choice % FIELDS.len()).copied().unwrap_or_default(),
        };
        name.to_owned()
    }

    /// Returns a generated document of up to three fields, whose names are operators or fields.
    pub(super) fn document(&mut self, operators: &[&'static str], depth: u8) -> Document {
        let fields = self.byte() % 4;
        (0..fields).map(|_| (self.name(operators), self.value(operators, depth + 1))).collect()
    }

    pub(super) fn value(&mut self, operators: &[&'static str], depth: u8) -> Bson {
        let kind = self.byte();
        match if depth >= DEPTH { kind % 20 } else { kind % 32 } {
            0 => Bson::Null,
            1 => Bson::Boolean(self.byte().is_multiple_of(2)),
            2..=5 => Bson::Int32(i32::from(self.byte()) - 100),
            6 => Bson::Int32(i32::from_le_bytes(self.bytes())),
            7 => Bson::Int64(i64::from_le_bytes(self.bytes())),
            8 => Bson::Double(f64::from_le_bytes(self.bytes())),
            9 => Bson::Double(f64::from(i32::from_le_bytes(self.bytes())) / 8.0),
            10 => Bson::Decimal128(Decimal128::from_bytes(self.bytes())),
            11 => Bson::DateTime(DateTime::from_millis(i64::from_le_bytes(self.bytes()))),
            12 => Bson::ObjectId(ObjectId::from_bytes(self.bytes())),
            13 => {
                Bson::Timestamp(Timestamp { time: u32::from_le_bytes(self.bytes()), increment: u32::from(self.byte()) })
            }
            14 => {
                let (pattern, options) = (self.text(), ["", "i", "s", "x", "m"]);
                let options = options.get(usize::from(self.byte()) % 5).copied().unwrap_or_default();
                let regex = pattern.try_into().and_then(|pattern| Ok(Regex { pattern, options: options.try_into()? }));
                regex.map_or(Bson::Null, Bson::RegularExpression)
            }
            15 => Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: self.text().into_bytes() }),
            16 => [Bson::MinKey, Bson::MaxKey, Bson::Undefined, Bson::JavaScriptCode(self.text())]
                .get(usize::from(self.byte()) % 4)
                .cloned()
                .unwrap_or(Bson::Null),
            17 => Bson::String(format!("${}", self.name(&[]))),
            18 => Bson::String(format!(
                "$${}",
                ["ROOT", "NOW", "this", "REMOVE", "value"].get(usize::from(self.byte()) % 5).unwrap_or(&"a")
            )),
            19 => Bson::String(self.text()),
            20..=24 => Bson::Array((0..self.byte() % 4).map(|_| self.value(operators, depth + 1)).collect()),
            _ => Bson::Document(self.document(operators, depth + 1)),
        }
    }

    pub(super) fn text(&mut self) -> String {
        let length = usize::from(self.byte() % 12);
        let bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the names as a list.
pub(super) fn listed(names: BTreeSet<&'static str>) -> Vec<&'static str> {
    names.into_iter().collect()
}
