//! A change stream: reads the log from its position to the end and makes change events. Nothing runs between two calls; the caller waits for commits
//! with a waker of its choice.

use std::{collections::VecDeque, ops::ControlFlow, task::Waker};

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    expression::Bindings,
    pipeline::{self, Stage},
    raw::{Doc, Kind, Value, Writer},
};

use super::{DatabaseHandle, SharedReader};
use crate::{
    Error, ErrorKind, FullDocument, FullDocumentBeforeChange, Result,
    call_context::CallContext,
    catalog::{ChangeLogInfo, not_on_view},
    changes::{
        Added, CommitTime, Event, EventKind, Expanded, Images, Position, Token, TokenKind, Waiting, Watched,
        invalidation,
    },
    document::as_raw,
    entry::record_key,
};

/// The position at which a stream begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// With the next commit.
    #[default]
    Now,
    /// After an event other than an invalidation.
    ResumeAfter(Token),
    /// After any event, also an invalidation.
    StartAfter(Token),
    /// With the first commit at this time or later: seconds in the upper half, a counter in the lower half.
    At(u64),
}

/// The arguments of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamSpec {
    pub(crate) watched: Watched,
    pub(crate) start: StreamStart,
    pub(crate) full_document: FullDocument,
    pub(crate) before: FullDocumentBeforeChange,
    pub(crate) expanded: Expanded,
    /// The stages that follow `$changeStream`. Each returns at most one document for a document.
    pub(crate) stages: Vec<Stage>,
    /// Whether change events that are too large for a reply are split.
    pub(crate) splits: bool,
}

/// A change event, or a part of one, and its resume token.
#[derive(Clone, Debug)]
pub(crate) struct StreamDocument {
    pub(crate) document: RawDocumentBuf,
    pub(crate) token: Token,
}

/// A reader of the log, which makes items of its events. Between reads the caller waits.
pub(crate) trait Follower: Send + 'static {
    type Item;

    /// Removes and returns the next ready item; `None` if none is ready.
    fn take(&mut self) -> Option<Self::Item>;
    /// Whether the last item was taken: no further one can follow.
    fn is_over(&self) -> bool;
    /// Reads the log further if no items are ready. Returns whether items are ready or the log has more to read.
    ///
    /// # Errors
    /// Those of the reads. After an error, the follower must not be used any more: it could return events twice.
    fn read_further(&mut self, call: &CallContext) -> Result<ReadOutcome>;
    /// [Reads](Self::read_further) within the limits of the call, which also end work inside one event.
    ///
    /// # Errors
    /// Those of `read_further`, and `Interrupted`.
    fn read(&mut self, call: &CallContext) -> Result<ReadOutcome> {
        call.during(|| self.read_further(call))
    }
    fn database(&self) -> &DatabaseHandle;
    fn watched(&self) -> &Watched;
    /// Wakes `waker` at the next commit that changes what is watched. The caller must read once more after this call: earlier commits do not wake it.
    ///
    /// # Errors
    /// `Closed` if the database is closed.
    fn wait(&self, waker: Waker) -> Result<Waiting> {
        Ok(self.database().engine()?.wakers().wait(self.watched(), waker))
    }
}

pub(crate) struct ChangeStreamState {
    database: DatabaseHandle,
    spec: StreamSpec,
    log: u32,
    /// The events up to this position were read.
    position: Position,
    /// Commits before this time are skipped; 0 without a start time, and once a commit at this time or later was read.
    earliest: u64,
    /// The token of the last document taken; at first that of the start.
    token: Token,
    /// Documents not yet returned by `take`.
    ready: VecDeque<StreamDocument>,
    /// The token with which the stream was resumed, if it belongs to a part of a split event: this part and the ones before it are skipped.
    taken_parts: Option<Token>,
    /// The stream ended with an invalidation, which is among `ready` or was taken.
    has_ended: bool,
}

/// Maximum number of events per read, so that a stream that skips most events does not occupy its thread for long.
const READ_EVENTS: usize = 20_000;

/// A read ends when it has made at least this many bytes of documents.
const READ_BYTES: usize = 1 << 20;

/// Maximum document size in bytes, as in MongoDB.
const MAX_EVENT: usize = 16 << 20;

