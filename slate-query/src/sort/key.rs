use super::Sort;
use crate::{
    Code, Error, Result,
    key::{Direction, encode_directed},
    path::Path,
    pattern::{Emit, Positions, Slot, expand, follow},
    raw::{Doc, Value},
};

impl Sort {
    /// Appends to `out` the bytes by which `doc` sorts: comparing them as bytes is comparing the documents. A missing
    /// field sorts as null, an array by its least element (its greatest where the field descends), an empty one as
    /// undefined. Never truncated; no allocation beyond `out`.
    ///
    /// # Errors
    /// `BadValue` (2) where two of the fields lead through different arrays; 16746 where a name spells both an array's
    /// position and a field of a document within that array. `out` then holds what it did.
    pub fn key(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match self.plain_key(doc, None, out) {
            Plain::Whole | Plain::Above => return Ok(()),
            Plain::Array => out.truncate(start),
        }
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

    /// As [`Sort::key`], where the document's key is not above `bound`; else `false` as soon as that is seen and no error
    /// can come of the fields that are left, and `out` holds what was written until then. `out` must be empty.
    ///
    /// # Errors
    /// As [`Sort::key`].
    pub fn key_up_to(&self, doc: Doc<'_>, bound: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match self.plain_key(doc, Some(bound), out) {
            Plain::Whole => Ok(true),
            Plain::Above => Ok(false),
            Plain::Array => {
                out.clear();
                self.key(doc, out)?;
                Ok(out.as_slice() <= bound)
            }
        }
    }

    /// Writes the key of a document in which no path leads through an array.
    #[inline]
    fn plain_key(&self, doc: Doc<'_>, bound: Option<&[u8]>, out: &mut Vec<u8>) -> Plain {
        for (at, (path, direction)) in self.fields.iter().enumerate() {
            match follow(path.parts(), 0, doc) {
                Slot::Value(value) => encode_directed(Some(value), *direction, out),
                Slot::Missing => encode_directed(None, *direction, out),
                Slot::Array(..) | Slot::Open(_) => return Plain::Array,
            }
            if bound.is_some_and(|bound| out.as_slice() > bound.get(..out.len()).unwrap_or(bound))
                && self.cannot_fail_behind(at)
            {
                return Plain::Above;
            }
        }
        Plain::Whole
    }

    /// Whether the fields behind that one give a key of any document: one alone has no other to be parallel with, and
    /// without a position in its path nothing that it could spell besides.
    fn cannot_fail_behind(&self, at: usize) -> bool {
        match self.fields.get(at + 1..) {
            None | Some([]) => true,
            Some([(path, _)]) => !path.has_position(),
            Some(_) => false,
        }
    }
}

/// What came of writing a key the short way.
enum Plain {
    Whole,
    /// It is above the bound.
    Above,
    /// An array stands on the way, and what was written is of no use.
    Array,
}

/// Keeps the least of the keys it is given, in place.
struct Least<'l> {
    fields: &'l [(Path, Direction)],
    /// Where the least key begins and ends; equal before the first.
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
