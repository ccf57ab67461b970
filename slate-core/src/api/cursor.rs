use std::{any::Any, fmt};

use bson::RawDocument;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    api::database::As,
    api::document::{as_raw, from_raw},
    exec::Rows,
};

/// Lends the documents of a question, one at a time, where they lie.
///
/// ```
/// # let db = slate_core::Database::open("memory:")?;
/// use bson::{RawDocumentBuf, doc};
///
/// let users = db.collection::<RawDocumentBuf>("users");
/// let mut rows = users.find(doc! { "tags": "rust" }).project(doc! { "name": 1 }).cursor()?;
/// while rows.advance()? {
///     println!("{:?}", rows.current());
/// }
/// # Ok::<(), slate_core::Error>(())
/// ```
pub struct Cursor {
    rows: Box<dyn Rows + Send>,
}

impl Cursor {
    pub(crate) fn new(rows: Box<dyn Rows + Send>) -> Self {
        Self { rows }
    }

    /// Moves to the next document; `false` after the last.
    ///
    /// # Errors
    /// Where the storage fails; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn advance(&mut self) -> Result<bool> {
        self.rows.advance()
    }

    /// The document last moved to, lent until the next move; `None` before the first and after the last.
    pub fn current(&self) -> Option<&RawDocument> {
        self.rows.current().and_then(|bytes| as_raw(bytes).ok())
    }

    /// The document last moved to, as a type that may borrow from it.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) where the document is no such value, or there is none.
    pub fn deserialize_current<'c, R: Deserialize<'c>>(&'c self) -> Result<R> {
        let bytes = self.rows.current().ok_or_else(|| Error::conversion(NoDocument))?;
        bson::deserialize_from_slice(bytes).map_err(Error::conversion)
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.rows.current()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("current", &self.current()).finish()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the cursor stands on no document")]
struct NoDocument;

/// Hands out the documents of a question as `T`; ends after the first error.
pub struct Documents<T> {
    cursor: Option<Cursor>,
    documents: As<T>,
}

impl<T> Documents<T> {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { cursor: Some(cursor), documents: std::marker::PhantomData }
    }
}

impl<T: DeserializeOwned + Any> Iterator for Documents<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let cursor = self.cursor.as_mut()?;
        let moved = cursor.advance();
        match moved {
            Ok(true) => cursor.bytes().map(from_raw),
            Ok(false) => {
                self.cursor = None;
                None
            }
            Err(error) => {
                self.cursor = None;
                Some(Err(error))
            }
        }
    }
}

impl<T> fmt::Debug for Documents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").finish_non_exhaustive()
    }
}