impl ChangeStreamState {
    /// Opens a stream.
    ///
    /// # Errors
    /// 40573 if changes are not logged; `CommandNotSupportedOnView` (166) for a view; `ChangeStreamHistoryLost` (286) if the events after the start
    /// are no longer in the log, or the token is of another log; `InvalidResumeToken` (260) for `resumeAfter` with the token of an invalidation.
    pub(crate) fn open(database: &DatabaseHandle, spec: StreamSpec, call: &CallContext) -> Result<Self> {
        let reader = database.reader(call)?;
        let log = changes_of(&reader)?;
        if let Watched::Collection(name) = &spec.watched
            && reader.catalog().view(name).is_some()
        {
            return Err(not_on_view(name));
        }
        let (start, earliest, resumed) = match spec.start {
            StreamStart::Now => (reader.last_change()?, 0, None),
            StreamStart::At(stamp) => (reader.change_at(stamp)?.ok_or_else(history_lost)?, stamp, None),
            StreamStart::ResumeAfter(token) if token.kind == TokenKind::Invalidate => {
                let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an \
                               invalidate notification";
                return Err(Error::invalid(Code::INVALID_RESUME_TOKEN, message).at("resumeAfter"));
            }
            StreamStart::ResumeAfter(token) | StreamStart::StartAfter(token) => {
                if token.log != log.id {
                    return Err(history_lost());
                }
                // After a part, the event is read again and the parts up to this one are skipped.
                let is_whole = token.kind != TokenKind::Part;
                let position = if is_whole { token.position } else { token.position.previous() };
                (position, token.earliest, Some(token))
            }
        };
        let mark = Token { earliest, ..Token::new(log.id, start, TokenKind::Mark) };
        let token = resumed.unwrap_or(mark);
        let mut stream = Self {
            database: database.clone(),
            spec,
            log: log.id,
            position: start,
            earliest,
            token,
            ready: VecDeque::new(),
            taken_parts: resumed.filter(|token| token.kind == TokenKind::Part),
            has_ended: false,
        };
        stream.check_history(&reader)?;
        if let Some(token) = resumed.filter(|token| token.kind == TokenKind::Event) {
            stream.resume_after_event(&reader, token)?;
        }
        Ok(stream)
    }

    /// If the stream is resumed after an event that ends it, adds the invalidation.
    fn resume_after_event(&mut self, reader: &SharedReader, token: Token) -> Result<()> {
        let before = token.position.previous();
        let mut ends_at = None;
        reader.changes(before, &mut |position, time, event| {
            if position == token.position && self.ends_with(event) {
                ends_at = Some(time);
            }
            Ok(ControlFlow::Break(()))
        })?;
        if let Some(time) = ends_at {
            self.end(time, token)?;
        }
        Ok(())
    }

    /// Returns the next ready document without removing it; `None` if none is ready.
    pub(crate) fn peek(&self) -> Option<&StreamDocument> {
        self.ready.front()
    }

    /// Returns the token with which to resume after all documents taken.
    pub(crate) fn token(&self) -> Token {
        if self.ready.is_empty() && !self.has_ended && self.token.position < self.position {
            return Token { earliest: self.earliest, ..Token::new(self.log, self.position, TokenKind::Mark) };
        }
        self.token
    }

    /// Fails if events after the position are no longer in the log, or the database has a new log or none. If the stream skips commits before a start
    /// time, these may be missing in the log.
    fn check_history(&mut self, reader: &SharedReader) -> Result<()> {
        if changes_of(reader)?.id != self.log {
            return Err(history_lost());
        }
        let trimmed = reader.trimmed_changes()?;
        if self.position < trimmed && self.earliest > 0 {
            // Moves the position past the skipped commits that the log no longer has.
            self.position = reader.change_at(self.earliest)?.map_or(self.position, |first| first.max(self.position));
        }
        if self.position < trimmed { Err(history_lost()) } else { Ok(()) }
    }

    fn shows(&self, event: &Event<'_>) -> bool {
        let watched = &self.spec.watched;
        let is_watched =
            watched.includes(event.source.name) || event.renamed_to().is_some_and(|to| watched.includes(to));
        // The stream of a collection has the drop of the collection instead.
        let is_shown = event.kind != EventKind::DropDatabase || !matches!(watched, Watched::Collection(_));
        is_watched && is_shown && (self.spec.expanded == Expanded::Yes || !event.kind.is_expanded())
    }

