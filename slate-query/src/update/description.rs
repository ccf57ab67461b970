//! The changes of an update, computed from the document before and the document after: MongoDB's `updateDescription`.
//!
//! The two documents are compared field by field in their order, as MongoDB does. Fields of the old document are skipped up to the next name of the
//! new one. If the old one ends first, the remaining fields of the new one count as set. Skipped fields that are not set count as removed. So
//! applying the description to the old document also gives the fields their new order. Within a document or an array of both, only the difference is
//! described, unless the whole value is shorter.

use crate::raw::{Doc, Element, Kind, Value, Writer};

/// One component of a path.
#[derive(Clone, Copy)]
enum Step<'d> {
    Field(&'d [u8]),
    Position(usize),
}

/// One of the three lists of changes in a description.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Updated,
    Removed,
    Truncated,
}

/// The description as it is collected, and the path of the documents that are compared.
#[derive(Default)]
struct Description<'d> {
    path: Vec<Step<'d>>,
    /// The names and positions of `path`, joined by dots.
    joined: Vec<u8>,
    updated: Vec<u8>,
    removed: Vec<u8>,
    truncated: Vec<u8>,
    /// The elements of `disambiguatedPaths`, for each [`Part`].
    ambiguous: [Vec<u8>; 3],
    counts: Counts,
    /// The value of `size` above which an enclosing value is set as a whole, so that the comparison of its parts can end.
    limit: Option<usize>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    removed: usize,
    truncated: usize,
}

/// The sizes before a comparison. `rewind` restores them if the comparison takes more bytes than the whole value.
struct Mark {
    counts: Counts,
    lengths: [usize; 6],
}

/// Maximum size of a description, in bytes. The names of many removed fields can exceed it.
const MAX_WRITTEN: usize = 32 << 20;

/// Bytes of an element of `truncatedArrays` that do not count, so that a short array is described as truncated, as by MongoDB: most of the lengths,
/// kinds and names, which are the same in each.
const TRUNCATION: usize = 24;

/// Appends to `out` `{updatedFields, removedFields, truncatedArrays, disambiguatedPaths?}`, a document that says how `new` differs from
/// `old`. The last field is there only if a path is ambiguous: a field's name contains a dot or is a number. Appends nothing and returns
/// `None` if the difference cannot be described: a document has two fields of one name, two changes have the same path (`a.b` of `{a: {b: 1},
/// "a.b": 1}`), or the description would be longer than 32 MiB.
///
/// Cost: reads both documents once, and compares only bytes.
pub fn describe(old: Doc<'_>, new: Doc<'_>, out: &mut Vec<u8>) -> Option<()> {
    let mut description = Description::default();
    description.document(old, new)?;
    if description.written() > MAX_WRITTEN {
        return None;
    }
    let start = out.len();
    description.write(out);
    if description.has_ambiguous_paths() && repeats_a_path(Doc::new(out.get(start..).unwrap_or_default())) {
        out.truncate(start);
        return None;
    }
    Some(())
}

impl<'d> Description<'d> {
    fn document(&mut self, whole_old: Doc<'d>, whole_new: Doc<'d>) -> Option<()> {
        let (mut old, mut new) = whole_old.elements_from_difference(whole_new);
        // Skips fields of `old` up to the next name of `new`.
        let (mut left_old, mut left_new) = (old.next(), new.next());
        let mut dropped: Vec<&'d [u8]> = Vec::new();
        while let (Some(before), Some(after)) = (&left_old, &left_new) {
            if before.name == after.name {
                if before.value.kind() != after.value.kind() || before.value.bytes() != after.value.bytes() {
                    self.value(Step::Field(after.name), before.value, after.value)?;
                    if self.is_in_vain() {
                        return Some(());
                    }
                    old.skip_common(&mut new);
                }
                left_new = new.next();
            } else {
                dropped.push(before.name);
            }
            left_old = old.next();
        }
        let rest = |first: Option<Element<'d>>, others| first.into_iter().chain(others);
        dropped.extend(rest(left_old, old).map(|field| field.name));
        let mut added: Vec<&'d [u8]> = Vec::new();
        for field in rest(left_new, new) {
            added.push(field.name);
            self.set(Step::Field(field.name), field.value);
            if self.is_in_vain() {
                return Some(());
            }
        }
        if dropped.is_empty() && added.is_empty() {
            return Some(());
        }
        if repeats_a_name(whole_old) || repeats_a_name(whole_new) {
            return None;
        }
        added.sort_unstable();
        for name in dropped.into_iter().filter(|name| added.binary_search(name).is_err()) {
            self.remove(name);
            if self.is_in_vain() {
                return Some(());
            }
        }
        Some(())
    }

