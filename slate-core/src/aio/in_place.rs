use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use slate_query::raw::Doc;

use crate::{Cursor, Result, exec::Rows};

/// Rows in memory that the awaiting task reads itself.
pub(super) struct InPlace {
    // The mutex only makes the struct `Sync`. It is never locked, because a mutable borrow is exclusive.
    cursor: Mutex<Cursor>,
    current: Option<Arc<[u8]>>,
    /// Number of rows read since the task last let other tasks run.
    moved: u32,
}

/// After this many rows the task lets other tasks run.
const ROWS_PER_TURN: u32 = 256;

impl InPlace {
    pub(super) fn new(cursor: Cursor) -> Self {
        Self { cursor: Mutex::new(cursor), current: None, moved: 0 }
    }

    pub(super) fn poll_advance(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        if self.moved == ROWS_PER_TURN {
            self.moved = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.moved += 1;
        let cursor = self.cursor.get_mut().unwrap_or_else(PoisonError::into_inner);
        let moved = cursor.advance();
        self.current = Rows::shared(cursor);
        Poll::Ready(moved)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.current.as_deref().map(Doc::stored)
    }
}