    /// Whether the stream ends after this event.
    fn ends_with(&self, event: &Event<'_>) -> bool {
        match (&self.spec.watched, event.kind) {
            (Watched::Collection(_), EventKind::Drop | EventKind::Rename) => self.shows(event),
            (Watched::Database(_), EventKind::DropDatabase) => self.shows(event),
            _ => false,
        }
    }

    fn end(&mut self, time: CommitTime, token: Token) -> Result<()> {
        let token = Token { kind: TokenKind::Invalidate, ..token };
        self.push(&invalidation(time, token), token)?;
        self.has_ended = true;
        Ok(())
    }

    /// Looks up the documents that the stream shows for an event, and adds the event; then the invalidation, if the event ends the stream.
    fn add(&mut self, reader: &SharedReader, position: Position, time: CommitTime, event: &Event<'_>) -> Result<()> {
        let token = Token::new(self.log, position, TokenKind::Event);
        let looked_up = match (event.kind, self.spec.full_document) {
            (EventKind::Update, FullDocument::UpdateLookup) => Some(look_up(reader, event)?),
            _ => None,
        };
        let missing = |image: &str| {
            let message = format!(
                "Change stream was configured to require a {image} for all update, delete and replace events, but the \
                 {image} was not found for event: {}",
                token.data()
            );
            Error::new(ErrorKind::NotFound, Code::NO_MATCHING_DOCUMENT, message)
        };
        let mut added = Added::default();
        if event.kind == EventKind::Update {
            let kept = (event.source.images == Images::Kept).then_some(event.document);
            added.full_document = match self.spec.full_document {
                FullDocument::Default => None,
                FullDocument::UpdateLookup => looked_up.as_ref().map(|found| found.as_ref().map(Doc::from)),
                FullDocument::WhenAvailable => Some(kept),
                FullDocument::Required => Some(Some(kept.ok_or_else(|| missing("post-image"))?)),
            };
        }
        if matches!(event.kind, EventKind::Update | EventKind::Replace | EventKind::Delete) {
            added.before = match self.spec.before {
                FullDocumentBeforeChange::Off => None,
                FullDocumentBeforeChange::WhenAvailable => Some(event.before),
                FullDocumentBeforeChange::Required => Some(Some(event.before.ok_or_else(|| missing("pre-image"))?)),
            };
        }
        let document = event.shaped(time, token, self.spec.expanded, added);
        self.push(&document, token)?;
        if self.ends_with(event) {
            self.end(time, token)?;
        }
        Ok(())
    }

    /// Applies the stages to a document. Adds the result unless a stage drops it, in parts if it is too large and the stream splits such events.
    fn push(&mut self, document: &[u8], token: Token) -> Result<()> {
        let Some(made) = through(&self.spec.stages, document)? else { return Ok(()) };
        let id = token.document();
        if Doc::new(&made).get("_id").and_then(|id| id.as_document()).map(Doc::bytes) != Some(&id) {
            let message = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                           pipeline. Modifying the _id field of an event makes it impossible to resume the stream from \
                           that point. Only transformations that retain the unmodified _id field are allowed.";
            return Err(Error::invalid(Code::CHANGE_STREAM_FATAL_ERROR, message));
        }
        if made.len() <= MAX_EVENT {
            self.taken_parts = None;
            self.ready.push_back(StreamDocument { document: owned(&made)?, token });
            return Ok(());
        }
        if !self.spec.splits {
            let message = format!("BSONObj size: {} is invalid. Size must be between 0 and {MAX_EVENT}", made.len());
            return Err(Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message));
        }
        let parts = split(Doc::new(&made), token)?;
        let taken = self.taken_parts.take().filter(|taken| taken.position == token.position);
        let first = taken.map_or(0, |taken| usize::try_from(taken.part).unwrap_or(usize::MAX).saturating_add(1));
        self.ready.extend(parts.into_iter().skip(first));
        Ok(())
    }
}

impl Follower for ChangeStreamState {
    type Item = StreamDocument;

    fn take(&mut self) -> Option<StreamDocument> {
        let next = self.ready.pop_front()?;
        self.token = next.token;
        Some(next)
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.ready.is_empty()
    }

