use std::{error::Error as StdError, fmt};

use bson::{Bson, Document};
use slate_query::{
    Code, Refusal,
    raw::{Doc, Value, validate},
};
use slate_store::Keyspace;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, a message, MongoDB's code, its place (collection, index, key, path of the field), and the cause.
///
/// `Display` prints the message and the path. `Debug` adds the causes that the message does not contain, so that a program whose
/// `main` returns a [`Result`] prints a text for people.
///
/// One word in size, so that results are returned in registers.
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    code: Code,
    message: String,
    path: Option<String>,
    unsupported: Option<String>,
    place: Option<ErrorPlace>,
    details: Option<Document>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// Whether a commit failed before it wrote anything.
    is_unwritten: bool,
}

/// The place of an error: a collection, a key of one of its indexes, or a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorPlace {
    /// `None` for the list of collections.
    pub(crate) collection: Option<String>,
    pub(crate) index: Option<String>,
    /// The fields of the key and their values; `_id` alone for a document.
    pub(crate) key: Option<Document>,
    /// The keys with which the index was declared.
    pub(crate) key_pattern: Option<Document>,
}

/// Returns a stored collection's name for messages: the full name if it is not in the default database (see `namespace`).
pub(crate) fn shown_collection(stored: &str) -> &str {
    stored.strip_prefix('$').unwrap_or(stored)
}

