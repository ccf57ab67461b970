//! Cursors: a reply contains one batch of a command's rows; the other rows are parked until `getMore` ([`parked_cursors`](super::parked_cursors)).

use std::{sync::Arc, time::Duration};

use bson::RawDocumentBuf;
use slate_query::raw::Doc;

use super::{
    call::CommandScope,
    common::Common,
    open_cursor::CursorFacts,
    reply::{Filled, Reply},
};
use crate::{
    Activity, CancelToken, QuotaPlace, Result,
    call::change_stream::{ChangeStreamState, Follower, ReadOutcome},
    call_context::CallContext,
    exec::Rows,
    interrupt::Interrupt,
    spill::{Memory, Spool},
};

/// MongoDB's limit on the bytes of a batch. The first document of a batch may exceed it.
const BATCH_BYTES: usize = 16 << 20;

/// The most documents of a batch if the command gives no size. A reply is in memory as a whole until it is sent, and larger ones are not faster for
/// the client.
const UNSIZED_BATCH: u64 = 50_000;

/// The most bytes of an element of a batch without its document: its type, and a name of at most eight digits with its terminator. MongoDB counts as
/// many per element.
const ELEMENT_BYTES: usize = 10;

/// A batch of more bytes than this reserves memory for the longest batch.
const LONG_BATCH: usize = 1 << 20;

/// The number of documents in MongoDB's first batch if the command gives no size.
pub(super) const FIRST_BATCH: u64 = 101;

/// How many rows a reply contains.
#[derive(Clone, Copy, Debug)]
pub(super) enum BatchSize {
    /// All rows, whatever their size: the caller has no cursors.
    Everything,
    /// At most this many documents; `None`: at most [`UNSIZED_BATCH`]. In both cases at most [`BATCH_BYTES`].
    Documents(Option<u64>),
}

/// The user who opened a cursor; see [`Commands::owned_by`](super::Commands::owned_by).
pub(super) type CursorOwner = Arc<[u8]>;

/// The options of a command's cursor.
#[derive(Clone, Copy, Debug)]
pub(super) struct CursorOptions {
    /// The maximum number of documents of the first batch.
    pub(super) batch: Option<u64>,
    /// The limit of the command: the maximum number of documents of all batches.
    pub(super) limit: Option<u64>,
    /// Whether the cursor ends with its first batch.
    pub(super) is_single: bool,
    /// Whether [`Commands::close_idle_cursors`](super::Commands::close_idle_cursors) closes the cursor.
    pub(super) times_out: bool,
}

impl CursorOptions {
    /// Returns default options with this size of the first batch; `None`: as many documents as fit.
    pub(super) fn in_batches(batch: Option<u64>) -> Self {
        Self { batch, limit: None, is_single: false, times_out: true }
    }
}

/// The rows of a command, and what the following batches need.
pub(super) struct CommandCursor {
    pub(super) rows: CursorRows,
    pub(super) namespace: String,
    /// How many more documents the command's limit allows.
    pub(super) left: Option<u64>,
    /// The time limit, which applies to each batch separately, and the interrupt that all nodes share.
    pub(super) max_time: Option<Duration>,
    pub(super) interrupt: Interrupt,
    /// Cancelled when the cursor is killed.
    pub(super) kill: CancelToken,
    /// The id of the session that opened the cursor.
    pub(super) session: Option<Vec<u8>>,
    /// The `txnNumber` of the transaction that opened the cursor.
    pub(super) transaction: Option<i64>,
    pub(super) owner: Option<CursorOwner>,
    pub(super) times_out: bool,
    /// The activity of the command that opened the cursor.
    pub(super) activity: Option<Activity>,
    pub(super) facts: CursorFacts,
    /// Whether the current row did not fit into the last batch, and is the first of the next one.
    pub(super) has_current: bool,
    /// The cursor's part of the quota of open cursors, once it is parked.
    pub(super) place: Option<QuotaPlace>,
}

/// The rows that a cursor reads.
pub(super) enum CursorRows {
    Query(Box<dyn Rows + Send>),
    /// A change stream, which has no last batch unless it is invalidated.
    Changes(Box<ChangeStreamState>),
}

/// Whether documents follow a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    More,
    Nothing,
}

impl CommandCursor {
    /// Returns the cursor of a change stream.
    pub(super) fn of_changes(
        state: Box<ChangeStreamState>,
        namespace: String,
        common: &Common,
        kill: CancelToken,
    ) -> Self {
        let mut call = common.call.clone();
        call.interrupt = call.interrupt.renewable();
        call.interrupt.cancel(kill.clone());
        Self::new(CursorRows::Changes(state), namespace, common, call.interrupt, kill)
    }

    pub(super) fn new(
        rows: CursorRows,
        namespace: String,
        common: &Common,
        interrupt: Interrupt,
        kill: CancelToken,
    ) -> Self {
        Self {
            rows,
            namespace,
            left: None,
            max_time: common.max_time,
            interrupt,
            kill,
            session: common.session.clone(),
            transaction: common.transaction,
            owner: common.owner.clone(),
            times_out: true,
            activity: common.call.activity.clone(),
            facts: CursorFacts::default(),
            has_current: false,
            place: None,
        }
    }

