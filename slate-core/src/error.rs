use std::{error::Error as StdError, fmt};

use slate_query::{Code, Refusal};

/// What every fallible call of this crate gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: its meaning, a sentence, MongoDB's code, the field at fault where there is one, and the cause.
///
/// One word wide, so that results come back in registers.
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

/// What an [`Error`] means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The question or the document is not valid, as MongoDB sees it too.
    Invalid,
    /// MongoDB takes it, Slate does not offer it; [`Error::unsupported`] names it.
    Unsupported,
    /// A value that must be unique is there already.
    DuplicateKey,
    /// The collection, index or file that was named does not exist.
    NotFound,
    /// Something of that name exists already and differs.
    Exists,
    /// Another writer came first, or held the turn to write for too long. Nothing was applied; run it again.
    Conflict,
    /// The commit was begun and its end is not known: read to find out, never retry blindly.
    OutcomeUnknown,
    /// The deadline passed, or the operation was cancelled. Nothing was applied.
    Interrupted,
    /// The transaction was committed, rolled back, or ended by an earlier error.
    TransactionOver,
    /// A plain write inside this thread's own open transaction: waiting for it would never end.
    Reentrant,
    /// Another handle, in this process or another, holds the database open.
    Locked,
    /// What lies at the path is no Slate database, or one of a format that is read no more.
    WrongFormat,
    /// A later version of Slate wrote the database.
    NewerVersion,
    /// The stored bytes are damaged.
    Corrupt,
    /// No space is left.
    Full,
    /// A document, key or value is over a limit.
    TooLarge,
    /// The database, or the handle, is for reading only.
    ReadOnly,
    /// A value of the caller's own type could not be turned into a document, or a document into it.
    Conversion,
    /// The database was closed by [`Database::close`](crate::Database::close).
    Closed,
    /// The storage failed in a way that has no meaning of its own here; the source tells more.
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

    /// An index's entry without its record.
    pub(crate) fn dangling(collection: &str) -> Self {
        Self::corrupt(format!("an index of collection {collection} names a record that is not there"))
    }

    pub(crate) fn transaction_over(why: &str) -> Self {
        Self::new(ErrorKind::TransactionOver, Code(251), format!("the transaction is over: {why}"))
    }

    pub(crate) fn conversion(source: impl StdError + Send + Sync + 'static) -> Self {
        let message = format!("the value is not the document it should be: {source}");
        let mut error = Self::new(ErrorKind::Conversion, Code::BAD_VALUE, message);
        error.0.source = Some(source.into());
        error
    }

    /// The one place where errors of temporary files take their meaning.
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

    /// Whether what was asked for is at fault, and not the storage or the time: nothing of it was applied.
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

    /// The same error, to be told another time; without its cause, which cannot be copied.
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

    /// What it means to the caller.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// MongoDB's number for it, such as 11000 for a duplicate key.
    pub fn code(&self) -> i32 {
        self.0.code.0
    }

    /// MongoDB's name for the number, such as `DuplicateKey`.
    pub fn code_name(&self) -> String {
        self.0.code.name()
    }

    /// The sentence, without path and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the field at fault, where the error is about one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The name of the operator or option that Slate does not offer, where that is what is wrong.
    pub fn unsupported(&self) -> Option<&str> {
        self.0.unsupported.as_deref()
    }

    /// Whether running the same call, or the whole transaction, again may succeed with nothing else changed.
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

/// MongoDB's number for an update whose outcome is over the limit of a document.
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

/// The one place where the store's errors take their meaning here.
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
