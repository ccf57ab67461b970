//! Names of collections.

use slate_query::Code;

use crate::{Error, Result};

/// The longest name of a collection, in bytes. MongoDB's own limit is on the database's name and this together.
const MAX_NAME: usize = 255;

/// Whether a collection may have this name.
///
/// # Errors
/// `InvalidNamespace` (73), as MongoDB.
pub(crate) fn check(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME {
        "is longer than 255 bytes"
    } else if name.contains('\0') {
        "holds a NUL byte"
    } else if name.contains('$') {
        "holds a '$'"
    } else if name.starts_with('.') || name.ends_with('.') {
        "begins or ends with a dot"
    } else if name.starts_with("system.") {
        "begins with 'system.', which is reserved"
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::INVALID_NAMESPACE, format!("the collection's name {fault}: {name:?}")))
}
