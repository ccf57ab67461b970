use std::{sync::Arc, time::SystemTime};

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use slate_query::raw::Doc;

use super::cursor::{CommandCursor, CursorOwner, CursorRows};
use crate::{Activity, document::as_raw};

/// Maximum bytes of a command that an open cursor copies. Of a longer command it has only the name and the length.
const MAX_COMMAND: usize = 1000;

/// The properties of a cursor that only [`OpenCursor`] shows.
#[derive(Clone, Debug)]
pub(super) struct CursorFacts {
    /// `None` before the cursor is parked.
    command: Option<Arc<RawDocumentBuf>>,
    created: SystemTime,
    last_used: SystemTime,
    pub(super) documents: u64,
    batches: u64,
}

impl Default for CursorFacts {
    fn default() -> Self {
        let (created, last_used) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        Self { command: None, created, last_used, documents: 0, batches: 0 }
    }
}

impl CursorFacts {
    /// Records the command whose first batch was read.
    pub(super) fn opened_by(&mut self, command: Doc<'_>) {
        self.used();
        self.created = self.last_used;
        self.command = Some(Arc::new(described(command)));
    }

    /// Records that a batch was read.
    pub(super) fn used(&mut self) {
        self.last_used = SystemTime::now();
        self.batches += 1;
    }
}

fn described(command: Doc<'_>) -> RawDocumentBuf {
    let length = command.bytes().len();
    match as_raw(command.bytes()) {
        Ok(command) if length <= MAX_COMMAND => command.to_owned(),
        _ => {
            let name = command.elements().next().map(|first| first.display_name().into_owned()).unwrap_or_default();
            rawdoc! { "$truncated": format!("{name} of {length} bytes") }
        }
    }
}

/// The description of an open cursor; see [`Commands::cursors`](crate::Commands::cursors).
#[derive(Clone, Debug)]
pub struct OpenCursor {
    id: i64,
    namespace: String,
    pub(super) session: Option<Vec<u8>>,
    pub(super) transaction: Option<i64>,
    pub(super) owner: Option<CursorOwner>,
    facts: CursorFacts,
    times_out: bool,
    awaits: bool,
    activity: Option<Activity>,
    is_in_use: bool,
}

impl OpenCursor {
    pub(super) fn of(id: i64, cursor: &CommandCursor) -> Self {
        Self {
            id,
            namespace: cursor.namespace.clone(),
            session: cursor.session.clone(),
            transaction: cursor.transaction,
            owner: cursor.owner.clone(),
            facts: cursor.facts.clone(),
            times_out: cursor.times_out,
            awaits: matches!(cursor.rows, CursorRows::Changes(_)),
            activity: cursor.activity.clone(),
            is_in_use: false,
        }
    }

    pub(super) fn in_use(self) -> Self {
        Self { is_in_use: true, ..self }
    }

    /// Returns the id, for `getMore` and `killCursors`.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Returns the full name of the collection: `shop.users`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the UUID of the session that opened the cursor; `None` without a session.
    pub fn session(&self) -> Option<[u8; 16]> {
        // A BSON binary value: its length (4 bytes), its subtype (1 byte), its content.
        self.session.as_deref()?.get(5..)?.try_into().ok()
    }

    /// Returns the owner, if the cursor has one; see [`Commands::owned_by`](crate::Commands::owned_by).
    pub fn owner(&self) -> Option<&[u8]> {
        self.owner.as_deref()
    }

    /// Returns the command that opened the cursor; if it has more than 1,000 bytes, only its name and its length as `$truncated`.
    pub fn command(&self) -> Option<&RawDocument> {
        self.facts.command.as_ref().map(|command| &***command)
    }

    /// Returns when the cursor was opened.
    pub fn created(&self) -> SystemTime {
        self.facts.created
    }

    /// Returns when its last batch was read.
    pub fn last_used(&self) -> SystemTime {
        self.facts.last_used
    }

    /// Returns how many documents the cursor has returned.
    pub fn documents(&self) -> u64 {
        self.facts.documents
    }

    /// Returns how many batches the cursor has returned.
    pub fn batches(&self) -> u64 {
        self.facts.batches
    }

    /// Returns whether [`Commands::close_idle_cursors`](crate::Commands::close_idle_cursors) closes the cursor.
    pub fn times_out(&self) -> bool {
        self.times_out
    }

    /// Returns whether the cursor reads a change stream.
    pub fn is_of_changes(&self) -> bool {
        self.awaits
    }

    /// Returns whether a `getMore` is reading the cursor now.
    pub fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    /// Returns how the plan reads its records, as [`Activity::plan_summary`]; `None` if the command had no [`Activity`].
    pub fn plan_summary(&self) -> Option<String> {
        self.activity.as_ref()?.plan_summary()
    }
}
