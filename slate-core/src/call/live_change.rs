use std::{any::Any, sync::Arc};

use bson::RawDocumentBuf;
use serde::de::DeserializeOwned;
use slate_query::raw::Doc;

use crate::{Result, document::from_raw};

/// A step from the result of a live query to its next one; see [`Find::live`](crate::Find::live). Positions count from
/// 0, in the rows after all previous steps.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveChange<T> {
    /// A row was inserted at this position, before the row that was there.
    Added {
        /// The position of the row.
        position: usize,
        /// The document.
        document: T,
    },
    /// The document of a row changed, and its position did not.
    Changed {
        /// The position of the row.
        position: usize,
        /// The document.
        document: T,
    },
    /// A row moved.
    Moved {
        /// The position of the row before the move.
        from: usize,
        /// The new position, counted in the rows without this one.
        to: usize,
        /// The document, which may have changed.
        document: T,
    },
    /// The row at this position was removed.
    Removed {
        /// The position of the row.
        position: usize,
    },
}

impl<T> LiveChange<T> {
    /// Applies the step to the rows of a result. With a position outside the rows, a row is inserted at their end; nothing
    /// is changed or removed.
    pub fn apply(self, rows: &mut Vec<T>) {
        match self {
            Self::Added { position, document } => rows.insert(position.min(rows.len()), document),
            Self::Changed { position, document } => {
                if let Some(row) = rows.get_mut(position) {
                    *row = document;
                }
            }
            Self::Moved { from, to, document } => {
                if from < rows.len() {
                    rows.remove(from);
                }
                rows.insert(to.min(rows.len()), document);
            }
            Self::Removed { position } => {
                if position < rows.len() {
                    rows.remove(position);
                }
            }
        }
    }

    fn try_map<U>(self, map: impl FnOnce(T) -> Result<U>) -> Result<LiveChange<U>> {
        Ok(match self {
            Self::Added { position, document } => LiveChange::Added { position, document: map(document)? },
            Self::Changed { position, document } => LiveChange::Changed { position, document: map(document)? },
            Self::Moved { from, to, document } => LiveChange::Moved { from, to, document: map(document)? },
            Self::Removed { position } => LiveChange::Removed { position },
        })
    }
}

/// A step with the stored document.
pub(crate) type LiveStep = LiveChange<Arc<RawDocumentBuf>>;

/// Decodes the document of a step into a `T`. `collection` is for errors.
pub(crate) fn converted<T: DeserializeOwned + Any>(step: LiveStep, collection: &str) -> Result<LiveChange<T>> {
    step.try_map(|document| from_raw(collection, Doc::from(&*document)))
}