    fn array(&mut self, old: Doc<'d>, new: Doc<'d>) -> Option<()> {
        let (mut old, mut new, mut at) = (old.values(), new.values(), 0);
        loop {
            match (old.next(), new.next()) {
                (Some(before), Some(after)) => {
                    if before.kind() != after.kind() || before.bytes() != after.bytes() {
                        self.value(Step::Position(at), before, after)?;
                        if self.is_in_vain() {
                            return Some(());
                        }
                    }
                }
                (None, Some(after)) => {
                    self.set(Step::Position(at), after);
                    if self.is_in_vain() {
                        return Some(());
                    }
                }
                (Some(_), None) => {
                    self.truncate(at);
                    return Some(());
                }
                (None, None) => return Some(()),
            }
            at += 1;
        }
    }

    /// Describes a changed value at `step` below the path; `None` as in [`describe`].
    fn value(&mut self, step: Step<'d>, old: Value<'d>, new: Value<'d>) -> Option<()> {
        let (old_parts, new_parts) = match (old.as_document(), new.as_document(), old.as_array(), new.as_array()) {
            (Some(old), Some(new), ..) | (.., Some(old), Some(new)) => (old, new),
            _ => {
                self.set(step, new);
                return Some(());
            }
        };
        let (mark, around, joined) = (self.mark(), self.limit, self.joined.len());
        if !self.path.is_empty() {
            self.joined.push(b'.');
        }
        join_step(step, &mut self.joined);
        self.path.push(step);
        // The kind, the path with its terminator, and the value.
        let most = (self.size() + 2 + self.joined.len()).saturating_add(new.bytes().len());
        self.limit = Some(around.map_or(most, |around| around.min(most)));
        match old.kind() {
            Kind::Array => self.array(old_parts, new_parts)?,
            _ => self.document(old_parts, new_parts)?,
        }
        self.path.pop();
        self.joined.truncate(joined);
        self.limit = around;
        if self.size() > most || self.written() > MAX_WRITTEN {
            self.rewind(&mark);
            self.set(step, new);
        }
        Some(())
    }

    fn set(&mut self, step: Step<'d>, value: Value<'d>) {
        let name = match step {
            Step::Field(name) => name.len(),
            Step::Position(_) => 1,
        };
        self.updated.reserve(self.joined.len() + name + 8 + value.bytes().len());
        self.updated.push(value.kind().byte());
        let start = self.updated.len();
        self.updated.extend_from_slice(&self.joined);
        if !self.path.is_empty() {
            self.updated.push(b'.');
        }
        join_step(step, &mut self.updated);
        let end = self.updated.len();
        self.updated.push(0);
        self.updated.extend_from_slice(value.bytes());
        if self.is_ambiguous(Some(step)) {
            let path = self.updated.get(start..end).unwrap_or_default().to_vec();
            self.disambiguate(Part::Updated, &path, Some(step));
        }
    }

    fn remove(&mut self, name: &'d [u8]) {
        let (step, mut path) = (Step::Field(name), self.joined.clone());
        if !self.path.is_empty() {
            path.push(b'.');
        }
        path.extend_from_slice(name);
        string(self.counts.removed, &path, &mut self.removed);
        self.counts.removed += 1;
        if self.is_ambiguous(Some(step)) {
            self.disambiguate(Part::Removed, &path, Some(step));
        }
    }

    /// Adds to `truncatedArrays` that the array at the path now has this length.
    fn truncate(&mut self, length: usize) {
        let mut truncated = Writer::new();
        truncated.append_string(b"field", &self.joined);
        truncated.append(b"newSize", Value::new(Kind::Int32, &int(length)));
        self.truncated.push(Kind::Document.byte());
        decimal(self.counts.truncated, &mut self.truncated);
        self.truncated.push(0);
        self.truncated.extend_from_slice(&truncated.finish());
        self.counts.truncated += 1;
        if self.is_ambiguous(None) {
            let path = self.joined.clone();
            self.disambiguate(Part::Truncated, &path, None);
        }
    }