    fn read_further(&mut self, call: &CallContext) -> Result<ReadOutcome> {
        if !self.ready.is_empty() || self.has_ended {
            return Ok(ReadOutcome::Ready);
        }
        let reader = self.database.reader(call)?;
        self.check_history(&reader)?;
        let (mut seen, mut bytes, mut newest) = (0, 0, 0);
        // If an event fails, the documents before it are returned first: the next read begins after `last` and fails.
        let (mut last, mut fails_next) = (self.position, false);
        let mut interrupt = call.interrupt.clone();
        let broken = reader.changes(self.position, &mut |position, time, event| {
            interrupt.tick()?;
            seen += 1;
            newest = time.stamp;
            // A stream with a start time in the future skips earlier commits.
            if time.stamp >= self.earliest && self.shows(event) {
                let before = self.ready.len();
                if let Err(error) = self.add(&reader, position, time, event) {
                    self.ready.truncate(before);
                    fails_next = before > 0;
                    return if fails_next { Ok(ControlFlow::Break(())) } else { Err(error) };
                }
                bytes += self.ready.iter().skip(before).map(|ready| ready.document.as_bytes().len()).sum::<usize>();
            }
            last = position;
            let is_full = seen >= READ_EVENTS || bytes >= READ_BYTES || self.has_ended;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if newest >= self.earliest {
            self.earliest = 0;
        }
        let is_at_end = broken.is_none();
        self.position = match broken {
            Some(_) if fails_next => last,
            Some(position) => position,
            None => reader.last_change()?.max(self.position),
        };
        Ok(if self.ready.is_empty() && is_at_end { ReadOutcome::AtEnd } else { ReadOutcome::Ready })
    }

    fn database(&self) -> &DatabaseHandle {
        &self.database
    }

    fn watched(&self) -> &Watched {
        &self.spec.watched
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Documents are ready, the log has more to read, or the stream has ended.
    Ready,
    /// No documents are ready, and all commits have been read.
    AtEnd,
}

fn changes_of(reader: &SharedReader) -> Result<ChangeLogInfo> {
    reader.catalog().change_log().copied().ok_or_else(not_logged)
}

/// Returns the error of a stream if changes are not logged: MongoDB's error on a standalone server.
pub(crate) fn not_logged() -> Error {
    let message = "The $changeStream stage is only supported on replica sets: switch the log of changes on first";
    Error::invalid(Code(40_573), message).at("$changeStream")
}

fn history_lost() -> Error {
    let message =
        "Resume of change stream was not possible, as the resume point may no longer be in the log of changes";
    Error::new(ErrorKind::NotFound, Code::CHANGE_STREAM_HISTORY_LOST, message)
}

/// Returns the current document with the `_id` of an event; `None` if there is none.
fn look_up(reader: &SharedReader, event: &Event<'_>) -> Result<Option<RawDocumentBuf>> {
    let Some(id) = event.id() else { return Ok(None) };
    let mut found = None;
    let mut visit = |document: Doc<'_>| {
        found = Some(owned(document.bytes())?);
        Ok(())
    };
    reader.get(event.source.name, &record_key(id)?, &mut visit)?;
    Ok(found)
}

/// Applies stages to a document. `None` if a stage drops it.
fn through(stages: &[Stage], document: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut made = document.to_vec();
    for stage in stages {
        let mut next = Vec::new();
        let document = Doc::new(&made);
        let is_kept = match stage {
            Stage::Match(filter) => {
                if filter.evaluate(document)? {
                    continue;
                }
                false
            }
            Stage::Project { projection, .. } => {
                projection.apply(document, None, &mut next)?;
                true
            }
            Stage::Redact(redact) => redact.apply(document, &mut next)?,
            Stage::ReplaceRoot(replace) => {
                replace.apply(document, &mut next)?;
                true
            }
            other => return Err(not_in_stream(other.name())),
        };
        if !is_kept {
            return Ok(None);
        }
        made = next;
    }
    Ok(Some(made))
}

/// Returns the error for a stage that a stream does not allow.
pub(crate) fn not_in_stream(stage: &str) -> Error {
    Error::invalid(Code::ILLEGAL_OPERATION, format!("{stage} is not permitted in a $changeStream pipeline")).at(stage)
}

/// Splits a document between fields into parts of at most [`MAX_EVENT`] bytes. Fails with 10334 if one field is larger.
fn split(document: Doc<'_>, token: Token) -> Result<Vec<StreamDocument>> {
    // Bytes for `_id`, `splitEvent`, and the document's length and end.
    const RESERVED: usize = 256;
    let mut fields: Vec<_> = document.elements().filter(|field| field.name != b"_id").collect();
    // Small fields share the first parts.
    fields.sort_by_key(|field| field.size());
    let mut groups: Vec<(usize, Vec<_>)> = Vec::new();
    for field in fields {
        let size = field.size();
        if size + RESERVED > MAX_EVENT {
            let message = format!("a field of {size} bytes is too large for a part of a split event");
            return Err(Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message));
        }
        match groups.last_mut().filter(|(bytes, _)| bytes + size + RESERVED <= MAX_EVENT) {
            Some((bytes, group)) => {
                *bytes += size;
                group.push(field);
            }
            None => groups.push((size, vec![field])),
        }
    }
    let of = i32::try_from(groups.len()).unwrap_or(i32::MAX);
    let parts = (0_u32..).zip(&groups).map(|(part, (bytes, fields))| {
        let kind = if part + 1 == of.unsigned_abs() { TokenKind::Event } else { TokenKind::Part };
        let token = Token { kind, part, ..token };
        let mut out = Writer::with_capacity(bytes + RESERVED);
        out.append(b"_id", Value::new(Kind::Document, &token.document()));
        fields.iter().for_each(|field| out.append(field.name, field.value));
        out.open_document(b"splitEvent");
        let fragment = i32::try_from(part).unwrap_or(i32::MAX - 1) + 1;
        out.append(b"fragment", Value::new(Kind::Int32, &fragment.to_le_bytes()));
        out.append(b"of", Value::new(Kind::Int32, &of.to_le_bytes()));
        out.close();
        Ok(StreamDocument { document: owned(&out.finish())?, token })
    });
    parts.collect()
}

fn owned(document: &[u8]) -> Result<RawDocumentBuf> {
    Ok(as_raw(document)?.to_owned())
}

/// The stages that may follow `$changeStream`.
const ALLOWED: [&[u8]; 8] =
    [b"$addFields", b"$match", b"$project", b"$redact", b"$replaceRoot", b"$replaceWith", b"$set", b"$unset"];

const SPLIT: &[u8] = b"$changeStreamSplitLargeEvent";

/// Parses the stages that follow `$changeStream`. Returns also whether large events are to be split.
///
/// # Errors
/// `IllegalOperation` (20) for a stage that a stream does not allow; 7182802 for a `$changeStreamSplitLargeEvent` that is not the last stage, 7182800
/// for one with options; the errors of the stages.
pub(crate) fn parse_stages<'s>(
    stages: impl Iterator<Item = Value<'s>>,
    bindings: &Bindings,
) -> Result<(Vec<Stage>, bool)> {
    let (mut parsed, mut splits) = (Vec::new(), false);
    for stage in stages {
        if splits {
            let message = "$changeStreamSplitLargeEvent must be the last stage in the pipeline";
            return Err(Error::invalid(Code(7_182_802), message).at("$changeStreamSplitLargeEvent"));
        }
        let first = stage.as_document().and_then(|stage| stage.elements().next());
        match first {
            Some(first) if first.name == SPLIT => {
                if !first.value.as_document().is_some_and(Doc::is_empty) {
                    let message = "$changeStreamSplitLargeEvent spec should be an empty object";
                    return Err(Error::invalid(Code(7_182_800), message).at("$changeStreamSplitLargeEvent"));
                }
                splits = true;
            }
            Some(first) if !ALLOWED.contains(&first.name) => {
                // An unknown stage fails as in any pipeline.
                return Err(match pipeline::parse(std::iter::once(stage), bindings) {
                    Err(error) if error.code() == Code(40_324) => error.into(),
                    _ => not_in_stream(&first.display_name()),
                });
            }
            _ => parsed.extend(pipeline::parse(std::iter::once(stage), bindings)?),
        }
    }
    Ok((parsed, splits))
}
