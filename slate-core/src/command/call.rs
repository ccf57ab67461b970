use slate_query::{
    Code,
    raw::{Doc, Value},
};

use super::fields::Fields;
use crate::{Error, Result, namespace};

/// A command as it was called: its name, what stands beside the name, and the other fields.
#[derive(Debug)]
pub(super) struct Call<'c> {
    pub(super) name: &'c str,
    pub(super) target: Value<'c>,
    pub(super) fields: Fields<'c>,
}

impl<'c> Call<'c> {
    /// Takes a command's document apart.
    ///
    /// # Errors
    /// A document without fields, which names no command; damaged bytes; a field given twice.
    pub(super) fn read(command: Doc<'c>) -> Result<Self> {
        let (name, target, fields) = Fields::read_command(command)?;
        Ok(Self { name, target, fields })
    }

    /// The name of the collection that the command is about.
    ///
    /// # Errors
    /// `InvalidNamespace` (73) for what is no string, and for what no collection may be called.
    pub(super) fn collection(&self) -> Result<&'c str> {
        let name = self.target.as_str().ok_or_else(|| {
            let message = format!("collection name has invalid type {}", self.target.kind().alias());
            Error::invalid(Code::INVALID_NAMESPACE, message).at(self.name)
        })?;
        namespace::check(name)?;
        Ok(name)
    }
}
