//! Names of databases and collections, and their validation.
//!
//! A store holds many databases. The collections of the default database are stored under their own names, and those of another
//! database under `$database.collection`:
//!
//! ```text
//! full name     stored as
//! test.users    users
//! shop.users    $shop.users
//! ```
//!
//! No collection's own name contains a `$`, so the two cannot be confused.

use std::{borrow::Cow, sync::Arc};

use slate_query::Code;

use crate::{Error, Result};

/// The database whose collections are stored under their own names: MongoDB's default.
pub(crate) const DEFAULT_DATABASE: &str = "test";

/// The users of a server, as in MongoDB: the only collection with a reserved name.
const USERS: &str = "$admin.system.users";

/// Longest collection name in bytes, with the name of its database. MongoDB limits both together, too.
const MAX_NAME: usize = 255;

/// Longest name of a database in bytes, as in MongoDB.
const MAX_DATABASE: usize = 63;

/// Checks that a collection may be stored under this name.
///
/// # Errors
/// Fails with `InvalidNamespace` (73), as MongoDB does.
pub(crate) fn check(name: &str) -> Result<()> {
    let own = match name.strip_prefix('$').and_then(|full| full.split_once('.')) {
        Some((database, own)) => {
            check_database(database)?;
            own
        }
        None => name,
    };
    if name == USERS {
        return Ok(());
    }
    let fault = if own.is_empty() {
        "is empty"
    } else if full(name).len() > MAX_NAME {
        "is longer than 255 bytes, with that of its database"
    } else if own.contains('\0') {
        "contains a NUL byte"
    } else if own.contains('$') {
        "contains a '$'"
    } else if own.starts_with('.') || own.ends_with('.') {
        "begins or ends with a dot"
    } else if own.starts_with("system.") {
        "begins with 'system.', which is reserved"
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::INVALID_NAMESPACE, format!("the collection name {fault}: {own:?}")))
}

/// Checks that a database may have this name.
///
/// # Errors
/// Fails with `InvalidNamespace` (73), as MongoDB does.
pub(crate) fn check_database(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_DATABASE {
        "is longer than 63 bytes"
    } else if name.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
        "contains one of the characters /\\. \"$ and NUL"
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::INVALID_NAMESPACE, format!("the database name {fault}: {name:?}")))
}

/// Returns the name under which a collection of a database is stored.
pub(crate) fn stored<'n>(database: &str, collection: &'n str) -> Cow<'n, str> {
    if database == DEFAULT_DATABASE { collection.into() } else { ["$", database, ".", collection].concat().into() }
}

/// Splits a stored name into the names of the database and of the collection.
pub(crate) fn split(stored: &str) -> (&str, &str) {
    stored.strip_prefix('$').and_then(|full| full.split_once('.')).unwrap_or((DEFAULT_DATABASE, stored))
}

/// Returns the full name of a stored collection, `database.collection`.
pub(crate) fn full(stored: &str) -> Cow<'_, str> {
    match stored.strip_prefix('$').filter(|full| full.contains('.')) {
        Some(full) => full.into(),
        None => [DEFAULT_DATABASE, ".", stored].concat().into(),
    }
}

/// The database of a handle. `None` for the handle with which a store was opened: its collection names are stored names.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseName(Option<Arc<str>>);

impl DatabaseName {
    pub(crate) fn new(name: &str) -> Self {
        Self(Some(name.into()))
    }

    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the stored name of a collection of this database.
    pub(crate) fn stored<'n>(&self, collection: &'n str) -> Cow<'n, str> {
        self.0.as_ref().map_or(collection.into(), |database| stored(database, collection))
    }

    /// Returns the name that a stored collection has in this database; `None` if it belongs to another one.
    pub(crate) fn own<'n>(&self, stored: &'n str) -> Option<&'n str> {
        let Some(database) = &self.0 else { return Some(stored) };
        let (of, own) = split(stored);
        (of == &**database).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_name_splits_into_what_it_was_made_of() {
        for (database, collection, name) in
            [("test", "users", "users"), ("test", "fs.files", "fs.files"), ("shop", "fs.files", "$shop.fs.files")]
        {
            assert_eq!(stored(database, collection), name);
            assert_eq!(full(name), [database, ".", collection].concat());
            assert_eq!(split(name), (database, collection));
            check(name).unwrap();
        }
    }

    #[test]
    fn names_that_mongodb_refuses_are_refused() {
        check("$admin.system.users").unwrap();
        let long = "x".repeat(64);
        for database in ["", "a.b", "a b", "a/b", "a$b", "a\\b", "a\"b", &long] {
            assert_eq!(check_database(database).unwrap_err().code(), 73, "{database}");
        }
        for name in [
            "",
            "$shop",
            "$shop.",
            "$.users",
            "$shop.$x",
            "$shop.system.users",
            "system.users",
            "$admin.system.roles",
            "$a b.users",
            "$shop.x.",
            "a$b",
        ] {
            assert_eq!(check(name).unwrap_err().code(), 73, "{name}");
        }
    }
}
