//! `$unwind`: returns a document for each element of an array.

use std::fmt;

use crate::{
    Code, Error, Result,
    expression::{Bindings, Needs},
    path::{Path, field_path},
    pipeline::{
        Kept, Stage,
        nested::{set, with_int64},
        stage::is_within,
    },
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    work,
};

/// A parsed `$unwind`.
#[derive(Clone, Debug)]
pub struct Unwind {
    path: Path,
    /// The field that receives the element's position in the array (`includeArrayIndex`).
    index: Option<Path>,
    empty: Empty,
    kept: Kept,
}

/// The treatment of documents whose array is empty, null or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    Dropped,
    Preserved,
}

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let (mut path, mut index, mut empty) = (argument.as_str(), None, Empty::Dropped);
    if path.is_none() {
        let options = argument.as_document().ok_or_else(|| {
            refused(15_981, "expected either a string or an object as specification for $unwind stage")
        })?;
        for element in options.elements() {
            let (name, value) = (element.display_name(), element.value);
            match &*name {
                "path" => {
                    let text = value.as_str();
                    path = Some(text.ok_or_else(|| refused(28_808, "expected a string as the path").at("path"))?);
                }
                "preserveNullAndEmptyArrays" => {
                    let preserves = value.as_bool().ok_or_else(|| refused(28_809, "expected a boolean").at(&*name))?;
                    empty = if preserves { Empty::Preserved } else { Empty::Dropped };
                }
                "includeArrayIndex" => {
                    let text = value.as_str().filter(|text| !text.is_empty());
                    let text = text.ok_or_else(|| refused(28_810, "expected a non-empty string").at(&*name))?;
                    if text.starts_with('$') {
                        let message = "includeArrayIndex option should not be prefixed with a '$'";
                        return Err(refused(28_822, message).at(&*name));
                    }
                    index = Some(field_path::parse(text)?);
                }
                _ => return Err(refused(28_811, "unrecognized option to $unwind stage").at(&*name)),
            }
        }
    }
    let path = path.ok_or_else(|| refused(28_812, "no path specified to $unwind stage"))?;
    if path.contains('\0') {
        return Err(refused(16_419, "a field path must not contain a NUL byte").at("path"));
    }
    let path = path
        .strip_prefix('$')
        .ok_or_else(|| refused(28_818, "path option to $unwind stage should be prefixed with a '$'").at("path"))?;
    Ok(Stage::Unwind(Unwind { path: field_path::parse(path)?, index, empty, kept: Kept::default() }))
}

impl Unwind {
    /// Returns whether the stage changes nothing at `path`.
    pub(in crate::pipeline) fn preserves(&self, path: &Path) -> bool {
        // The field for the position can replace a value on the way to it, so only the first name counts.
        let index = self.index.as_ref().and_then(|index| index.parts().first());
        let is_numbered = index.is_some_and(|index| is_within(path, index.name()));
        !is_numbered && !is_within(path, self.path.as_str()) && !is_within(&self.path, path.as_str())
    }

    /// Adds the top-level field of the array to `needs`.
    pub(in crate::pipeline) fn add_needs(&self, needs: &mut Needs) {
        needs.add_path(&self.path);
    }

    /// Returns the path of the array, if the stage does nothing but unwind it.
    pub fn is_plain_on(&self) -> Option<&Path> {
        (self.index.is_none() && self.empty == Empty::Dropped).then_some(&self.path)
    }

    /// Makes the stage return only the fields that the following stages need, and the field of the array.
    pub fn keep(&mut self, mut needs: Needs) {
        self.add_needs(&mut needs);
        self.kept = Kept::of(&needs);
    }
}

impl Unwind {
    /// Returns the argument of the stage, as explain shows it.
    pub fn argument(&self) -> OwnedValue {
        let mut argument = Writer::new();
        argument.append_string(b"path", format!("${}", self.path).as_bytes());
        if let Some(index) = &self.index {
            argument.append_string(b"includeArrayIndex", index.as_str().as_bytes());
        }
        if self.empty == Empty::Preserved {
            argument.append(b"preserveNullAndEmptyArrays", Value::new(Kind::Boolean, &[1]));
        }
        Value::new(Kind::Document, &argument.finish()).to_owned()
    }
}

impl fmt::Display for Unwind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(index) = &self.index {
            write!(f, ", index {index}")?;
        }
        if self.empty == Empty::Preserved { f.write_str(", preserving empty") } else { Ok(()) }
    }
}

