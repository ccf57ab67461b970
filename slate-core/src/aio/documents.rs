use std::{
    any::Any,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
    vec,
};

use bson::{RawDocument, RawDocumentBuf};
use futures_core::Stream;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::task::JoinHandle;

use super::{
    operation::CancelOnDrop,
    runner::{joined, on_pool},
};
use crate::{CancelToken, Result, api::cursor::deserialize_current, api::document::from_raw};

/// The documents of a query as `T`: a [`Stream`], with [`Documents::next`] for use without stream adapters.
///
/// The documents are read in batches, the next while the caller works through one: at most two are in memory, however
/// slow the caller is, and no thread waits for it. A batch is at most 1,024 documents (the first 16, so that it comes
/// soon), ends past 256 KiB, and ends after 5 ms if there is a document. All belong to one commit, that of the moment when
/// the question was run.
///
/// Dropping it ends the reading. After an error of the storage, or an interruption, it ends.
pub struct Documents<T> {
    batch: vec::IntoIter<Result<T>>,
    next: Option<JoinHandle<Result<Batch<T>>>>,
    abandoned: CancelOnDrop,
}

const FIRST_BATCH_ROWS: usize = 16;
const LARGEST_BATCH_ROWS: usize = 1_024;
const BATCH_BYTES: usize = 256 << 10;
const BATCH_TIME: Duration = Duration::from_millis(5);

pub(super) struct Batch<T> {
    rows: Vec<Result<T>>,
    rest: Option<Rest>,
}

/// The rest of the rows, not read yet.
struct Rest {
    cursor: crate::Cursor,
    rows_at_once: usize,
}

impl<T: DeserializeOwned + Any> Batch<T> {
    pub(super) fn first(cursor: crate::Cursor) -> Self {
        Self::read(Rest { cursor, rows_at_once: FIRST_BATCH_ROWS })
    }

    fn read(mut rest: Rest) -> Self {
        let start = Instant::now();
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        loop {
            match rest.cursor.advance() {
                Ok(true) => {}
                Ok(false) => return Self { rows, rest: None },
                Err(error) => {
                    rows.push(Err(error));
                    return Self { rows, rest: None };
                }
            }
            if let Some(row) = rest.cursor.bytes() {
                bytes = bytes.saturating_add(row.len());
                rows.push(from_raw(row));
            }
            if rows.len() >= rest.rows_at_once || bytes >= BATCH_BYTES || start.elapsed() >= BATCH_TIME {
                rest.rows_at_once = (rest.rows_at_once * 2).min(LARGEST_BATCH_ROWS);
                return Self { rows, rest: Some(rest) };
            }
        }
    }
}

impl<T: DeserializeOwned + Send + Any> Documents<T> {
    /// `abandoned` cancels the cursor.
    pub(super) fn new(first: Batch<T>, abandoned: CancelOnDrop) -> Self {
        let mut documents = Self { batch: Vec::new().into_iter(), next: None, abandoned };
        documents.take(first);
        documents
    }

    /// Starts returning the batch and reading the next one.
    fn take(&mut self, Batch { mut rows, rest }: Batch<T>) {
        if let Some(rest) = rest {
            // The cursor looks at the token itself; here it would only hide the cursor's own error.
            match on_pool(CancelToken::new(), move |_| Ok(Batch::read(rest))) {
                Ok(task) => self.next = Some(task.0),
                Err(error) => rows.push(Err(error)),
            }
        }
        self.batch = rows.into_iter();
    }

    /// Returns the next document; `None` after the last. Dropping the future loses no document.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) where the document is no `T`, after which others may follow;
    /// where the storage fails; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub async fn next(&mut self) -> Option<Result<T>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<T: DeserializeOwned + Send + Any> Stream for Documents<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(row) = self.batch.next() {
                return Poll::Ready(Some(row));
            }
            let Some(next) = &mut self.next else { return Poll::Ready(None) };
            let read = ready!(Pin::new(next).poll(context));
            self.next = None;
            match joined(read) {
                Ok(batch) => self.take(batch),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// Lends the documents of a query, one at a time. They are read in batches, as those of [`Documents`].
pub struct Cursor {
    documents: Documents<RawDocumentBuf>,
    current: Option<RawDocumentBuf>,
}

impl Cursor {
    pub(super) fn new(documents: Documents<RawDocumentBuf>) -> Self {
        Self { documents, current: None }
    }

    /// Moves to the next document; returns `false` after the last.
    ///
    /// # Errors
    /// Fails if the storage fails; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub async fn advance(&mut self) -> Result<bool> {
        self.current = self.documents.next().await.transpose()?;
        Ok(self.current.is_some())
    }

    /// The current document; `None` before the first and after the last.
    pub fn current(&self) -> Option<&RawDocument> {
        self.current.as_deref()
    }

    /// Deserializes the current document into a type that may borrow from it.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not a `T`, or there is none.
    pub fn deserialize_current<'c, T: Deserialize<'c>>(&'c self) -> Result<T> {
        deserialize_current(self.current.as_ref().map(|document| document.as_bytes()))
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("current", &self.current).finish_non_exhaustive()
    }
}

/// No field is pinned.
impl<T> Unpin for Documents<T> {}

impl<T> fmt::Debug for Documents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("cancelled", &self.abandoned.0.is_cancelled()).finish_non_exhaustive()
    }
}