impl fmt::Display for ErrorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, index, key, key_pattern: _ } = self;
        let Some(collection) = collection else { return f.write_str("the list of collections") };
        let collection = shown_collection(collection);
        match (index, key) {
            (Some(index), Some(key)) => write!(f, "key {key} of index {index} of collection {collection}"),
            (Some(index), None) => write!(f, "index {index} of collection {collection}"),
            (None, Some(key)) => write!(f, "document {key} of collection {collection}"),
            (None, None) => write!(f, "collection {collection}"),
        }
    }
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The query or document is invalid, in MongoDB as well.
    Invalid,
    /// MongoDB has this operator, option or command and Slate does not; [`Error::unsupported`] returns its name.
    Unsupported,
    /// An `_id` or a unique value is stored already.
    DuplicateKey,
    /// The named collection, index or file does not exist.
    NotFound,
    /// Another collection, view, index or file has this name already.
    Exists,
    /// Another writer committed first. Nothing was applied; the call can be retried.
    Conflict,
    /// A commit was started and its outcome is not known. Read to find out; do not retry before.
    OutcomeUnknown,
    /// The deadline passed, the operation was cancelled, or its snapshot became older than the store retains. Nothing was applied.
    Interrupted,
    /// The transaction was committed, rolled back, or ended by an earlier error.
    TransactionOver,
    /// A write outside of an open transaction by the thread or task that began it, or a nested call on the same
    /// transaction. Nothing was applied; use the transaction's collections, or end it first.
    Reentrant,
    /// Another handle, in this process or another, has the database open.
    Locked,
    /// The path contains no Slate database, or one of a format that is no longer supported.
    WrongFormat,
    /// The database was written by a later version of Slate.
    NewerVersion,
    /// The database has migration steps that the program does not know; see [`Migrations`](crate::Migrations).
    NewerSchema,
    /// The stored bytes are damaged.
    Corrupt,
    /// No space is left.
    Full,
    /// A document, key or value exceeds a limit.
    TooLarge,
    /// The database or the handle is read-only.
    ReadOnly,
    /// A value of the caller's type could not be converted to or from a document.
    Conversion,
    /// An error of the caller's own, made by [`Error::custom`].
    Custom,
    /// The database was closed by [`Database::close`](crate::Database::close).
    Closed,
    /// The storage failed in another way; see the source.
    Io,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(ErrorInner {
            kind,
            code,
            message,
            path: None,
            unsupported: None,
            place: None,
            details: None,
            source: None,
            is_unwritten: false,
        }))
    }

    /// Creates an error of the caller's own, of the kind [`ErrorKind::Custom`] with MongoDB's code 8 (`UnknownError`). Its
    /// message is that of `error`, which [`source`](StdError::source) returns.
    ///
    /// ```
    /// use slate_core::{Error, ErrorKind};
    ///
    /// let error = "x".parse::<i32>().map_err(Error::custom).unwrap_err();
    /// assert_eq!((error.kind(), error.message()), (ErrorKind::Custom, "invalid digit found in string"));
    /// assert_eq!(Error::custom("the account is empty").to_string(), "the account is empty");
    /// ```
    pub fn custom(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = error.into();
        Self::new(ErrorKind::Custom, Code::UNKNOWN_ERROR, source.to_string()).caused_by(source)
    }

    fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    fn about(mut self, collection: &str) -> Self {
        self.0.place = Some(ErrorPlace { collection: Some(collection.into()), ..ErrorPlace::default() });
        self
    }

    pub(crate) fn invalid(code: Code, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, code, message)
    }

    pub(crate) fn unsupported_by_name(name: &str) -> Self {
        slate_query::Error::unsupported(name).into()
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, Code::INTERNAL_ERROR, message)
    }

    /// Adds MongoDB's `errInfo`.
    pub(crate) fn with_details(mut self, details: Document) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Shortens the error of a document or statement after `others` rejected ones of the same call. A call can have 100,000 such errors, and each
    /// could show values of 16 MiB.
    pub(crate) fn refused_after(mut self, others: usize) -> Self {
        /// Maximum number of errors of a call that have details.
        const DETAILED: usize = 256;
        /// Maximum bytes of the message, the path and the unsupported name: `LONG` for an error with details, `SHORT` for a later one. If the message
        /// is longer, the key is dropped, too.
        const LONG: usize = 16 << 10;
        const SHORT: usize = 512;
        let is_detailed = others < DETAILED;
        if !is_detailed {
            self.0.details = None;
        }
        let most = if is_detailed { LONG } else { SHORT };
        [&mut self.0.path, &mut self.0.unsupported].into_iter().flatten().for_each(|text| shorten(text, most));
        if self.0.message.len() > most {
            shorten(&mut self.0.message, most);
            if let Some(place) = &mut self.0.place {
                place.key = None;
            }
        }
        self
    }

    /// Returns the error for an index entry without a record.
    pub(crate) fn dangling(collection: &str) -> Self {
        Self::corrupt(format!("an index of collection {collection} refers to a missing record"))
    }

    pub(crate) fn transaction_over(why: &str) -> Self {
        Self::new(ErrorKind::TransactionOver, Code::NO_SUCH_TRANSACTION, format!("the transaction is over: {why}"))
    }

    pub(crate) fn conversion(source: impl StdError + Send + Sync + 'static) -> Self {
        let message = format!("the value could not be converted: {source}");
        Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message).caused_by(source)
    }

    /// Returns the error for a document of the collection that is not a value of the caller's type.
    #[cold]
    pub(crate) fn not_convertible(collection: &str, document: Doc<'_>, source: slate_query::serde::Error) -> Self {
        let id = document.get("_id");
        let shown = id.map_or_else(|| "without _id".into(), |id| format!("with _id {id:?}"));
        let what = format!("the document {shown} of collection {collection}");
        let mut error = match validate(document.bytes()) {
            Ok(_) => Self::of_serde(collection, &what, source),
            // The stored bytes are damaged; the type is not at fault.
            Err(fault) => Self::damaged_document(collection, &what, &fault),
        };
        if let Some(place) = &mut error.0.place {
            place.key = id.and_then(Value::to_bson).map(|id| bson::doc! { "_id": id });
        }
        error
    }

    fn damaged_document(collection: &str, what: &str, fault: &slate_query::Error) -> Self {
        Self::corrupt(format!("{what} is damaged: {}", fault.message())).about(collection)
    }

    /// Returns the error for a value of the caller's type that cannot be stored as a document of the collection.
    #[cold]
    pub(crate) fn not_serializable(collection: &str, source: slate_query::serde::Error) -> Self {
        let what = format!("a document for collection {collection}");
        Self::of_serde(collection, &what, source)
    }

    /// Returns the error for a distinct value that is not of the requested type.
    pub(crate) fn value_not_convertible(collection: &str, path: &str, source: slate_query::serde::Error) -> Self {
        Self::of_serde(collection, &format!("a value at {path} of collection {collection}"), source)
    }

    fn of_serde(collection: &str, what: &str, source: slate_query::serde::Error) -> Self {
        let message = format!("{what} could not be converted: {}", source.message());
        let mut error = Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message).about(collection);
        error.0.path = source.path().map(str::to_owned);
        error.caused_by(source)
    }

    /// Maps errors of temporary files; the only place that does so.
    pub(crate) fn spill(what: &str, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Cause;
        let (kind, code) = match source.kind() {
            Cause::StorageFull | Cause::QuotaExceeded | Cause::FileTooLarge => {
                (ErrorKind::Full, Code::OUT_OF_DISK_SPACE)
            }
            _ => (ErrorKind::Io, Code::INTERNAL_ERROR),
        };
        Self::new(kind, code, format!("{what}: {source}")).caused_by(source)
    }

    /// Creates the error of a duplicate key. `shown` is the end of the message: the index's collation, if it has one, and the key. MongoDB's drivers
    /// and tests expect this text.
    pub(crate) fn duplicate_key(
        collection: &str,
        index: &str,
        key_pattern: Document,
        key: Document,
        shown: &str,
    ) -> Self {
        let message =
            format!("E11000 duplicate key error collection: {} index: {index} {shown}", shown_collection(collection));
        let mut error = Self::new(ErrorKind::DuplicateKey, Code::DUPLICATE_KEY, message);
        error.0.place = Some(ErrorPlace {
            collection: Some(collection.into()),
            index: Some(index.into()),
            key: Some(key),
            key_pattern: Some(key_pattern),
        });
        error
    }

    /// Creates a conflict over a collection that the transaction has read as a whole.
    pub(crate) fn read_conflict(collection: &str) -> Self {
        let message = format!("another transaction wrote to the collection {collection}, which this one has read");
        Self::new(ErrorKind::Conflict, Code::WRITE_CONFLICT, message).about(collection)
    }

    /// Adds the collection, index and key to a conflict or damage reported by the store. `locate` finds them by the key in the store.
    #[must_use]
    pub(crate) fn located(mut self, locate: impl FnOnce(Keyspace, &[u8]) -> Option<ErrorPlace>) -> Self {
        if !matches!(self.0.kind, ErrorKind::Conflict | ErrorKind::Corrupt) || self.0.place.is_some() {
            return self;
        }
        let store = self.0.source.as_ref().and_then(|source| source.downcast_ref::<slate_store::Error>());
        if let Some(place) = store.and_then(slate_store::Error::key).and_then(|(keyspace, key)| locate(keyspace, key)) {
            let near = if self.0.kind == ErrorKind::Corrupt { "at or behind " } else { "" };
            self.0.message = format!("{}: {near}{place}", self.0.message);
            self.0.place = Some(place);
        }
        self
    }

    /// Adds the migration step that failed to the message.
    #[must_use]
    pub(crate) fn of_step(mut self, number: usize, name: &str) -> Self {
        self.0.message = format!("migration step {number} {name:?} failed: {}", self.0.message);
        self
    }

    #[must_use]
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    pub(crate) fn too_large(message: String) -> Self {
        Self::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message)
    }

    /// Returns whether the request itself caused the error, rather than the storage or a time limit. Nothing of the request was applied.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::DuplicateKey | ErrorKind::TooLarge
        )
    }

    #[must_use]
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Copies the error without its cause, which cannot be cloned.
    pub(crate) fn again(&self) -> Self {
        let ErrorInner { kind, code, message, path, unsupported, place, details, source: _, is_unwritten } = &*self.0;
        Self(Box::new(ErrorInner {
            kind: *kind,
            code: *code,
            message: message.clone(),
            path: path.clone(),
            unsupported: unsupported.clone(),
            place: place.clone(),
            details: details.clone(),
            source: None,
            is_unwritten: *is_unwritten,
        }))
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns MongoDB's code, such as 11000 for a duplicate key.
    pub fn code(&self) -> i32 {
        self.0.code.0
    }

    /// Returns the name of MongoDB's code, such as `DuplicateKey`.
    pub fn code_name(&self) -> String {
        self.0.code.name()
    }

    /// Returns the message, without path and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path of the field that caused the error, if there is one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns the name of the collection that a duplicate key, a conflict, damage or a failed conversion is about; `None` if it is not known.
    pub fn collection(&self) -> Option<&str> {
        self.0.place.as_ref()?.collection.as_deref()
    }

    /// Returns the name of the index that a duplicate key or a conflict is about, if there is one: `_id_` for a duplicate `_id`.
    pub fn index(&self) -> Option<&str> {
        self.0.place.as_ref()?.index.as_deref()
    }

    /// Returns MongoDB's `errInfo`, if the error has one. If a document violates the validator of its collection (code 121), it contains
    /// `failingDocumentId` and `details`, a tree of the conditions that the document violates. If a call rejects several documents, only the first
    /// 256 errors have details. Values are added while the details have less than 256 KiB, conditions while they have less than 512 KiB; the details
    /// never exceed 768 KiB.
    pub fn details(&self) -> Option<&Document> {
        self.0.details.as_ref()
    }

    /// Returns the key that a duplicate key or a conflict is about, if it is known: the fields of the index and their values, or
    /// `{ _id: … }` for a document.
    ///
    /// Values that an index does not distinguish, such as the numbers 1 and 1.0, are returned as the more usual type. Values that
    /// an index holds only in part are absent. A duplicate key of an index with a collation has the strings of the rejected
    /// document.
    pub fn key(&self) -> Option<&Document> {
        self.0.place.as_ref()?.key.as_ref()
    }

    /// Returns the keys with which the index of a duplicate key was declared, such as `{ email: 1 }`; `{ _id: 1 }` for a duplicate
    /// `_id`.
    pub fn key_pattern(&self) -> Option<&Document> {
        self.0.place.as_ref()?.key_pattern.as_ref()
    }

    /// Returns the `_id` of the document that a duplicate `_id`, a conflict or a failed conversion is about, if it is known.
    pub fn id(&self) -> Option<&Bson> {
        self.key()?.get("_id")
    }

    /// Returns the name of the unsupported operator, option or command; `None` for other errors.
    pub fn unsupported(&self) -> Option<&str> {
        self.0.unsupported.as_deref()
    }

    /// Returns whether running the same call or the whole transaction again can succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.kind == ErrorKind::Conflict
    }

    /// Returns whether a commit that failed with this error certainly left nothing visible.
    pub(crate) fn leaves_nothing(&self) -> bool {
        matches!(self.kind(), ErrorKind::Conflict | ErrorKind::TooLarge | ErrorKind::Full) || self.0.is_unwritten
    }

    /// Marks the error of a commit that has written nothing.
    pub(crate) fn unwritten(mut self) -> Self {
        self.0.is_unwritten = true;
        self
    }
}

