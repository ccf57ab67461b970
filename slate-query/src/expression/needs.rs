use std::collections::BTreeSet;

use crate::{path::Path, raw::FieldName, work};

/// The top-level fields of its documents that a pipeline reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The pipeline returns or reads the whole document.
    Whole,
    /// The pipeline reads these fields at most; the result does not depend on others, nor on the order of the fields.
    Fields(BTreeSet<Box<str>>),
    /// The pipeline reads these fields at most, and returns several of them in the order of the document.
    Ordered(BTreeSet<Box<str>>),
}

impl Needs {
    /// No fields.
    pub const NOTHING: Self = Self::Fields(BTreeSet::new());

    /// Returns the fields; `None` for whole documents.
    pub fn fields(&self) -> Option<&BTreeSet<Box<str>>> {
        match self {
            Self::Whole => None,
            Self::Fields(fields) | Self::Ordered(fields) => Some(fields),
        }
    }

    /// Returns whether the stages depend on the order in which a document has its fields.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Self::Fields(_))
    }

    /// Returns the same fields, several of which are returned in the order of the document.
    pub(crate) fn ordered(self) -> Self {
        match self {
            Self::Fields(fields) => Self::Ordered(fields),
            Self::Whole | Self::Ordered(_) => self,
        }
    }

    /// Adds a field; `None`: the whole document.
    pub(crate) fn add(&mut self, field: Option<&FieldName>) {
        match field {
            None => *self = Self::Whole,
            Some(field) => self.add_name(field.as_str()),
        }
    }

    /// Adds a field by its name.
    pub(crate) fn add_name(&mut self, name: &str) {
        if let Self::Fields(fields) | Self::Ordered(fields) = self
            && work::spend(work::PARSED)
        {
            fields.insert(name.into());
        }
    }

    /// Adds the field that a path begins with.
    pub(crate) fn add_path(&mut self, path: &Path) {
        match path.parts().first() {
            Some(first) => self.add_name(first.name()),
            None => *self = Self::Whole,
        }
    }

    /// Removes a field that is written before it is read. If the order matters, the field stays: a written field keeps its place.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Self::Fields(fields) = self {
            fields.remove(name);
        }
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        let is_ordered = self.is_ordered() || other.is_ordered();
        match (&mut *self, other) {
            (Self::Whole, _) | (_, Self::Whole) => *self = Self::Whole,
            (Self::Fields(fields) | Self::Ordered(fields), Self::Fields(others) | Self::Ordered(others)) => {
                fields.extend(others);
                if is_ordered {
                    *self = std::mem::replace(self, Self::NOTHING).ordered();
                }
            }
        }
    }
}
