//! What an update changed, computed from the document before and the document after: MongoDB's `updateDescription`.
//!
//! The two documents are compared field by field in their order, as MongoDB does. From the first field on whose name differs, the remaining
//! fields of the old document count as removed, and those of the new one as set, so that applying the description to the old document
//! also gives the fields their new order. Within a document or an array of both, only the difference is described, unless the whole value is
//! shorter.

use crate::raw::{Doc, Element, Kind, Value, Writer};

/// One component of a path.
#[derive(Clone, Copy)]
enum Step<'d> {
    Field(&'d [u8]),
    Position(usize),
}

/// The descriptions that are being collected, and the path of the documents that are compared.
struct Description<'d> {
    path: Vec<Step<'d>>,
    updated: Vec<(Vec<Step<'d>>, Value<'d>)>,
    removed: Vec<Vec<Step<'d>>>,
    truncated: Vec<(Vec<Step<'d>>, usize)>,
    /// About the bytes of what was collected.
    size: usize,
    /// The size beyond which a value around the compared ones is described as a whole: comparing on would be in vain.
    limit: usize,
    /// About the bytes of what was collected with the paths as they are written.
    written: usize,
}

/// Lengths of the collected lists, to which a comparison that became too long returns.
struct Mark {
    updated: usize,
    removed: usize,
    truncated: usize,
    size: usize,
    written: usize,
}

/// The longest description. Paths are repeated for every field, so that many fields below long names would make a longer one than both
/// documents; the values around them are then described as a whole.
const MAX_WRITTEN: usize = 32 << 20;

/// Returns `{updatedFields, removedFields, truncatedArrays, disambiguatedPaths?}`, a document that says how `new` differs from `old`. The
/// last field is there only if a path is ambiguous: a field's name contains a dot or is a number. `None` if the difference cannot be
/// described: a document has two fields of one name, or the description would be longer than 32 MiB.
///
/// Cost: reads both documents once where they are equal, and compares only bytes.
pub fn describe(old: Doc<'_>, new: Doc<'_>) -> Option<Vec<u8>> {
    let (path, updated, removed, truncated) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut description = Description { path, updated, removed, truncated, size: 0, limit: usize::MAX, written: 0 };
    description.document(old, new)?;
    (description.written <= MAX_WRITTEN).then(|| description.write())
}

