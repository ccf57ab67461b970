//! Validation of collection names.

use slate_query::Code;

use crate::{Error, Result};

/// Longest collection name in bytes. MongoDB limits the database's name and the collection's name together.
const MAX_NAME: usize = 255;

/// Checks that a collection may have this name.
///
/// # Errors
/// Fails with `InvalidNamespace` (73), as MongoDB does.
pub(crate) fn check(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME {
        "is longer than 255 bytes"
    } else if name.contains('\0') {
        "contains a NUL byte"
    } else if name.contains('$') {
        "contains a '$'"
    } else if name.starts_with('.') || name.ends_with('.') {
        "begins or ends with a dot"
    } else if name.starts_with("system.") {
        "begins with 'system.', which is reserved"
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::INVALID_NAMESPACE, format!("the collection name {fault}: {name:?}")))
}
