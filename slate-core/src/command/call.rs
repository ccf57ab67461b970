use slate_query::{
    Code,
    raw::{Doc, Value},
};

use super::fields::Fields;
use crate::{Error, Result, namespace};

/// A command document, split into its name, the value of the name, and the other fields.
#[derive(Debug)]
pub(super) struct Call<'c> {
    pub(super) name: &'c str,
    pub(super) target: Value<'c>,
    pub(super) fields: Fields<'c>,
}

impl<'c> Call<'c> {
    /// Splits a command document.
    ///
    /// # Errors
    /// Fails if the document has no fields, is damaged, or contains a field twice.
    pub(super) fn read(command: Doc<'c>) -> Result<Self> {
        let (name, target, fields) = Fields::read_command(command)?;
        Ok(Self { name, target, fields })
    }

    /// Returns the name of the command's collection.
    ///
    /// # Errors
    /// Fails with `InvalidNamespace` (73) if the value is not a string or not a valid collection name.
    pub(super) fn collection(&self) -> Result<&'c str> {
        let name = self.target.as_str().ok_or_else(|| {
            let message = format!("collection name has invalid type {}", self.target.kind().alias());
            Error::invalid(Code::INVALID_NAMESPACE, message).at(self.name)
        })?;
        namespace::check(name)?;
        Ok(name)
    }
}