/// Shortens a text to about `most` bytes.
fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.path.as_ref().map_or(Ok(()), |path| write!(f, " (at '{path}')"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.to_string();
        f.write_str(&shown)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Many messages contain the message of their cause.
            if !shown.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
                shown = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// MongoDB's code for an update whose result exceeds the size limit of a document.
const UPDATED_TOO_LARGE: Code = Code(17419);

impl From<slate_query::Error> for Error {
    fn from(error: slate_query::Error) -> Self {
        let unsupported = match error.refusal() {
            Refusal::Unsupported(name) => Some(name.to_string()),
            _ => None,
        };
        let kind = match error.code() {
            _ if unsupported.is_some() => ErrorKind::Unsupported,
            Code::BSON_OBJECT_TOO_LARGE | UPDATED_TOO_LARGE | Code::EXCEEDED_MEMORY_LIMIT => ErrorKind::TooLarge,
            Code::INTERRUPTED | Code::MAX_TIME_MS_EXPIRED => ErrorKind::Interrupted,
            _ => ErrorKind::Invalid,
        };
        let mut mapped = Self::new(kind, error.code(), error.message());
        mapped.0.path = error.path().map(Into::into);
        mapped.0.unsupported = unsupported;
        mapped
    }
}

/// Converts an error of the `bson` crate, such as one of `Document::get_i32`, to the kind [`ErrorKind::Conversion`]
/// with its path.
impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Self {
        let message = match &error.message {
            Some(message) => format!("{}: {message}", error.kind),
            None => error.kind.to_string(),
        };
        let mut converted = Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message);
        converted.0.path.clone_from(&error.key);
        converted
    }
}