    /// Returns a cursor over a command's own documents: a list of definitions, or the effects of writes. They are held
    /// in memory whatever their size: a command that has written must not fail because it cannot write a temporary
    /// file.
    pub(super) fn listing(
        documents: impl IntoIterator<Item = RawDocumentBuf>,
        namespace: String,
        common: &Common,
        memory: &Memory,
    ) -> Result<Self> {
        let mut listed = Spool::unpooled(memory.limited(Some(usize::MAX)));
        documents.into_iter().try_for_each(|document| listed.push(document.as_bytes()))?;
        let rows = CursorRows::Query(Box::new(listed.into_rows()?));
        Ok(Self::new(rows, namespace, common, Interrupt::default(), CancelToken::new()))
    }

    /// Appends the documents of a batch.
    pub(super) fn fill(&mut self, batch: &mut Reply, size: BatchSize) -> Result<After> {
        let mut batch = ReplyBatch::new(batch, size);
        let after = match &mut self.rows {
            CursorRows::Query(_) => self.fill_rows(&mut batch),
            CursorRows::Changes(state) => fill_changes(state, &mut batch, &CallContext::within(self.interrupt.clone())),
        };
        self.facts.documents += batch.documents;
        after
    }

    /// Returns the resume token of a change stream; `None` for a query.
    pub(super) fn token(&self) -> Option<Vec<u8>> {
        match &self.rows {
            CursorRows::Query(_) => None,
            CursorRows::Changes(state) => Some(state.token().document()),
        }
    }

    fn fill_rows(&mut self, batch: &mut ReplyBatch<'_>) -> Result<After> {
        let CursorRows::Query(rows) = &mut self.rows else { return Ok(After::Nothing) };
        while self.left != Some(0) {
            if batch.is_full() {
                rows.park();
                return Ok(After::More);
            }
            if !self.has_current {
                self.has_current = rows.advance()?;
            }
            let Some(document) = rows.current().filter(|_| self.has_current) else { return Ok(After::Nothing) };
            if !batch.has_room_for(document) {
                rows.park();
                return Ok(After::More);
            }
            batch.add(document);
            (self.has_current, self.left) = (false, self.left.map(|left| left - 1));
        }
        Ok(After::Nothing)
    }
}

/// Appends the changes of a batch, without waiting for one.
fn fill_changes(state: &mut ChangeStreamState, batch: &mut ReplyBatch<'_>, call: &CallContext) -> Result<After> {
    while !batch.is_full() {
        let Some(next) = state.peek() else {
            // If an event fails, the documents read before it are returned first.
            if state.is_over() || batch.documents > 0 || state.read(call)? == ReadOutcome::AtEnd {
                break;
            }
            continue;
        };
        if !batch.has_room_for(Doc::from(&next.document)) {
            break;
        }
        if let Some(next) = state.take() {
            batch.add(Doc::from(&next.document));
        }
    }
    Ok(if state.is_over() { After::Nothing } else { After::More })
}

/// The documents of a reply, while they are appended.
struct ReplyBatch<'r> {
    reply: &'r mut Reply,
    size: BatchSize,
    documents: u64,
    bytes: usize,
}

impl<'r> ReplyBatch<'r> {
    fn new(reply: &'r mut Reply, size: BatchSize) -> Self {
        Self { reply, size, documents: 0, bytes: 0 }
    }

    /// Whether the batch has the maximum number of documents.
    fn is_full(&self) -> bool {
        match self.size {
            BatchSize::Everything => false,
            BatchSize::Documents(most) => self.documents >= most.unwrap_or(UNSIZED_BATCH),
        }
    }

    fn has_room_for(&self, document: Doc<'_>) -> bool {
        let is_limited = matches!(self.size, BatchSize::Documents(_)) && self.documents > 0;
        !is_limited || self.bytes + document.bytes().len() <= BATCH_BYTES
    }

    fn add(&mut self, document: Doc<'_>) {
        let before = self.bytes;
        self.bytes += document.bytes().len() + ELEMENT_BYTES;
        if before <= LONG_BATCH && self.bytes > LONG_BATCH && matches!(self.size, BatchSize::Documents(_)) {
            self.reply.expect_long_batch();
        }
        self.reply.document(&self.documents.to_string(), document);
        self.documents += 1;
    }
}

impl CommandScope<'_> {
    /// Appends the first batch of a cursor to a reply. Parks the cursor if rows remain and the caller has cursors.
    pub(super) fn first_batch(
        self,
        reply: &mut Reply,
        mut cursor: CommandCursor,
        options: CursorOptions,
    ) -> Result<()> {
        (cursor.left, cursor.times_out) = (options.limit, options.times_out);
        let namespace = cursor.namespace.clone();
        let size = self.cursors.map_or(BatchSize::Everything, |_| BatchSize::Documents(options.batch));
        reply.cursor("firstBatch", &namespace, |batch| {
            let after = cursor.fill(batch, size)?;
            let token = cursor.token();
            // The budget is for the first batch only: a thread that may wait reads the others.
            self.running.budget.iter().for_each(|budget| budget.lift());
            let stays = after == After::More && !options.is_single;
            let command = self.command;
            let id = self.cursors.filter(|_| stays).map_or(Ok(0), |cursors| cursors.park(cursor, command))?;
            Ok(Filled { id, token })
        })
    }
}

/// Returns the `id` of a session, as the bytes of its value.
pub(super) fn session_id(lsid: Doc<'_>) -> Option<Vec<u8>> {
    lsid.get("id").map(|id| id.bytes().to_vec())
}