impl<'d> Description<'d> {
    fn document(&mut self, old: Doc<'d>, new: Doc<'d>) -> Option<()> {
        let (whole_old, whole_new) = (old, new);
        let (mut old, mut new) = (old.elements(), new.elements());
        // Both iterate over the same names until one of them has another one.
        let (mut left_old, mut left_new) = (old.next(), new.next());
        let mut dropped: Vec<&'d [u8]> = Vec::new();
        while let (Some(before), Some(after)) = (&left_old, &left_new) {
            if before.name == after.name {
                if before.value.kind() != after.value.kind() || before.value.bytes() != after.value.bytes() {
                    self.path.push(Step::Field(after.name));
                    self.value(before.value, after.value)?;
                    self.path.pop();
                    if self.is_in_vain() {
                        return Some(());
                    }
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
            self.path.push(Step::Field(field.name));
            self.set(field.value);
            self.path.pop();
        }
        if dropped.is_empty() && added.is_empty() {
            return Some(());
        }
        if repeats_a_name(whole_old) || repeats_a_name(whole_new) {
            return None;
        }
        added.sort_unstable();
        for name in dropped.into_iter().filter(|name| added.binary_search(name).is_err()) {
            let path: Vec<Step<'d>> = self.path.iter().copied().chain([Step::Field(name)]).collect();
            self.size += name.len() + 2;
            self.written += size_of_path(&path);
            self.removed.push(path);
        }
        Some(())
    }

    fn array(&mut self, old: Doc<'d>, new: Doc<'d>) -> Option<()> {
        let (mut old, mut new, mut at) = (old.values(), new.values(), 0);
        loop {
            let (before, after) = (old.next(), new.next());
            self.path.push(Step::Position(at));
            match (before, after) {
                (Some(before), Some(after)) => {
                    if before.kind() != after.kind() || before.bytes() != after.bytes() {
                        self.value(before, after)?;
                        if self.is_in_vain() {
                            self.path.pop();
                            return Some(());
                        }
                    }
                }
                (None, Some(after)) => self.set(after),
                (before, None) => {
                    self.path.pop();
                    if before.is_some() {
                        self.size += 16;
                        self.written += 16 + size_of_path(&self.path);
                        self.truncated.push((self.path.clone(), at));
                    }
                    return Some(());
                }
            }
            self.path.pop();
            at += 1;
        }
    }

    /// Describes a value that differs.
    fn value(&mut self, old: Value<'d>, new: Value<'d>) -> Option<()> {
        let (mark, around) = (self.mark(), self.limit);
        let most = mark.size.saturating_add(new.bytes().len());
        self.limit = around.min(most);
        match (old.as_document(), new.as_document(), old.as_array(), new.as_array()) {
            (Some(old), Some(new), ..) => self.document(old, new)?,
            (.., Some(old), Some(new)) => self.array(old, new)?,
            _ => {
                self.limit = around;
                self.set(new);
                return Some(());
            }
        }
        self.limit = around;
        if self.size > most || self.written > MAX_WRITTEN {
            self.rewind(&mark);
            self.set(new);
        }
        Some(())
    }

    fn set(&mut self, value: Value<'d>) {
        let name = match self.path.last() {
            Some(Step::Field(name)) => name.len(),
            _ => 1,
        };
        self.size += value.bytes().len() + name + 2;
        self.written += value.bytes().len() + size_of_path(&self.path);
        self.updated.push((self.path.clone(), value));
    }

    /// Whether comparing on is in vain, because a value around is described as a whole.
    fn is_in_vain(&self) -> bool {
        self.size > self.limit || self.written > MAX_WRITTEN
    }

    fn mark(&self) -> Mark {
        let Self { updated, removed, truncated, size, written, .. } = self;
        let (updated, removed, truncated) = (updated.len(), removed.len(), truncated.len());
        Mark { updated, removed, truncated, size: *size, written: *written }
    }

    fn rewind(&mut self, mark: &Mark) {
        self.updated.truncate(mark.updated);
        self.removed.truncate(mark.removed);
        self.truncated.truncate(mark.truncated);
        (self.size, self.written) = (mark.size, mark.written);
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(self.size + 96);
        let (mut path, mut number) = (Vec::new(), Vec::new());
        out.open_document(b"updatedFields");
        for (steps, value) in &self.updated {
            join(steps, &mut path);
            out.append(&path, *value);
        }
        out.close();
        out.open_array(b"removedFields");
        for (at, steps) in self.removed.iter().enumerate() {
            join(steps, &mut path);
            decimal(at, &mut number);
            out.append_string(&number, &path);
        }
        out.close();
        out.open_array(b"truncatedArrays");
        for (at, (steps, size)) in self.truncated.iter().enumerate() {
            join(steps, &mut path);
            decimal(at, &mut number);
            out.open_document(&number);
            out.append_string(b"field", &path);
            out.append(b"newSize", Value::new(Kind::Int32, &int(*size)));
            out.close();
        }
        out.close();
        let paths = self.updated.iter().map(|(steps, _)| steps).chain(&self.removed);
        let paths = paths.chain(self.truncated.iter().map(|(steps, _)| steps));
        let mut ambiguous = paths.filter(|steps| is_ambiguous(steps)).peekable();
        if ambiguous.peek().is_some() {
            out.open_document(b"disambiguatedPaths");
            for steps in ambiguous {
                join(steps, &mut path);
                out.open_array(&path);
                for (at, step) in steps.iter().enumerate() {
                    decimal(at, &mut number);
                    match step {
                        Step::Field(name) => out.append_string(&number, name),
                        Step::Position(position) => out.append(&number, Value::new(Kind::Int32, &int(*position))),
                    }
                }
                out.close();
            }
            out.close();
        }
        out.finish()
    }
}

fn int(number: usize) -> [u8; 4] {
    i32::try_from(number).unwrap_or(i32::MAX).to_le_bytes()
}

fn decimal(number: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(number.to_string().as_bytes());
}

fn join(steps: &[Step<'_>], out: &mut Vec<u8>) {
    out.clear();
    for (at, step) in steps.iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        match step {
            Step::Field(name) => out.extend_from_slice(name),
            Step::Position(position) => out.extend_from_slice(position.to_string().as_bytes()),
        }
    }
}

/// Returns about the bytes that a path takes in the description.
fn size_of_path(steps: &[Step<'_>]) -> usize {
    let step = |step: &Step<'_>| match step {
        Step::Field(name) => name.len() + 1,
        Step::Position(_) => 4,
    };
    let joined = steps.iter().map(step).sum::<usize>() + 2;
    // Written joined, and once more step by step.
    if is_ambiguous(steps) { 2 * joined + 8 * steps.len() } else { joined }
}

fn repeats_a_name(document: Doc<'_>) -> bool {
    let mut names: Vec<&[u8]> = document.elements().map(|field| field.name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

/// Whether the joined path does not say which fields it leads through.
fn is_ambiguous(steps: &[Step<'_>]) -> bool {
    steps.iter().any(|step| match step {
        Step::Field(name) => name.contains(&b'.') || (!name.is_empty() && name.iter().all(u8::is_ascii_digit)),
        Step::Position(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};

    use super::*;

    fn described(old: &bson::Document, new: &bson::Document) -> Option<bson::Document> {
        let raw = |document| RawDocumentBuf::try_from(document).unwrap();
        let bytes = describe(Doc::from(&raw(old)), Doc::from(&raw(new)))?;
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

    #[test]
    fn repeated_names_are_not_described() {
        let twice = |first: i32, second: i32| {
            let mut document = RawDocumentBuf::new();
            document.append(bson::cstr!("a"), first);
            document.append(bson::cstr!("a"), second);
            document
        };
        let once = RawDocumentBuf::try_from(&doc! { "a": 2 }).unwrap();
        assert_eq!(describe(Doc::from(&twice(1, 2)), Doc::from(&once)), None);
        assert_eq!(describe(Doc::from(&once), Doc::from(&twice(1, 2))), None);
    }
}