/// Maps errors of the store; the only place that does so.
impl From<slate_store::Error> for Error {
    fn from(error: slate_store::Error) -> Self {
        use slate_store::Error as Store;
        let error = match error {
            // The source is the error with which the call's interrupt ended the read.
            Store::Interrupted(context) => {
                let ended = |cause: slate_store::Source| cause.downcast::<Self>().ok();
                let unknown = || Self::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the read was ended");
                return context.into_source().and_then(ended).map_or_else(unknown, |error| *error);
            }
            error => error,
        };
        let (kind, code) = match &error {
            Store::Conflict(_) => (ErrorKind::Conflict, Code::WRITE_CONFLICT),
            Store::OutcomeUnknown(_) => (ErrorKind::OutcomeUnknown, Code::SHUTDOWN_IN_PROGRESS),
            Store::Locked(_) => (ErrorKind::Locked, Code::DB_PATH_IN_USE),
            Store::WrongFormat(_) => (ErrorKind::WrongFormat, Code::BAD_VALUE),
            Store::NewerVersion(_) => (ErrorKind::NewerVersion, Code::BAD_VALUE),
            Store::Corrupt(_) => (ErrorKind::Corrupt, Code::INTERNAL_ERROR),
            Store::Full(_) => (ErrorKind::Full, Code::OUT_OF_DISK_SPACE),
            Store::TooLarge(_) => (ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE),
            Store::Missing(_) => (ErrorKind::NotFound, Code::FILE_NOT_OPEN),
            Store::Exists(_) => (ErrorKind::Exists, Code::FILE_RENAME_FAILED),
            Store::ReadOnly(_) => (ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION),
            Store::Unsupported(_) => (ErrorKind::Unsupported, Code::NOT_IMPLEMENTED),
            Store::Expired(_) => (ErrorKind::Interrupted, Code::SNAPSHOT_TOO_OLD),
            _ => (ErrorKind::Io, Code::INTERNAL_ERROR),
        };
        Self::new(kind, code, error.to_string()).caused_by(error)
    }
}
