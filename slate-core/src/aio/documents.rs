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

use super::{job::Answer, operation::CancelOnDrop, runner::on_pool};
use crate::{
    CancelToken, Result,
    api::cursor::deserialize_current,
    api::document::from_raw,
    interrupt::{is_would_wait, would_wait},
};

/// The documents of a query as `T`: a [`Stream`], with [`Documents::next`] for use without stream adapters.
///
/// The documents are read in batches, the next while the caller works through one: at most two are in memory, and no
/// thread waits for the caller. A batch ends at 1,024 documents (the first one at 64), past 256 KiB, or after 5 ms. All
/// documents belong to one commit.
///
/// Dropping it ends the reading. It ends after an error of the storage or an interruption.
pub struct Documents<T> {
    batch: vec::IntoIter<Result<T>>,
    next: Option<Answer<Batch<T>>>,
    abandoned: CancelOnDrop,
}

const FIRST_BATCH_ROWS: usize = 64;
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
    /// Reads the first batch. The rest of a find that must not wait is for a thread that may.
    pub(super) fn first(find: crate::Find<T>) -> Result<Self> {
        let short = find.short();
        let batch = Self::read(Rest { cursor: find.cursor()?, rows_at_once: FIRST_BATCH_ROWS });
        if let Some(short) = short {
            if batch.rows.last().is_some_and(|row| row.as_ref().is_err_and(is_would_wait)) {
                return Err(would_wait());
            }
            short.lift();
        }
        Ok(batch)
    }

    /// Reads all rows.
    pub(super) fn all(find: crate::Find<T>) -> Result<Vec<T>> {
        let must_not_wait = find.short().is_some();
        let Self { mut rows, mut rest } = Self::first(find)?;
        if must_not_wait && rest.is_some() {
            return Err(would_wait());
        }
        while let Some(unread) = rest {
            let batch = Self::read(unread);
            rows.extend(batch.rows);
            rest = batch.rest;
        }
        rows.into_iter().collect()
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
            // The cursor checks its own token; a token here would only hide the cursor's error.
            match on_pool(CancelToken::new(), move || Ok(Batch::read(rest))) {
                Ok(batch) => self.next = Some(batch),
                Err(error) => rows.push(Err(error)),
            }
        }
        self.batch = rows.into_iter();
    }

    /// Returns the next document; `None` after the last. Dropping the future loses no document.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not a `T`, after which others may follow;
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted); if the storage fails.
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
            match read {
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