/// The documents that an [`Unwind`] returns for one document. Holds a copy of the array and of the rest of the document,
/// so that no element is copied before its turn.
#[derive(Clone, Debug, Default)]
pub struct UnwoundRows {
    /// The array's bytes. The elements before the offset `next` were returned.
    array: Vec<u8>,
    next: usize,
    position: i64,
    /// The parts of the document from which each row is built.
    template: Template,
    row: Vec<u8>,
    scratch: Vec<u8>,
}

/// The document with a gap for the element, if the array is a top-level field.
#[derive(Clone, Debug, Default)]
struct Template {
    /// The document, which ends before the value of the field. The whole document for a longer path.
    head: Vec<u8>,
    /// The offset of the field's type in `head`.
    kind: usize,
    /// The rest of the document, with its terminator. Empty for a longer path.
    tail: Vec<u8>,
}

impl Template {
    fn begin(&mut self, unwind: &Unwind, document: Doc<'_>) {
        self.tail.clear();
        let [field] = unwind.path.parts() else { return unwind.kept.copy(document, &mut self.head) };
        unwind.kept.split(document, field.field_name(), &mut self.head, &mut self.tail);
        self.kind = self.head.len();
        self.head.push(0);
        self.head.extend_from_slice(field.name_bytes());
        self.head.push(0);
    }

    /// Writes into `row` the row of an element. If `another` is true, `row` already contains the row of an earlier element of the same document, and
    /// its head is not copied again. Rows with a position are always written as a whole.
    fn write(&self, unwind: &Unwind, element: Value<'_>, another: bool, row: &mut Vec<u8>) {
        if self.tail.is_empty() {
            return set(Doc::new(&self.head), unwind.path.parts(), Some(element), row);
        }
        let length = self.head.len() + element.bytes().len() + self.tail.len();
        work::spend_copied(length);
        if another && unwind.index.is_none() {
            row.truncate(self.head.len());
        } else {
            row.clear();
            row.extend_from_slice(&self.head);
        }
        row.reserve(length - self.head.len());
        row.extend_from_slice(element.bytes());
        row.extend_from_slice(&self.tail);
        if let (Some(head), Ok(length)) = (row.first_chunk_mut(), i32::try_from(length)) {
            *head = length.to_le_bytes();
        }
        if let Some(kind) = row.get_mut(self.kind) {
            *kind = element.kind().byte();
        }
    }
}

impl UnwoundRows {
    /// Starts with the next document and moves to its first row. Returns `false` if it has no row.
    /// [`UnwoundRows::advance`] moves to its further rows.
    pub fn begin(&mut self, unwind: &Unwind, document: Doc<'_>) -> bool {
        self.array.clear();
        (self.next, self.position) = (4, 0);
        let found = unwind.path.get(document);
        let value = found.filter(|value| !value.is_nullish());
        if let Some(array) = value.and_then(Value::as_array) {
            if !array.is_empty() {
                self.array.extend_from_slice(array.bytes());
                self.template.begin(unwind, document);
                return self.advance(unwind);
            }
            if unwind.empty == Empty::Dropped {
                return false;
            }
            set(document, unwind.path.parts(), None, &mut self.row);
        } else if value.is_none() && unwind.empty == Empty::Dropped {
            return false;
        } else {
            unwind.kept.copy(document, &mut self.row);
        }
        self.number(unwind, Value::NULL);
        true
    }

    /// Moves to the row of the next element. Returns `false` after the last.
    #[inline]
    pub fn advance(&mut self, unwind: &Unwind) -> bool {
        let rest = self.array.get(self.next..).unwrap_or_default();
        let Some((element, size)) = first(rest) else { return false };
        self.template.write(unwind, element, self.position > 0, &mut self.row);
        self.next += size;
        with_int64(self.position, |position| self.number(unwind, position));
        self.position = self.position.saturating_add(1);
        true
    }

    /// Writes the element's position into the row, if the stage includes it.
    fn number(&mut self, unwind: &Unwind, position: Value<'_>) {
        if let Some(index) = &unwind.index {
            std::mem::swap(&mut self.row, &mut self.scratch);
            set(Doc::new(&self.scratch), index.parts(), Some(position), &mut self.row);
        }
    }

    /// Returns the current row.
    pub fn current(&self) -> &[u8] {
        &self.row
    }
}

/// Returns the first of an array's remaining elements, and its size in bytes; `None` after the last.
fn first(rest: &[u8]) -> Option<(Value<'_>, usize)> {
    let (&kind, named) = rest.split_first()?;
    let name = named.iter().position(|&byte| byte == 0)?;
    let (kind, value) = (Kind::from_byte(kind)?, named.get(name + 1..)?);
    let size = Value::measure(kind, value)?;
    Some((Value::new(kind, value.get(..size)?), name + 2 + size))
}
