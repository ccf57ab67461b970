use std::{
    any::Any,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_core::Stream;
use serde::{Deserialize, de::DeserializeOwned};
use slate_query::raw::Doc;

use super::{call::ShortBuilder, in_place::InPlace, job::Answer, operation::CancelOnDrop, runner::on_pool};
use crate::{
    Aggregate, CancelToken, Error, Find, Result, Row,
    api::find::deserialize_current,
    document::{As, as_raw, from_raw},
    exec::{self, Packed},
};

/// Lends the documents of a query, one at a time.
///
/// The documents are read in batches. The next batch is read while the caller processes the current one, so at most two batches are
/// in memory, and no thread waits for the caller. A batch ends at 1,024 documents (the first at 64), past 256 KiB, or after 5 ms.
/// Exception: if the query scans a range of a store in memory without a filter, each document after the first batch is read when
/// it is awaited, without a copy. All documents belong to one commit.
///
/// Dropping the cursor ends the query. An error of the storage or an interruption also ends it.
pub struct Cursor {
    /// Documents in the stored form.
    batch: Packed,
    collection: Arc<str>,
    /// The number of rows of the batch up to the current one: 0 before the first, one more than the batch has after its
    /// end.
    moved: usize,
    /// The error that ended the batch.
    error: Option<Error>,
    next: Option<Next>,
    abandoned: CancelOnDrop,
}

/// The documents after the current batch.
enum Next {
    Batch(Answer<Batch>),
    InPlace(Box<InPlace>),
}

/// The documents of a query as `T`: a [`Stream`], with [`Documents::next`] for use without stream adapters.
///
/// They are read as a [`Cursor`] reads them, and deserialized by the task that awaits them.
pub struct Documents<T> {
    cursor: Cursor,
    documents: As<T>,
}

const FIRST_BATCH_ROWS: usize = 64;
const LARGEST_BATCH_ROWS: usize = 1_024;
const BATCH_BYTES: usize = 256 << 10;
const BATCH_TIME: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(super) struct Batch {
    /// Documents in the stored form.
    rows: Packed,
    collection: Arc<str>,
    error: Option<Error>,
    rest: Option<Rest>,
}

/// A builder whose documents are streamed.
pub(super) trait Streamed: ShortBuilder {
    fn cursor(self) -> Result<crate::Cursor>;
}

impl<T> Streamed for Find<T> {
    fn cursor(self) -> Result<crate::Cursor> {
        Self::cursor(self)
    }
}

impl<T> Streamed for Aggregate<T> {
    fn cursor(self) -> Result<crate::Cursor> {
        Self::cursor(self)
    }
}

/// The rows after a batch, not read yet.
struct Rest {
    cursor: crate::Cursor,
    rows_at_once: usize,
    reading: Reading,
}

/// The thread that reads the rows.
#[derive(Clone, Copy)]
enum Reading {
    /// A thread that may wait.
    OnPool,
    /// The thread that awaits the rows, if each row takes little time.
    InPlace,
}

impl Batch {
    /// Reads the first batch. With a budget it must not wait; later batches have no budget.
    pub(super) fn first(query: impl Streamed) -> Result<Self> {
        let budget = query.budget().cloned();
        let reading = if budget.is_some() { Reading::InPlace } else { Reading::OnPool };
        let batch = Self::read(Rest { cursor: query.cursor()?, rows_at_once: FIRST_BATCH_ROWS, reading });
        budget.iter().for_each(|budget| budget.lift());
        Ok(batch)
    }

    fn read(mut rest: Rest) -> Self {
        let start = Instant::now();
        let (mut rows, collection) = (Packed::default(), Arc::clone(rest.cursor.collection()));
        loop {
            match rest.cursor.advance() {
                Ok(true) => {}
                Ok(false) => return Self { rows, collection, error: None, rest: None },
                Err(error) => return Self { rows, collection, error: Some(error), rest: None },
            }
            let Some(document) = rest.cursor.document() else { continue };
            let bytes = rows.append(|bytes| document.append_stored(bytes));
            let is_full = rows.len() >= rest.rows_at_once || bytes >= BATCH_BYTES;
            if is_full || start.elapsed() >= BATCH_TIME {
                rest.cursor.pause();
                rest.rows_at_once = (rest.rows_at_once * 2).min(LARGEST_BATCH_ROWS);
                return Self { rows, collection, error: None, rest: Some(rest) };
            }
        }
    }
}

/// Reads all documents of a query. With a budget, spends it unless the first batch has all of them.
pub(super) fn collect<T: DeserializeOwned + Any>(query: impl Streamed) -> Result<Vec<T>> {
    let Some(budget) = query.budget().cloned() else { return crate::Documents::new(query.cursor()?).collect() };
    let Batch { rows, collection, error, rest } = Batch::first(query)?;
    match error {
        Some(error) => Err(error),
        None if rest.is_some() => Err(budget.spend()),
        None => rows.iter().map(|document| from_raw(&collection, Doc::stored(document))).collect(),
    }
}

impl Cursor {
    /// `abandoned` cancels the blocking cursor.
    pub(super) fn new(first: Batch, abandoned: CancelOnDrop) -> Self {
        let collection = Arc::clone(&first.collection);
        let mut cursor = Self { batch: Packed::default(), collection, moved: 0, error: None, next: None, abandoned };
        cursor.take(first);
        cursor
    }

    /// Replaces the current batch, and begins to read the next one.
    fn take(&mut self, Batch { rows, error, rest, .. }: Batch) {
        (self.batch, self.moved, self.error) = (rows, 0, error);
        let Some(rest) = rest else { return };
        if matches!(rest.reading, Reading::InPlace) && exec::Rows::shared(&rest.cursor).is_some() {
            self.next = Some(Next::InPlace(Box::new(InPlace::new(rest.cursor))));
            return;
        }
        // The cursor checks its own token; a token here would only replace the cursor's error.
        match on_pool(CancelToken::new(), move || Ok(Batch::read(rest))) {
            Ok(batch) => self.next = Some(Next::Batch(batch)),
            Err(error) => self.error = Some(error),
        }
    }

    /// Moves to the next document; returns `false` after the last. If the future is dropped, the cursor has not moved.
    ///
    /// # Errors
    /// Fails if the storage fails; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub async fn advance(&mut self) -> Result<bool> {
        std::future::poll_fn(|context| self.poll_advance(context)).await
    }

    fn poll_advance(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        loop {
            if self.moved < self.batch.len() {
                self.moved += 1;
                return Poll::Ready(Ok(true));
            }
            if let Some(error) = self.error.take() {
                self.batch = Packed::default();
                return Poll::Ready(Err(error));
            }
            let batch = match &mut self.next {
                Some(Next::Batch(next)) => ready!(Pin::new(next).poll(context)),
                Some(Next::InPlace(rows)) => {
                    let moved = ready!(rows.poll_advance(context));
                    if !matches!(moved, Ok(true)) {
                        (self.batch, self.next) = (Packed::default(), None);
                    }
                    return Poll::Ready(moved);
                }
                None => {
                    self.batch = Packed::default();
                    return Poll::Ready(Ok(false));
                }
            };
            self.next = None;
            self.take(batch.unwrap_or_else(|error| Batch { error: Some(error), ..Batch::default() }));
        }
    }

    fn document(&self) -> Option<Doc<'_>> {
        let in_batch = || self.batch.get(self.moved.checked_sub(1)?).map(Doc::stored);
        match &self.next {
            Some(Next::InPlace(rows)) => rows.current().or_else(in_batch),
            Some(Next::Batch(_)) | None => in_batch(),
        }
    }

    fn read_current<T: DeserializeOwned + Any>(&self) -> Option<Result<T>> {
        self.document().map(|document| from_raw(&self.collection, document))
    }

    /// Returns the current document; `None` before the first and after the last.
    pub fn current(&self) -> Option<Row<'_>> {
        self.document().and_then(|row| as_raw(row.bytes()).ok()).map(Row::from)
    }

    /// Deserializes the current document into a type that may borrow from it.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not a `T`, or there is no current
    /// document.
    pub fn deserialize_current<'c, T: Deserialize<'c>>(&'c self) -> Result<T> {
        deserialize_current(&self.collection, self.document())
    }
}

impl<T: DeserializeOwned + Any> Documents<T> {
    pub(super) fn new(cursor: Cursor) -> Self {
        Self { cursor, documents: PhantomData }
    }

    pub(super) fn into_cursor(self) -> Cursor {
        self.cursor
    }

    /// Returns the next document; `None` after the last. Dropping the future loses no document.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not a `T`, after which others may follow;
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted); if the storage fails.
    pub async fn next(&mut self) -> Option<Result<T>> {
        match self.cursor.advance().await {
            Ok(true) => self.cursor.read_current(),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<T: DeserializeOwned + Any> Stream for Documents<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        Poll::Ready(match ready!(self.cursor.poll_advance(context)) {
            Ok(true) => self.cursor.read_current(),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

crate::debug::shown! { self: Cursor { current: self.current() } }

crate::debug::shown! { self: Documents<T> { cancelled: self.cursor.abandoned.0.is_cancelled() } }
