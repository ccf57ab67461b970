use bson::RawDocument;
use slate_core::Cursor;

use super::server::ServerRows;
use crate::failure::Result;

/// The documents of a query, one after the other.
#[cfg_attr(not(feature = "client"), expect(clippy::large_enum_variant, reason = "the other variant cannot exist"))]
pub(crate) enum Rows {
    Embedded(Cursor),
    Server(ServerRows),
}

impl Rows {
    /// Calls `read` with the next document. Returns `None` after the last one.
    ///
    /// # Errors
    /// Fails if the query or `read` fails.
    pub(crate) fn next<T>(&mut self, read: impl FnOnce(&RawDocument) -> Result<T>) -> Result<Option<T>> {
        match self {
            Self::Embedded(cursor) => {
                if !cursor.advance()? {
                    return Ok(None);
                }
                cursor.current().map(|document| read(&document)).transpose()
            }
            Self::Server(rows) => rows.next(read),
        }
    }
}
