use super::{
    Direction, TypeBits,
    bits::{Forget, Losses, code},
    number, tag,
};
use crate::{
    order::bracket,
    raw::{Doc, Kind, Value, below},
};

/// Appends the ascending key of `value`. Keys compare as the values do in [`crate::order::compare`]. Takes one pass
/// over the value.
pub fn encode(value: Value<'_>, out: &mut Vec<u8>) {
    Encoder { out, losses: &mut Forget }.value(value);
}

/// Appends the key of `value` in a direction. A missing value has the key of null.
pub fn encode_directed(value: Option<Value<'_>>, direction: Direction, out: &mut Vec<u8>) {
    let start = out.len();
    encode(value.unwrap_or(Value::NULL), out);
    direction.apply(out.get_mut(start..).unwrap_or_default());
}

/// Appends the ascending key of `value`, and the information that the key loses to `bits`. A missing value (`None`) has the key of
/// null, and the bits distinguish it from null.
pub fn encode_typed(value: Option<Value<'_>>, out: &mut Vec<u8>, bits: &mut TypeBits) {
    match value {
        Some(value) => Encoder { out, losses: bits }.value(value),
        None => {
            out.push(tag::NULL);
            bits.except(code::MISSING, &[]);
        }
    }
}

struct Encoder<'e, L> {
    out: &'e mut Vec<u8>,
    losses: &'e mut L,
}

impl<L: Losses> Encoder<'_, L> {
    fn value(&mut self, value: Value<'_>) {
        let bytes = value.bytes();
        match value.kind() {
            Kind::MinKey => self.out.push(tag::MIN_KEY),
            Kind::Undefined => self.out.push(tag::UNDEFINED),
            Kind::Null => {
                self.out.push(tag::NULL);
                self.losses.keep();
            }
            Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal128 => {
                number::encode(value, self.out, self.losses);
            }
            Kind::String => {
                self.text(tag::STRING, value.text());
                self.losses.keep();
            }
            Kind::Symbol => {
                self.text(tag::STRING, value.text());
                self.losses.except(code::SYMBOL, &[]);
            }
            Kind::Document => {
                self.out.push(tag::DOCUMENT);
                self.document(Doc::new(bytes));
            }
            Kind::Array => self.array(value),
            Kind::Binary => {
                let (subtype, payload) = value.as_binary().unwrap_or_default();
                self.out.push(tag::BINARY);
                self.length(payload.len());
                self.out.push(subtype);
                self.out.extend_from_slice(payload);
            }
            Kind::ObjectId => {
                self.out.push(tag::OBJECT_ID);
                self.out.extend_from_slice(&value.as_object_id().unwrap_or_default());
            }
            Kind::Boolean => self.out.push(if value.as_bool() == Some(true) { tag::TRUE } else { tag::FALSE }),
            Kind::DateTime => {
                let millis = value.as_millis().unwrap_or_default();
                self.out.push(tag::DATE);
                // With the sign bit flipped, signed numbers sort as unsigned ones.
                self.out.extend_from_slice(&(millis ^ i64::MIN).to_be_bytes());
            }
            Kind::Timestamp => {
                self.out.push(tag::TIMESTAMP);
                self.out.extend_from_slice(&value.as_timestamp().unwrap_or_default().to_be_bytes());
            }
            Kind::Regex => {
                let (pattern, options) = value.as_regex().unwrap_or_default();
                self.text(tag::REGEX, Some(pattern));
                escape(options, self.out);
                self.out.push(tag::END);
            }
            Kind::DbPointer => {
                let (namespace, id) = value.as_db_pointer().unwrap_or_default();
                self.out.push(tag::DB_POINTER);
                self.length(namespace.len());
                self.out.extend_from_slice(namespace);
                self.out.extend_from_slice(&id);
            }
            Kind::Code => self.text(tag::CODE, value.text()),
            Kind::CodeWithScope => {
                let (code, scope) = value.as_code_with_scope().unwrap_or((&[], Doc::new(&[])));
                self.text(tag::CODE_WITH_SCOPE, Some(code));
                self.document(scope);
            }
            Kind::MaxKey => self.out.push(tag::MAX_KEY),
        }
    }

    fn text(&mut self, tag: u8, text: Option<&[u8]>) {
        self.out.push(tag);
        escape(text.unwrap_or_default(), self.out);
        self.out.push(tag::END);
    }

    fn length(&mut self, length: usize) {
        // The length of a document is an int32, and so are those of its contents.
        self.out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }

    /// Encodes each element as class, name and value: the order in which documents compare.
    fn document(&mut self, doc: Doc<'_>) {
        for element in doc.elements() {
            let (class, _) = tag::of(bracket(element.value.kind()));
            self.text(class, Some(element.name));
            self.value(element.value);
        }
        self.out.push(tag::END);
    }

    fn array(&mut self, array: Value<'_>) {
        let elements = Doc::new(array.bytes());
        self.out.push(tag::ARRAY);
        if !L::RECORDS || is_canonical(elements) {
            self.losses.keep();
            elements.values().for_each(|element| self.value(element));
        } else {
            self.losses.raw(array);
            let mut inner = Encoder { out: &mut *self.out, losses: &mut Forget };
            elements.values().for_each(|element| inner.value(element));
        }
        self.out.push(tag::END);
    }
}

/// Returns whether an array's elements are named "0", "1", …, the names that decoding gives them.
fn is_canonical(array: Doc<'_>) -> bool {
    let mut name = super::decode::PositionNames::default();
    array.elements().all(|element| element.name == name.next())
}

/// Appends a text with its bytes 0, 1 and 2 escaped. The bytes 0 and 0xff never occur, inverted or not, and 1 ends the
/// text.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    if !has_escaped(text) {
        return out.extend_from_slice(text);
    }
    for &byte in text {
        if byte <= tag::ESCAPE {
            out.extend_from_slice(&[tag::ESCAPE, byte + 2]);
        } else {
            out.push(byte);
        }
    }
}

/// Returns whether the text contains a byte that must be escaped, tested eight bytes at a time.
#[inline]
pub(super) fn has_escaped(text: &[u8]) -> bool {
    let has_low = |word: &[u8; 8]| below(*word, tag::ESCAPE + 1) != 0;
    let (words, _) = text.as_chunks();
    match text.last_chunk() {
        Some(last) => words.iter().any(has_low) || has_low(last),
        None => text.iter().any(|&byte| byte <= tag::ESCAPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_must_be_escaped_is_found_anywhere() {
        for length in 0..=40 {
            assert!(!has_escaped(&vec![0xff; length]));
            for at in 0..length {
                for byte in [0, 1, 2, 3, 0x7f, 0x80, 0x82, 0xff] {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    assert_eq!(has_escaped(&text), byte <= tag::ESCAPE, "{byte} at {at} of {length}");
                }
            }
        }
    }
}