    /// Whether the joined path is ambiguous: a name on it contains a dot or is a number.
    fn is_ambiguous(&self, last: Option<Step<'_>>) -> bool {
        let is_ambiguous = |step: &Step<'_>| match step {
            Step::Field(name) => name.contains(&b'.') || (!name.is_empty() && name.iter().all(u8::is_ascii_digit)),
            Step::Position(_) => false,
        };
        self.path.iter().chain(&last).any(is_ambiguous)
    }

    fn has_ambiguous_paths(&self) -> bool {
        self.ambiguous.iter().any(|paths| !paths.is_empty())
    }

    /// Adds the joined path to `disambiguatedPaths`, with its steps: those of the path, and `last`.
    fn disambiguate(&mut self, part: Part, joined: &[u8], last: Option<Step<'_>>) {
        let (mut steps, mut number) = (Writer::new(), Vec::new());
        for (at, step) in self.path.iter().chain(&last).enumerate() {
            number.clear();
            decimal(at, &mut number);
            match step {
                Step::Field(name) => steps.append_string(&number, name),
                Step::Position(position) => steps.append(&number, Value::new(Kind::Int32, &int(*position))),
            }
        }
        let [updated, removed, truncated] = &mut self.ambiguous;
        let out = match part {
            Part::Updated => updated,
            Part::Removed => removed,
            Part::Truncated => truncated,
        };
        out.push(Kind::Array.byte());
        out.extend_from_slice(joined);
        out.push(0);
        out.extend_from_slice(&steps.finish());
    }

    /// Whether the comparison can end, because an enclosing value will be set as a whole.
    fn is_in_vain(&self) -> bool {
        self.limit.is_some_and(|limit| self.size() > limit) || self.written() > MAX_WRITTEN
    }

    fn lengths(&self) -> [usize; 6] {
        let Self { updated, removed, truncated, ambiguous: [a, b, c], .. } = self;
        [updated, removed, truncated, a, b, c].map(Vec::len)
    }

    /// Returns the size of the collected elements, in bytes.
    fn written(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// Returns the size of the collected elements as it is compared with that of a whole value.
    fn size(&self) -> usize {
        self.written() - self.counts.truncated * TRUNCATION
    }

    fn mark(&self) -> Mark {
        Mark { counts: self.counts, lengths: self.lengths() }
    }

    fn rewind(&mut self, mark: &Mark) {
        self.counts = mark.counts;
        let Self { updated, removed, truncated, ambiguous: [a, b, c], .. } = self;
        for (bytes, length) in [updated, removed, truncated, a, b, c].into_iter().zip(mark.lengths) {
            bytes.truncate(length);
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.written() + 96);
        out.extend_from_slice(&[0; 4]);
        nested(Kind::Document, b"updatedFields", &[&self.updated], out);
        nested(Kind::Array, b"removedFields", &[&self.removed], out);
        nested(Kind::Array, b"truncatedArrays", &[&self.truncated], out);
        if self.has_ambiguous_paths() {
            let [updated, removed, truncated] = &self.ambiguous;
            nested(Kind::Document, b"disambiguatedPaths", &[updated, removed, truncated], out);
        }
        out.push(0);
        let length = int(out.len() - start);
        if let Some(head) = out.get_mut(start..start + 4) {
            head.copy_from_slice(&length);
        }
    }
}

/// Appends a document or an array that consists of these encoded elements.
fn nested(kind: Kind, name: &[u8], elements: &[&[u8]], out: &mut Vec<u8>) {
    out.push(kind.byte());
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(&int(elements.iter().map(|bytes| bytes.len()).sum::<usize>() + 5));
    elements.iter().for_each(|bytes| out.extend_from_slice(bytes));
    out.push(0);
}

/// Appends the element of an array at this position, a string.
fn string(position: usize, text: &[u8], out: &mut Vec<u8>) {
    out.push(Kind::String.byte());
    decimal(position, out);
    out.push(0);
    out.extend_from_slice(&int(text.len() + 1));
    out.extend_from_slice(text);
    out.push(0);
}

fn int(number: usize) -> [u8; 4] {
    i32::try_from(number).unwrap_or(i32::MAX).to_le_bytes()
}

fn decimal(number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
}

fn join_step(step: Step<'_>, out: &mut Vec<u8>) {
    match step {
        Step::Field(name) => out.extend_from_slice(name),
        Step::Position(position) => decimal(position, out),
    }
}

fn repeats_a_name(document: Doc<'_>) -> bool {
    repeats(document.elements().map(|field| field.name).collect())
}

/// Returns whether two changes of a description have the same path.
fn repeats_a_path(description: Doc<'_>) -> bool {
    let part = |name: &str| description.get(name).and_then(|part| part.as_document().or(part.as_array()));
    let mut paths: Vec<&[u8]> = Vec::new();
    paths.extend(part("updatedFields").into_iter().flat_map(Doc::elements).map(|field| field.name));
    let removed = part("removedFields").into_iter().flat_map(Doc::values);
    let truncated = part("truncatedArrays").into_iter().flat_map(Doc::values);
    let truncated = truncated.filter_map(|array| array.as_document()?.get("field"));
    paths.extend(removed.chain(truncated).filter_map(Value::as_str).map(str::as_bytes));
    repeats(paths)
}

