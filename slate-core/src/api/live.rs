use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;
use slate_query::raw::Doc;

use crate::{
    Result,
    api::watch::Following,
    call::live::{LiveState, LiveStep},
    document::{As, from_raw},
};

/// A step from the result of a live query to its next one; see [`Find::live`](crate::Find::live). Positions count the rows after the steps
/// before.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveChange<T> {
    /// A row came to this position. The rows from there on move up.
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
        /// The position of the row before.
        from: usize,
        /// The position of the row in the result without it.
        to: usize,
        /// The document, which may have changed.
        document: T,
    },
    /// The row at this position left the result.
    Removed {
        /// The position of the row.
        position: usize,
    },
}

impl<T> LiveChange<T> {
    /// Applies the step to the rows of a result.
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
}

/// A live query: an iterator of the steps that build its result, and then of those that keep it up to date. It waits for the next one, and ends only
/// after an error; see [`Find::live`](crate::Find::live).
pub struct LiveQuery<T> {
    following: Following<LiveState>,
    collection: Arc<str>,
    documents: As<T>,
}

impl<T: DeserializeOwned + Any> LiveQuery<T> {
    pub(crate) fn new(following: Following<LiveState>, collection: Arc<str>) -> Self {
        Self { following, collection, documents: PhantomData }
    }

    /// Returns the next step that comes within this time; `None` if none came.
    ///
    /// # Errors
    /// Fails if a document is not a `T`; otherwise as the query does. The live query then has ended, except after a conversion.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<LiveChange<T>>> {
        self.next_until(Instant::now().checked_add(time))
    }

    fn next_until(&mut self, until: Option<Instant>) -> Result<Option<LiveChange<T>>> {
        let step = self.following.next_until(until)?;
        step.map(|step| converted(&step, &self.collection)).transpose()
    }
}

/// Converts the document of a step.
pub(crate) fn converted<T: DeserializeOwned + Any>(step: &LiveStep, collection: &str) -> Result<LiveChange<T>> {
    let convert = |document: &Arc<bson::RawDocumentBuf>| from_raw(collection, Doc::from(&**document));
    Ok(match step {
        LiveStep::Added { position, document } => {
            LiveChange::Added { position: *position, document: convert(document)? }
        }
        LiveStep::Changed { position, document } => {
            LiveChange::Changed { position: *position, document: convert(document)? }
        }
        LiveStep::Moved { from, to, document } => {
            LiveChange::Moved { from: *from, to: *to, document: convert(document)? }
        }
        LiveStep::Removed { position } => LiveChange::Removed { position: *position },
    })
}

impl<T: DeserializeOwned + Any> Iterator for LiveQuery<T> {
    type Item = Result<LiveChange<T>>;

    fn next(&mut self) -> Option<Result<LiveChange<T>>> {
        self.next_until(None).transpose()
    }
}

impl<T> fmt::Debug for LiveQuery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveQuery").field("collection", &self.collection).finish_non_exhaustive()
    }
}
