use std::{
    borrow::Cow,
    error::Error as StdError,
    fmt,
    path::{Path, PathBuf},
};

use crate::{Keyspace, files};

/// The result of a store's operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, classified by its meaning for the caller. Each backend maps its library's errors to this type in one file.
///
/// Two words in size, so that a cursor's `Result<bool>` is returned in registers; the details are boxed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Another transaction committed first and wrote or guarded a key that this one wrote or guarded. Nothing was applied; the whole transaction
    /// can be retried.
    Conflict(Box<Context>),
    /// A commit was started and its outcome is not known. Never retry blindly. Read to find out, after reopening the
    /// database if the backend requires it.
    OutcomeUnknown(Box<Context>),
    /// Another handle, in this process or another, has the database open.
    Locked(Box<Context>),
    /// The path does not contain a Slate database of this backend.
    WrongFormat(Box<Context>),
    /// The database was written by a later version of Slate or of the backend, which this version cannot read.
    NewerVersion(Box<Context>),
    /// The stored bytes are damaged.
    Corrupt(Box<Context>),
    /// The device or its quota is full. A commit that fails with this error was not acknowledged and is not visible. A store that stays usable
    /// fails with this error until the device has space. As after [`OutcomeUnknown`](Self::OutcomeUnknown), reopening the database shows all of
    /// the commit or, most likely, nothing.
    Full(Box<Context>),
    /// A key, a value or all writes of a transaction exceed a limit of the backend. A write that fails with this error is not made, and the
    /// transaction stays usable; a commit that fails with it writes nothing.
    TooLarge(Box<TooLarge>),
    /// The database does not exist and should not be created, the directory for it does not exist, or its URL is invalid.
    Missing(Box<Context>),
    /// The target of a backup exists already, and was not changed.
    Exists(Box<Context>),
    /// The database was opened read-only, its medium is read-only, or the system denies access.
    ReadOnly(Box<Context>),
    /// The backend or the platform does not support the operation, or not with these arguments.
    Unsupported(Box<Context>),
    /// The snapshot is older than what the store retains.
    Expired(Box<Context>),
    /// The caller has ended the read; see [`View::ended_by`](crate::View::ended_by).
    Interrupted(Box<Context>),
    /// The storage failed in another way; see [`source`](StdError::source).
    Io(Box<Context>),
}

/// The original error of the backend or the operating system.
pub type Source = Box<dyn StdError + Send + Sync>;

