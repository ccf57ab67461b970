use std::{error::Error as StdError, fmt};

use slate_query::{Code, Refusal, raw::Doc};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, a message, MongoDB's code, optionally the path of the field at fault, and the cause.
///
/// One word in size, so that results are returned in registers.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    code: Code,
    message: String,
    path: Option<String>,
    unsupported: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The query or document is invalid, in MongoDB as well.
    Invalid,
    /// MongoDB supports it and Slate does not; [`Error::unsupported`] returns its name.
    Unsupported,
    /// A unique value exists already.
    DuplicateKey,
    /// The named collection, index or file does not exist.
    NotFound,
    /// Something different with this name exists already.
    Exists,
    /// Another writer committed first or held the writer queue for too long. Nothing was applied; the call can be
    /// retried.
    Conflict,
    /// A commit was started and its outcome is not known. Read to find out; never retry blindly.
    OutcomeUnknown,
    /// The deadline passed or the operation was cancelled. Nothing was applied.
    Interrupted,
    /// The transaction was committed, rolled back, or ended by an earlier error.
    TransactionOver,
    /// A plain write inside this thread's own open transaction, which would wait forever.
    Reentrant,
    /// Another handle, in this process or another, has the database open.
    Locked,
    /// The path contains no Slate database, or one of a format that is no longer supported.
    WrongFormat,
    /// The database was written by a later version of Slate.
    NewerVersion,
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
    /// The database was closed by [`Database::close`](crate::Database::close).
    Closed,
    /// The storage failed in another way; see the source.
    Io,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, code, message: message.into(), path: None, unsupported: None, source: None }))
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

    /// Returns the error for an index entry without a record.
    pub(crate) fn dangling(collection: &str) -> Self {
        Self::corrupt(format!("an index of collection {collection} refers to a missing record"))
    }

    pub(crate) fn transaction_over(why: &str) -> Self {
        Self::new(ErrorKind::TransactionOver, Code(251), format!("the transaction is over: {why}"))
    }

    pub(crate) fn conversion(source: impl StdError + Send + Sync + 'static) -> Self {
        let message = format!("the value could not be converted: {source}");
        let mut error = Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message);
        error.0.source = Some(source.into());
        error
    }

    /// Returns the error for a document of the collection that is not a value of the caller's type.
    #[cold]
    pub(crate) fn not_convertible(collection: &str, document: Doc<'_>, source: slate_query::serde::Error) -> Self {
        let id = document.get("_id").map_or_else(|| "without _id".into(), |id| format!("with _id {id:?}"));
        Self::of_serde(&format!("the document {id} of collection {collection}"), source)
    }

    /// Returns the error for a value of the caller's type that cannot be stored as a document of the collection.
    #[cold]
    pub(crate) fn not_serializable(collection: &str, source: slate_query::serde::Error) -> Self {
        let what = format!("a document for collection {collection}");
        Self::of_serde(&what, source)
    }

    /// A distinct value that is not of the requested type.
    pub(crate) fn value_not_convertible(collection: &str, path: &str, source: slate_query::serde::Error) -> Self {
        Self::of_serde(&format!("a value at {path} of collection {collection}"), source)
    }

    fn of_serde(what: &str, source: slate_query::serde::Error) -> Self {
        let message = format!("{what} could not be converted: {}", source.message());
        let mut error = Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message);
        error.0.path = source.path().map(str::to_owned);
        error.0.source = Some(source.into());
        error
    }

    /// Maps errors of temporary files; the only place that does so.
    pub(crate) fn spill(what: &str, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Cause;
        let (kind, code) = match source.kind() {
            Cause::StorageFull | Cause::QuotaExceeded | Cause::FileTooLarge => (ErrorKind::Full, Code(14031)),
            _ => (ErrorKind::Io, Code::INTERNAL_ERROR),
        };
        let mut error = Self::new(kind, code, format!("{what}: {source}"));
        error.0.source = Some(source.into());
        error
    }

    pub(crate) fn duplicate_key(collection: &str, index: &str, key: &str) -> Self {
        Self::new(
            ErrorKind::DuplicateKey,
            Code::DUPLICATE_KEY,
            format!("E11000 duplicate key error collection: {collection} index: {index} dup key: {key}"),
        )
    }

    pub(crate) fn too_large(message: String) -> Self {
        Self::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message)
    }

    /// Returns whether the request caused the error, and not the storage or a time limit. Nothing of it was applied.
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
        let Inner { kind, code, message, path, unsupported, source: _ } = &*self.0;
        Self(Box::new(Inner {
            kind: *kind,
            code: *code,
            message: message.clone(),
            path: path.clone(),
            unsupported: unsupported.clone(),
            source: None,
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

    /// Returns the name of the unsupported operator or option, if that is the error.
    pub fn unsupported(&self) -> Option<&str> {
        self.0.unsupported.as_deref()
    }

    /// Returns whether running the same call or the whole transaction again can succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.kind == ErrorKind::Conflict
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.path.as_ref().map_or(Ok(()), |path| write!(f, " (at '{path}')"))
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
            Code::BSON_OBJECT_TOO_LARGE | UPDATED_TOO_LARGE => ErrorKind::TooLarge,
            _ => ErrorKind::Invalid,
        };
        Self(Box::new(Inner {
            kind,
            code: error.code(),
            message: error.message().into(),
            path: error.path().map(Into::into),
            unsupported,
            source: None,
        }))
    }
}

/// Maps errors of the store; the only place that does so.
impl From<slate_store::Error> for Error {
    fn from(error: slate_store::Error) -> Self {
        use slate_store::Error as Store;
        let (kind, code) = match &error {
            Store::Conflict(_) => (ErrorKind::Conflict, Code::WRITE_CONFLICT),
            Store::Reentrant(_) => (ErrorKind::Reentrant, Code::ILLEGAL_OPERATION),
            Store::OutcomeUnknown(_) => (ErrorKind::OutcomeUnknown, Code(91)),
            Store::Locked(_) => (ErrorKind::Locked, Code(98)),
            Store::WrongFormat(_) => (ErrorKind::WrongFormat, Code::BAD_VALUE),
            Store::NewerVersion(_) => (ErrorKind::NewerVersion, Code::BAD_VALUE),
            Store::Corrupt(_) => (ErrorKind::Corrupt, Code::INTERNAL_ERROR),
            Store::Full(_) => (ErrorKind::Full, Code(14031)),
            Store::TooLarge(_) => (ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE),
            Store::Missing(_) => (ErrorKind::NotFound, Code(38)),
            Store::Exists(_) => (ErrorKind::Exists, Code(37)),
            Store::ReadOnly(_) => (ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION),
            Store::Unsupported(_) => (ErrorKind::Unsupported, Code::NOT_IMPLEMENTED),
            _ => (ErrorKind::Io, Code::INTERNAL_ERROR),
        };
        let mut mapped = Self::new(kind, code, error.to_string());
        mapped.0.source = Some(error.into());
        mapped
    }
}
