//! The data that operators may read, and their outcome.

use std::{cell::OnceCell, collections::HashMap};

use super::{Context, array_filter::ArrayFilters};
use crate::raw::{Doc, Value};

/// The result of applying operators to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateOutcome {
    /// The value is unchanged: nothing was written.
    Unchanged,
    /// The new value was written.
    Changed,
    /// The value is removed: nothing was written.
    Removed,
}

/// The data that operators may read besides the value that they change.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpdateScope<'a> {
    pub(super) filters: &'a ArrayFilters,
    pub(super) context: &'a Context,
    /// The document before the update.
    pub(super) root: Doc<'a>,
    /// The fields of the document by name, for operators that read other fields than their own.
    pub(super) fields: &'a RootFields<'a>,
}

/// The first field of each name. Built at the first lookup.
#[derive(Debug, Default)]
pub(super) struct RootFields<'a>(OnceCell<HashMap<&'a [u8], Value<'a>>>);

impl<'a> UpdateScope<'a> {
    /// Returns the value of a field of the document before the update; `None` if it is missing.
    pub(super) fn root_field(&self, name: &str) -> Option<Value<'a>> {
        if self.root.has_table() {
            return self.root.get(name);
        }
        let fields = self.fields.0.get_or_init(|| {
            let mut fields = HashMap::new();
            for element in self.root.elements() {
                fields.entry(element.name).or_insert(element.value);
            }
            fields
        });
        fields.get(name.as_bytes()).copied()
    }
}