impl Error {
    /// Returns whether running the whole transaction again can succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// Returns the file or directory that caused the error, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.context().and_then(Context::path)
    }

    /// Returns the key over which transactions conflict, or at or after which the stored bytes are damaged; `None` if it is not known.
    pub fn key(&self) -> Option<(Keyspace, &[u8])> {
        let (keyspace, key) = self.context()?.key.as_ref()?;
        Some((*keyspace, key))
    }

    /// Adds the key at or after which the stored bytes are damaged. Leaves other errors unchanged.
    #[cfg(feature = "redb")]
    pub(crate) fn near(self, keyspace: Keyspace, key: &[u8]) -> Self {
        match self {
            Self::Corrupt(context) if context.key.is_none() => Self::Corrupt(Box::new(context.on(keyspace, key))),
            other => other,
        }
    }

    /// Returns whether this error or one of its causes is a full device.
    pub(crate) fn is_about_space(&self) -> bool {
        let causes = std::iter::successors(Some(self as &(dyn StdError + 'static)), |error| (*error).source());
        causes.into_iter().any(|cause| {
            let is_full = |error: &std::io::Error| files::is_full(error.kind());
            matches!(cause.downcast_ref(), Some(Self::Full(_))) || cause.downcast_ref().is_some_and(is_full)
        })
    }

    fn context(&self) -> Option<&Context> {
        match self {
            Self::Conflict(context)
            | Self::OutcomeUnknown(context)
            | Self::Locked(context)
            | Self::WrongFormat(context)
            | Self::NewerVersion(context)
            | Self::Corrupt(context)
            | Self::Full(context)
            | Self::Missing(context)
            | Self::Exists(context)
            | Self::ReadOnly(context)
            | Self::Unsupported(context)
            | Self::Expired(context)
            | Self::Interrupted(context)
            | Self::Io(context) => Some(context),
            Self::TooLarge(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, context) = match self {
            Self::Conflict(context) => ("the transaction conflicts with another", context),
            Self::OutcomeUnknown(context) => ("the outcome of the commit is unknown", context),
            Self::Locked(context) => ("the database is already open", context),
            Self::WrongFormat(context) => ("not a database of this format", context),
            Self::NewerVersion(context) => ("the database was written by a newer version", context),
            Self::Corrupt(context) => ("the stored bytes are damaged", context),
            Self::Full(context) => ("no space is left for the database", context),
            Self::Missing(context) => ("the file or folder does not exist", context),
            Self::Exists(context) => ("the target already exists", context),
            Self::ReadOnly(context) => ("the database is read-only", context),
            Self::Unsupported(context) => ("this backend does not support the operation", context),
            Self::Expired(context) => ("the snapshot is too old", context),
            Self::Interrupted(context) => ("the read was ended", context),
            Self::Io(context) => ("storage failed", context),
            Self::TooLarge(excess) => return excess.fmt(f),
        };
        f.write_str(what)?;
        context.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.context()?.source.as_deref().map(|source| source as _)
    }
}

/// The details of an [`Error`]: what happened, where, and why.
#[derive(Debug, Default)]
pub struct Context {
    detail: Cow<'static, str>,
    path: Option<PathBuf>,
    key: Option<(Keyspace, Box<[u8]>)>,
    source: Option<Source>,
}

impl Context {
    /// Creates a context with `detail`: a clause in the present tense without a full stop, possibly empty.
    pub fn new(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: detail.into(), path: None, key: None, source: None }
    }

    /// Adds the file or directory that caused the error.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Adds the key over which transactions conflict, or near which the stored bytes are damaged.
    #[must_use]
    pub fn on(mut self, keyspace: Keyspace, key: &[u8]) -> Self {
        self.key = Some((keyspace, key.into()));
        self
    }

    /// Adds the original error.
    #[must_use]
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets `detail` if it is empty.
    #[cfg(feature = "redb")]
    pub(crate) fn or(mut self, detail: &'static str) -> Self {
        if self.detail.is_empty() {
            self.detail = detail.into();
        }
        self
    }

    /// Returns what happened; empty if the kind of error says everything.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the original error.
    pub fn into_source(self) -> Option<Source> {
        self.source
    }

    /// Returns the file or directory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl From<&'static str> for Context {
    fn from(detail: &'static str) -> Self {
        Self::new(detail)
    }
}

/// Appends `: detail (path)` to the description of the error's kind.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        match &self.path {
            Some(path) => write!(f, " ({})", path.display()),
            None => Ok(()),
        }
    }
}

/// Something that exceeds a size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// What exceeds the limit: `"key"`, `"value"`, `"transaction"` for all keys and values that a transaction writes, or `"commit"` for
    /// these and the ones of its last stage.
    pub what: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// The backend's limit.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, size, limit } = self;
        write!(f, "a {what} of {size} bytes is over this backend's limit of {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_a_cursor_fits_two_registers() {
        assert_eq!(size_of::<Result<bool>>(), 2 * size_of::<usize>());
    }

    #[test]
    fn an_error_names_its_meaning_its_path_and_its_cause() {
        let cause = std::io::Error::other("held");
        let error = Error::Locked(Box::new(Context::new("by process 7").at(Path::new("/db")).because(cause)));
        assert_eq!(error.to_string(), "the database is already open: by process 7 (/db)");
        assert_eq!(error.source().unwrap().to_string(), "held");
        assert_eq!(error.path(), Some(Path::new("/db")));
        assert!(!error.is_retryable());
    }
}