fn repeats(mut names: Vec<&[u8]>) -> bool {
    names.sort_unstable();
    names.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};

    use super::*;

    fn described(old: &bson::Document, new: &bson::Document) -> Option<bson::Document> {
        let raw = |document| RawDocumentBuf::try_from(document).unwrap();
        let mut bytes = Vec::new();
        describe(Doc::from(&raw(old)), Doc::from(&raw(new)), &mut bytes)?;
        Some(RawDocumentBuf::from_bytes(bytes).unwrap().try_into().unwrap())
    }

    #[test]
    fn many_fields_below_a_long_name_are_described_as_one() {
        let name = "n".repeat(100_000);
        let array = |first: i32| (first..first + 20_000).map(bson::Bson::from).collect::<Vec<_>>();
        let description = described(&doc! { &name: { "a": array(0) } }, &doc! { &name: { "a": array(1) } }).unwrap();
        let updated = description.get_document("updatedFields").unwrap();
        assert_eq!(updated, &doc! { format!("{name}.a"): array(1) });
    }

    /// Each path would have the long name once more: 8 GB for either document.
    #[test]
    fn many_new_or_dropped_parts_below_a_long_name_are_described_as_one() {
        let name = "n".repeat(1 << 20);
        let numbers: Vec<i32> = (0..8_000).collect();
        let fields: bson::Document = numbers.iter().map(|number| (format!("f{number}"), number.into())).collect();
        for (less, more) in [(doc! {}.into(), fields.into()), (bson::Bson::from([0; 0].to_vec()), numbers.into())] {
            for (old, new) in [(&less, &more), (&more, &less)] {
                let describe = |old: &bson::Bson, new: &bson::Bson| {
                    let raw = |value: &bson::Bson| RawDocumentBuf::try_from(&doc! { &name: value }).unwrap();
                    let mut bytes = Vec::new();
                    describe(Doc::from(&raw(old)), Doc::from(&raw(new)), &mut bytes).map(|()| bytes)
                };
                let bytes = describe(old, new).expect("the value is described as a whole, or the array as truncated");
                assert!(bytes.len() < 4 << 20 && bytes.capacity() < 64 << 20, "{} bytes", bytes.len());
            }
        }
    }

    /// Each leaf of ten levels has a path of its own, which together take more bytes than the value.
    #[test]
    fn a_value_whose_parts_take_more_bytes_is_described_as_a_whole() {
        let tree =
            |leaf: i32| (0..10).fold(bson::Bson::from(leaf), |part, _| doc! { "l": part.clone(), "r": part }.into());
        let (old, new) = (doc! { "w": tree(1) }, doc! { "w": tree(2) });
        let description = described(&old, &new).unwrap();
        let length = |document: &bson::Document| RawDocumentBuf::try_from(document).unwrap().as_bytes().len();
        let updated = description.get_document("updatedFields").unwrap();
        assert!(length(updated) <= length(&new), "{} bytes for {}", length(updated), length(&new));
        // Of few changes, the parts are described.
        let part = described(&doc! { "a": { "b": 1, "c": 1 } }, &doc! { "a": { "b": 2, "c": 2 } }).unwrap();
        assert_eq!(part.get_document("updatedFields").unwrap(), &doc! { "a.b": 2, "a.c": 2 });
    }

    #[test]
    fn two_changes_of_one_path_are_not_described() {
        let old = doc! { "a": { "b": [1, 2], "c": 1 }, "a.b": [1, 2], "d": 1 };
        for new in [
            doc! { "a": { "b": 2, "c": 1 }, "a.b": 2, "d": 1 },
            doc! { "a": { "b": 2, "c": 1 }, "d": 1 },
            doc! { "a": { "b": [1], "c": 1 }, "a.b": [1], "d": 1 },
            doc! { "a": { "c": 1 }, "a.b": [1], "d": 1 },
        ] {
            assert_eq!(described(&old, &new), None, "{new}");
        }
        let one = described(&old, &doc! { "a": { "b": [1, 2], "c": 2 }, "a.b": 2, "d": 1 }).unwrap();
        assert_eq!(one.get_document("updatedFields").unwrap(), &doc! { "a.c": 2, "a.b": 2 });
    }

    #[test]
    fn repeated_names_are_not_described() {
        let twice = |first: i32, second: i32| {
            let mut document = RawDocumentBuf::new();
            document.append(bson::cstr!("a"), first);
            document.append(bson::cstr!("a"), second);
            document
        };
        let once = RawDocumentBuf::try_from(&doc! { "a": 2 }).unwrap();
        let mut out = Vec::new();
        assert_eq!(describe(Doc::from(&twice(1, 2)), Doc::from(&once), &mut out), None);
        assert_eq!(describe(Doc::from(&once), Doc::from(&twice(1, 2)), &mut out), None);
        assert!(out.is_empty());
    }
}
