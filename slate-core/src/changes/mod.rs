//! The log of changes: what each commit did, in the order of commits. Only change streams, live queries and tailing cursors read it.
//!
//! ```text
//! a write ──▶ EventBuffer            one event per document, made with the change itself      (write/change_set.rs)
//!                 │  the last stage of the commit, which knows its version
//!                 ▼
//! keyspace of the log                version ‖ number of the first event → time, size, events
//!                 │  a snapshot, from a position on
//!                 ▼
//! stream ◀── Wakers                  wakes the streams whose collection a commit changed
//! ```
//!
//! # What must stay true
//!
//! - **An event is committed with its change or not at all.** Both are in one commit, so a crash loses neither alone.
//! - **Positions ascend with commits.** A position is the version of a commit and the number of an event within it. A commit gets its version under
//!   the lock that orders commits. So no commit appears later below a position that a reader has passed.
//! - **A stream misses no commit between its last read and its wait.** It registers its waker first and then reads once more.
//! - **Time and size ascend with the version**, so that both are found by bisection: each entry has the time of its commit and the number of
//!   bytes that were logged before it.
//!
//! | file | contents |
//! |---|---|
//! | [`event`] | events as bytes |
//! | [`log`] | keys and entries of the log: writing, reading, trimming |
//! | `polling` | the thread that looks for commits of other processes and for deadlines |
//! | [`shape`] | events as MongoDB's documents |
//! | [`tail`] | what this process knows of the end of the log |
//! | [`token`] | positions as resume tokens |
//! | [`wakers`] | streams that wait |

mod event;
mod log;
#[cfg(feature = "async")]
mod polling;
mod shape;
mod tail;
mod token;
mod wakers;

pub(crate) use event::{Event, EventBuffer, EventKind, EventSource, Images, event_size, is_logged};
pub(crate) use log::{
    CommitTime, LogCounts, LogWriter, Position, counts, entry_size, last_position, position_at, read, trim, trimmed,
};
#[cfg(feature = "async")]
pub(crate) use polling::{Polled, Seen, Turn};
pub(crate) use shape::{Added, Expanded, collection_uuid, invalidation};
pub(crate) use tail::LogTail;
pub(crate) use token::{Token, TokenKind};
pub(crate) use wakers::{OtherWriters, POLL, Waiting, Wakers, Watched};
