use std::{any::Any, fmt, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use slate_query::{raw::Doc, serde::deserialize};

use crate::{
    Error, Result, Row,
    document::As,
    document::{as_raw, from_raw},
    exec::Rows,
};

/// Lends the documents of a query one at a time, without copying them.
///
/// ```
/// # let db = slate_core::Database::open("memory:")?;
/// use bson::{RawDocumentBuf, doc};
///
/// let users = db.collection::<RawDocumentBuf>("users");
/// let mut rows = users.find(doc! { "tags": "rust" }).projection(doc! { "name": 1 }).cursor()?;
/// while rows.advance()? {
///     println!("{:?}", rows.current());
/// }
/// # Ok::<(), slate_core::Error>(())
/// ```
pub struct Cursor {
    rows: Box<dyn Rows + Send>,
    collection: Arc<str>,
}

impl Cursor {
    pub(crate) fn new(rows: Box<dyn Rows + Send>, collection: Arc<str>) -> Self {
        Self { rows, collection }
    }

    /// Moves to the next document; returns `false` after the last.
    ///
    /// # Errors
    /// Fails if the storage fails; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn advance(&mut self) -> Result<bool> {
        self.rows.advance()
    }

    /// Returns the current document, lent until the next move; `None` before the first and after the last.
    pub fn current(&self) -> Option<Row<'_>> {
        self.rows.current().and_then(|document| as_raw(document.bytes()).ok()).map(Row::from)
    }

    /// Deserializes the current document into a type that may borrow from it.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not an `R`, or there is no current
    /// document.
    pub fn deserialize_current<'c, R: Deserialize<'c>>(&'c self) -> Result<R> {
        deserialize_current(&self.collection, self.rows.current())
    }

    /// Stops the clock of the call until the next move: in [metrics](crate::Metrics) and reports of slow queries the time until then is
    /// not part of the query. For readers that wait for somebody between two documents.
    pub fn pause(&mut self) {
        self.rows.pause();
    }

    /// Returns the current document as `T`.
    pub(crate) fn read_current<T: DeserializeOwned + Any>(&self) -> Option<Result<T>> {
        self.rows.current().map(|document| from_raw(&self.collection, document))
    }

    /// Returns the current document.
    #[cfg(feature = "async")]
    pub(crate) fn document(&self) -> Option<Doc<'_>> {
        self.rows.current()
    }

    /// Returns the stored form of the current document; see [`Rows::shared`].
    #[cfg(feature = "async")]
    pub(crate) fn shared(&self) -> Option<Arc<[u8]>> {
        self.rows.shared()
    }

    /// Returns the collection that is read.
    #[cfg(feature = "async")]
    pub(crate) fn collection(&self) -> &Arc<str> {
        &self.collection
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("current", &self.current()).finish()
    }
}

/// Deserializes a cursor's document.
pub(crate) fn deserialize_current<'c, R: Deserialize<'c>>(collection: &str, current: Option<Doc<'c>>) -> Result<R> {
    let document = current.ok_or_else(|| Error::conversion(NoDocument))?;
    deserialize(document).map_err(|error| Error::not_convertible(collection, document, error))
}

#[derive(Debug, thiserror::Error)]
#[error("the cursor has no current document")]
struct NoDocument;

/// Iterates over the documents of a query as `T`; ends after the first error.
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
            Ok(true) => cursor.read_current(),
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
