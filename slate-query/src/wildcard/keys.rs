use std::collections::HashSet;

use super::{WildcardPattern, selection::Extent};
use crate::{
    Code, Error, Result,
    key::Direction,
    pattern::{Emit, Keys, Positions, expand},
    raw::{Doc, Kind, Value},
};

/// Up to this number of fields, repeated names are found by comparing each name with the earlier ones.
const FEW_FIELDS: usize = 16;

/// Most entries of a document in an index that combines several keys of other fields with each value of the wildcard. As in MongoDB.
const MAX_COMBINED: usize = 100_000;

impl WildcardPattern {
    /// Writes into `out` (cleared first) the entries of `doc`. There may be none if no field precedes the wildcard.
    ///
    /// # Errors
    /// As [`KeyPattern::keys`](crate::pattern::KeyPattern::keys) for the other fields; `CannotBuildIndexKeys` (201) if arrays in them
    /// give more than 100,000 entries.
    pub fn keys(&self, doc: Doc<'_>, out: &mut Keys) -> Result<()> {
        out.clear(self.others().len());
        let mut others = Others { values: Vec::new(), keys: 0, multikey: out.multikey_mut() };
        if self.others().is_empty() {
            others.keys = 1;
        } else {
            expand(self.others(), doc, Positions::AndFields, &mut others)?;
        }
        let Others { values, keys: combined, .. } = others;
        let mut walk = Walk {
            pattern: self,
            others: &values,
            combined,
            keys: out,
            path: String::new(),
            depth: 0,
            text: Vec::new(),
            room: Room::Left,
        };
        if self.has_part_of_others() {
            walk.others_alone();
        }
        walk.fields(doc, Extent::Partly);
        if walk.room == Room::None {
            let message = format!("a document has at most {MAX_COMBINED} entries in a compound wildcard index");
            return Err(Error::new(Code::CANNOT_BUILD_INDEX_KEYS, message));
        }
        out.settle();
        Ok(())
    }
}

/// Collects the keys of the fields other than the wildcard.
struct Others<'k, 'a> {
    /// The values of all combinations, one after the other: an array in these fields gives several.
    values: Vec<Option<Value<'a>>>,
    /// The number of combinations.
    keys: usize,
    multikey: &'k mut [u64],
}

impl<'a> Emit<'a> for Others<'_, 'a> {
    fn key(&mut self, values: &[Option<Value<'a>>]) {
        self.values.extend_from_slice(values);
        self.keys += 1;
    }

    fn array(&mut self, field: usize, names: usize) {
        if let Some(mask) = self.multikey.get_mut(field) {
            *mask |= 1 << names.saturating_sub(1).min(63);
        }
    }
}

/// Whether a document may have more entries; see [`MAX_COMBINED`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Left,
    None,
}

/// A walk over the fields of a document.
struct Walk<'w, 'a> {
    pattern: &'w WildcardPattern,
    /// The values of the fields other than the wildcard, one combination after the other.
    others: &'w [Option<Value<'a>>],
    /// The number of combinations in `others`.
    combined: usize,
    keys: &'w mut Keys,
    /// The path of the current field.
    path: String,
    /// The number of names in the path.
    depth: usize,
    /// A buffer for the path as a value.
    text: Vec<u8>,
    room: Room,
}

impl Walk<'_, '_> {
    /// Adds the entries of the fields of a document. `extent` says which values in the document the index contains. Returns whether the document has
    /// a field that can be named in a path.
    fn fields(&mut self, doc: Doc<'_>, extent: Extent) -> bool {
        let (mut has_fields, mut seen) = (false, HashSet::new());
        let has_many = doc.elements().nth(FEW_FIELDS).is_some();
        for (place, element) in doc.elements().enumerate() {
            let is_repeated = match has_many {
                true => !seen.insert(element.name),
                false => doc.elements().take(place).any(|earlier| earlier.name == element.name),
            };
            // No path leads to a field with a dot in its name, or to the second field of a name.
            let Ok(name) = std::str::from_utf8(element.name) else { continue };
            if is_repeated || name.contains('.') {
                continue;
            }
            has_fields = true;
            let length = self.path.len();
            if self.depth > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.depth += 1;
            let extent = if extent == Extent::Whole { extent } else { self.pattern.extent(&self.path) };
            if extent != Extent::Nothing {
                self.value(element.value, extent);
            }
            self.depth -= 1;
            self.path.truncate(length);
        }
        has_fields
    }

    fn value(&mut self, value: Value<'_>, extent: Extent) {
        let Some(array) = value.as_array() else { return self.single(value, extent) };
        self.keys.add_array(&self.path);
        if array.is_empty() {
            return self.entry(Value::UNDEFINED, extent);
        }
        for element in array.values() {
            // An array within an array is one value.
            self.single(element, extent);
        }
    }

    fn single(&mut self, value: Value<'_>, extent: Extent) {
        if value.kind() != Kind::Document {
            return self.entry(value, extent);
        }
        let document = Doc::new(value.bytes());
        if !self.fields(document, extent) {
            self.entry(Value::new(Kind::Document, Doc::EMPTY.bytes()), extent);
        }
    }

    /// Adds the entries of a value at the current path, one for each key of the other fields.
    fn entry(&mut self, value: Value<'_>, extent: Extent) {
        if extent == Extent::OnlyBelow || self.is_full() {
            return;
        }
        write_text(&self.path, &mut self.text);
        let path = (Some(Value::new(Kind::String, &self.text)), Direction::Ascending);
        let value = (Some(value), self.pattern.direction());
        let (before, after) = self.pattern.others().split_at(self.pattern.before());
        for key in 0..self.combined {
            let others = self.others.iter().skip(key * self.pattern.others().len()).copied();
            let first = others.clone().zip(before).map(|(value, (_, direction))| (value, *direction));
            let last = others.skip(before.len()).zip(after).map(|(value, (_, direction))| (value, *direction));
            self.keys.push([path].into_iter().chain(first).chain([value]).chain(last));
        }
    }

    /// Adds the entries of the other fields alone, without a path.
    fn others_alone(&mut self) {
        for key in 0..self.combined {
            if self.is_full() {
                return;
            }
            let others = self.others.iter().skip(key * self.pattern.others().len()).copied();
            let others = others.zip(self.pattern.others()).map(|(value, (_, direction))| (value, *direction));
            self.keys.push([(None, Direction::Ascending)].into_iter().chain(others));
        }
    }

    /// Returns whether the document already has as many entries as it may have. If the other fields have a single key,
    /// the size of the document limits the entries.
    fn is_full(&mut self) -> bool {
        if self.combined > 1 && self.keys.len() + self.combined > MAX_COMBINED {
            self.room = Room::None;
        }
        self.room == Room::None
    }
}

/// Writes into `out` (cleared first) the bytes of a string value.
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&i32::try_from(text.len() + 1).unwrap_or(i32::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}
