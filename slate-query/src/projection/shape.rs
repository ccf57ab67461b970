use std::ops::Range;

use super::{
    elem_match::ElemMatch,
    output,
    tree::{Action, Branch},
};
use crate::{
    raw::{Doc, Kind, Names, Value},
    work,
};

/// The set of fields that a projection shows.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    others: Others,
    /// Sorted by name.
    fields: Box<[Field]>,
    /// The names of `fields`, in the same order.
    names: Names,
    scalars: Scalars,
    /// The fields of `$elemMatch` in an inclusion, written after all others.
    added: Box<[ElemMatch]>,
}

/// Whether a shape includes or excludes the fields that it does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Kept,
    Dropped,
}

/// How a projection within an array treats elements that are not documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scalars {
    Kept,
    Dropped,
    /// Replaced by empty documents, to which computed fields are added.
    Emptied,
}

#[derive(Clone, Debug)]
struct Field {
    name: Box<[u8]>,
    part: Part,
}

#[derive(Clone, Debug)]
enum Part {
    /// The whole field is shown if [`Others`] are dropped, and dropped if they are shown.
    Whole,
    /// The shape applies to its document, or to the documents in its array.
    Within(Shape),
    /// One element of its array is shown.
    Element(ElemMatch),
}

impl Shape {
    /// Returns the shape that shows only the included paths of `branch`.
    pub(super) fn inclusion(branch: Branch) -> Self {
        let scalars = if branch.additions().is_empty() { Scalars::Dropped } else { Scalars::Emptied };
        let mut fields = Vec::new();
        let mut added = Vec::new();
        for (name, action) in branch.fields.into_entries() {
            let part = match action {
                Action::Include | Action::Slice(_) | Action::Positional => Part::Whole,
                Action::Within(branch) => Part::Within(Self::inclusion(branch)),
                Action::ElemMatch(filter) => {
                    added.push(ElemMatch::new(&name, filter));
                    continue;
                }
                Action::Exclude | Action::Computed(_) => continue,
            };
            fields.push(Field { name: name.into_boxed_bytes(), part });
        }
        Self::new(Others::Dropped, scalars, fields, added)
    }

    /// Returns the shape that shows all but the excluded paths of `branch`.
    pub(super) fn exclusion(branch: Branch) -> Self {
        let mut fields = Vec::new();
        for (name, action) in branch.fields.into_entries() {
            let part = match action {
                Action::Exclude => Part::Whole,
                Action::ElemMatch(filter) => Part::Element(ElemMatch::new(&name, filter)),
                Action::Within(branch) => match Self::exclusion(branch) {
                    shape if shape.fields.is_empty() => continue,
                    shape => Part::Within(shape),
                },
                Action::Include | Action::Slice(_) | Action::Positional | Action::Computed(_) => continue,
            };
            fields.push(Field { name: name.into_boxed_bytes(), part });
        }
        Self::new(Others::Kept, Scalars::Kept, fields, Vec::new())
    }

    fn new(others: Others, scalars: Scalars, mut fields: Vec<Field>, added: Vec<ElemMatch>) -> Self {
        work::sort_by(&mut fields, |a, b| a.name.cmp(&b.name));
        let names = fields.iter().map(|field| &*field.name).collect();
        Self { others, fields: fields.into(), names, scalars, added: added.into() }
    }

    /// Returns whether every document is shown unchanged.
    pub(super) fn is_whole(&self) -> bool {
        self.others == Others::Kept && self.fields.is_empty()
    }

    /// Appends the visible part of `doc` to `out`.
    pub(super) fn apply(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        let start = output::open(out);
        match self.others {
            Others::Kept => self.exclude(doc, out),
            Others::Dropped => self.include(doc, out),
        }
        for added in &self.added {
            added.write(doc, out);
        }
        output::close(out, start);
    }

    fn exclude(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        for (element, bytes) in output::fields(doc) {
            match self.part(element.name) {
                None => out.extend_from_slice(bytes),
                Some(Part::Whole) => {}
                Some(Part::Within(shape)) => shape.field(element.name, element.value, bytes, out),
                Some(Part::Element(elem_match)) => elem_match.write(doc, out),
            }
        }
    }

    /// Includes only the first of repeated fields. Stops reading once all fields are found, and copies adjacent fields together.
    fn include(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        let mut missing = Missing::new(self.fields.len());
        if missing.count == 0 {
            return;
        }
        let copy =
            |run: Range<usize>, out: &mut Vec<u8>| out.extend_from_slice(doc.bytes().get(run).unwrap_or_default());
        let mut run = 0..0;
        for found in doc.fields_of(&self.names) {
            let Some(field) = self.fields.get(found.number).filter(|_| missing.remove(found.number)) else { continue };
            if run.end != found.place.start {
                copy(std::mem::replace(&mut run, found.place.start..found.place.start), out);
            }
            match &field.part {
                Part::Whole | Part::Element(_) => run.end = found.place.end,
                Part::Within(shape) => {
                    copy(std::mem::replace(&mut run, 0..0), out);
                    let bytes = doc.bytes().get(found.place).unwrap_or_default();
                    shape.field(&field.name, found.value, bytes, out);
                }
            }
            if missing.count == 0 {
                break;
            }
        }
        copy(run, out);
    }

    fn part(&self, name: &[u8]) -> Option<&Part> {
        let place = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        self.fields.get(place).map(|field| &field.part)
    }

    /// Writes a field whose documents have this shape. `bytes` is the whole field.
    fn field(&self, name: &[u8], value: Value<'_>, bytes: &[u8], out: &mut Vec<u8>) {
        match value.as_container() {
            Some(container) => {
                output::head(out, value.kind(), name);
                self.container(value.kind(), container, out);
            }
            None if self.others == Others::Kept => out.extend_from_slice(bytes),
            None => {}
        }
    }

    fn container(&self, kind: Kind, container: Doc<'_>, out: &mut Vec<u8>) {
        if kind == Kind::Document {
            return self.apply(container, out);
        }
        let start = output::open(out);
        let mut position = 0;
        for value in container.values() {
            match (value.as_container(), self.scalars) {
                (None, Scalars::Dropped) => continue,
                (Some(inner), _) => {
                    output::head_at(out, value.kind(), position);
                    self.container(value.kind(), inner, out);
                }
                (None, Scalars::Kept) => {
                    output::head_at(out, value.kind(), position);
                    out.extend_from_slice(value.bytes());
                }
                (None, Scalars::Emptied) => {
                    output::head_at(out, Kind::Document, position);
                    let empty = output::open(out);
                    output::close(out, empty);
                }
            }
            position += 1;
        }
        output::close(out, start);
    }
}

/// The set of fields that were not found yet. Does not allocate for up to 64 fields.
struct Missing {
    count: usize,
    first: u64,
    more: Vec<u64>,
}

impl Missing {
    fn new(count: usize) -> Self {
        Self { count, first: u64::MAX, more: vec![u64::MAX; count.div_ceil(64).saturating_sub(1)] }
    }

    /// Removes a field and returns whether it was in the set.
    fn remove(&mut self, place: usize) -> bool {
        let word = match place / 64 {
            0 => Some(&mut self.first),
            word => self.more.get_mut(word - 1),
        };
        let bit = 1 << (place % 64);
        match word {
            Some(word) if *word & bit != 0 => {
                *word &= !bit;
                self.count -= 1;
                true
            }
            _ => false,
        }
    }
}
