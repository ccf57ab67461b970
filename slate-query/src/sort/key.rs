use std::cmp::Ordering;

use super::Sort;
use crate::{
    Code, Error, Result,
    key::{self, Decoded, Direction, TypeReader, encode_directed},
    order,
    path::Path,
    pattern::{Emit, Positions, Slot, expand, follow},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

impl Sort {
    /// Appends the sort key of `doc` to `out`: bytes that compare as the documents do. A missing field sorts as null,
    /// an array by its least element (by its greatest if the field descends), an empty array as undefined. The key is
    /// never truncated, and only `out` is allocated.
    ///
    /// # Errors
    /// `BadValue` (2) if two of the fields lead through different arrays; 16746 if a name is both a position of an
    /// array and a field of a document in it. Then `out` is unchanged.
    pub fn key(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        if let Some(collation) = &self.collation {
            let is_wanted = |name: &[u8]| {
                self.fields.iter().any(|(path, _)| path.parts().first().is_some_and(|first| first.name_bytes() == name))
            };
            let mut collated = Writer::new();
            collation.write_fields(doc, is_wanted, &mut collated);
            return self.key_of(Doc::new(&collated.finish()), out);
        }
        self.key_of(doc, out)
    }

    fn key_of(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        if self.plain_key(doc, out) {
            return Ok(());
        }
        out.truncate(start);
        let mut least = Least { fields: &self.fields, start, end: start, out };
        expand(&self.fields, doc, Positions::Alone, &mut least).map_err(|error| {
            out.truncate(start);
            match error.code() {
                Code::CANNOT_INDEX_PARALLEL_ARRAYS => {
                    Error::new(Code::BAD_VALUE, "cannot sort with keys that are parallel arrays")
                }
                _ => error,
            }
        })
    }

    /// Decodes a sort key of this sort into values that documents can be compared with; `None` if the key is not valid.
    /// [`is_above`](Self::is_above) then returns `false` for documents that differ from the key in the first `shown` fields.
    pub fn bound(&self, key: &[u8], shown: usize) -> Option<Bound> {
        let mut rest = key;
        let mut value = |direction| match key::decode(&mut rest, direction, &mut TypeReader::new(&[]))? {
            Decoded::Value(value) => Some(value),
            Decoded::Missing => None,
        };
        let values = self.fields.iter().map(|(_, direction)| value(*direction)).collect::<Option<_>>()?;
        Some(Bound { values, shown })
    }

    /// Returns `true` only if the document's key is above the bound; [`Sort::key`] does not fail for such a document. Returns
    /// `false` if it is not, or if only the key can decide. Much faster than writing the key.
    #[inline]
    pub fn is_above(&self, doc: Doc<'_>, bound: &Bound) -> bool {
        if self.collation.is_some() {
            return false;
        }
        for (at, ((path, direction), bounded)) in self.fields.iter().zip(&bound.values).enumerate() {
            let value = match path.parts() {
                [part] => part.find(doc),
                parts => match follow(parts, 0, doc) {
                    Slot::Value(value) | Slot::Array(value, _) => Some(value),
                    Slot::Missing => None,
                    Slot::Open(_) => return false,
                },
            };
            let value = value.unwrap_or(Value::NULL);
            if value.kind() == Kind::Array {
                // The document is sorted by one of the array's elements, which only the key determines.
                return false;
            }
            let order = order::compare(value, bounded.as_value());
            match (order, direction) {
                (Ordering::Equal, _) => {}
                (Ordering::Greater, Direction::Ascending) | (Ordering::Less, Direction::Descending) => {
                    return at >= bound.shown && self.cannot_fail_behind(at);
                }
                (Ordering::Less, Direction::Ascending) | (Ordering::Greater, Direction::Descending) => return false,
            }
        }
        false
    }

    /// Writes the key of a document in which no path leads through an array; returns false for other documents.
    #[inline]
    fn plain_key(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> bool {
        for (path, direction) in &self.fields {
            if let [part] = path.parts() {
                let value = part.find(doc);
                if value.is_some_and(|value| value.kind() == Kind::Array) {
                    return false;
                }
                encode_directed(value, *direction, out);
                continue;
            }
            match follow(path.parts(), 0, doc) {
                Slot::Value(value) => encode_directed(Some(value), *direction, out),
                Slot::Missing => encode_directed(None, *direction, out),
                Slot::Array(..) | Slot::Open(_) => return false,
            }
        }
        true
    }

    /// Returns whether computing the keys of the fields after `at` succeeds for every document, so that it may be
    /// skipped. It can fail with two fields, which may lead through different arrays, and on a path with a position,
    /// which may be ambiguous.
    fn cannot_fail_behind(&self, at: usize) -> bool {
        match self.fields.get(at + 1..) {
            None | Some([]) => true,
            Some([(path, _)]) => !path.has_position(),
            Some(_) => false,
        }
    }
}

/// A sort key with which rows are compared before their own key is made; see [`Sort::bound`].
#[derive(Clone, Debug)]
pub struct Bound {
    values: Vec<OwnedValue>,
    shown: usize,
}

/// Retains the least of the keys that it receives, in place.
struct Least<'l> {
    fields: &'l [(Path, Direction)],
    /// Where the least key so far starts in `out`; equal to `end` before the first.
    start: usize,
    end: usize,
    out: &'l mut Vec<u8>,
}

impl<'a> Emit<'a> for Least<'_> {
    #[inline]
    fn key(&mut self, values: &[Option<Value<'a>>]) {
        for (value, (_, direction)) in values.iter().zip(self.fields) {
            encode_directed(*value, *direction, self.out);
        }
        let first = self.end == self.start;
        if first || self.out.get(self.end..) < self.out.get(self.start..self.end) {
            self.out.drain(self.start..self.end);
        } else {
            self.out.truncate(self.end);
        }
        self.end = self.out.len();
    }

    #[inline]
    fn array(&mut self, _: usize, _: usize) {}
}
