use std::{
    borrow::Cow,
    error::Error as StdError,
    fmt,
    path::{Path, PathBuf},
};

/// What a store's operation gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by meaning. Each backend maps its own errors here, in one place of its own.
///
/// Two words wide, so that a cursor's `Result<bool>` comes back in registers: all that an error has to tell is boxed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Another transaction committed what this one wrote or guarded, or held the turn to write for too long.
    /// Nothing was applied; run the whole transaction again.
    Conflict(Box<Context>),
    /// This thread began a write transaction that is still open, and writers take turns: waiting for it would never
    /// end. Nothing was applied, and trying again helps only after the open transaction ended.
    Reentrant(Box<Context>),
    /// The commit was begun and its end is not known: it may or may not have been applied. Never retried blindly;
    /// read, after opening the database again where the backend asks for it, to find out.
    OutcomeUnknown(Box<Context>),
    /// Another handle, in this process or another, holds the database open.
    Locked(Box<Context>),
    /// What lies at the path is not a database of this backend, or not one of Slate's.
    WrongFormat(Box<Context>),
    /// A later version of Slate, or of the backend, wrote the database; this one cannot read it.
    NewerVersion(Box<Context>),
    /// The stored bytes are damaged.
    Corrupt(Box<Context>),
    /// The device, or the caller's quota on it, is full. When a commit says so, nothing of it was acknowledged: as after
    /// [`OutcomeUnknown`](Self::OutcomeUnknown), opening the database again shows all of it or, most likely, nothing.
    Full(Box<Context>),
    /// A key or a value is over the backend's stated limit. The transaction stays usable.
    TooLarge(Box<TooLarge>),
    /// No database is there and none was to be created, or the folder to create it in is missing.
    Missing(Box<Context>),
    /// Something lies where a backup was to be written, and was left alone.
    Exists(Box<Context>),
    /// The database was opened to be read only, or its medium allows no writing.
    ReadOnly(Box<Context>),
    /// The backend does not offer this; its [`Capabilities`](crate::Capabilities) say so too.
    Unsupported(Box<Context>),
    /// The storage failed in a way that has no meaning of its own here; [`source`](StdError::source) tells more.
    Io(Box<Context>),
}

/// A cause: the error of the backend or the operating system, as it came.
pub type Source = Box<dyn StdError + Send + Sync>;

impl Error {
    /// Whether running the whole transaction again may succeed, with nothing changed by the caller in between.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// The file or folder at fault, where the operation was on one.
    pub fn path(&self) -> Option<&Path> {
        self.context().and_then(Context::path)
    }

    fn context(&self) -> Option<&Context> {
        match self {
            Self::Conflict(context)
            | Self::Reentrant(context)
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
            | Self::Io(context) => Some(context),
            Self::TooLarge(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, context) = match self {
            Self::Conflict(context) => ("the transaction conflicts with another", context),
            Self::Reentrant(context) => ("this thread already has an open write transaction", context),
            Self::OutcomeUnknown(context) => ("the outcome of the commit is unknown", context),
            Self::Locked(context) => ("the database is already open", context),
            Self::WrongFormat(context) => ("not a database of this format", context),
            Self::NewerVersion(context) => ("the database was written by a newer version", context),
            Self::Corrupt(context) => ("the stored bytes are damaged", context),
            Self::Full(context) => ("no space is left for the database", context),
            Self::Missing(context) => ("there is no such file or folder", context),
            Self::Exists(context) => ("there is something already", context),
            Self::ReadOnly(context) => ("the database is read-only", context),
            Self::Unsupported(context) => ("this backend does not offer what was asked", context),
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

/// What an [`Error`] has to tell beyond its meaning: what exactly happened, where, and why.
#[derive(Debug, Default)]
pub struct Context {
    detail: Cow<'static, str>,
    path: Option<PathBuf>,
    source: Option<Source>,
}

impl Context {
    /// A context that says `detail`: a clause in the present tense, without a full stop. May be empty.
    pub fn new(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: detail.into(), path: None, source: None }
    }

    /// The same, naming the file or folder at fault.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The same, with the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same, saying `detail` where nothing was said yet.
    #[cfg(feature = "redb")]
    pub(crate) fn or(mut self, detail: &'static str) -> Self {
        if self.detail.is_empty() {
            self.detail = detail.into();
        }
        self
    }

    /// What exactly happened; empty where the meaning says all.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The file or folder at fault.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl From<&'static str> for Context {
    fn from(detail: &'static str) -> Self {
        Self::new(detail)
    }
}

/// Continues the sentence that names the meaning: `: detail (path)`.
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

/// Something too large to be stored, and the limit it broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Which thing: `"key"`, `"value"`, or `"transaction"` where a backend limits the keys that one may write.
    pub what: &'static str,
    /// Its size in bytes; a transaction's, in keys.
    pub size: usize,
    /// The most that the backend takes.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, size, limit } = self;
        let unit = if *what == "transaction" { "keys" } else { "bytes" };
        write!(f, "a {what} of {size} {unit} is over this backend's limit of {limit}")
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
