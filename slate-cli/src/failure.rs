use std::{error::Error as _, fmt, io, iter::successors, process::ExitCode};

use slate_core::ErrorKind;

use crate::{message::message, similar};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The command failed.
    Failed,
    /// The command line is not valid.
    Usage,
    /// The command finished, but records were refused, or damage was found.
    Incomplete,
    /// Ctrl-C ended the command.
    Interrupted,
}

impl Exit {
    /// Returns the code with which the program ends.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            // The exit code that shells report for a program that the signal ended.
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed, and what can be done about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    exit: Exit,
    kind: Kind,
}

/// Failures that callers handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    NoDatabase,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::Failed, kind: Kind::Other }
    }

    /// Returns the failure for a URL at which there is no database.
    pub(crate) fn no_database(url: &str) -> Self {
        let failure = Self { kind: Kind::NoDatabase, ..Self::new(format!("there is no database at {url}")) };
        failure.hint("check the path; `insert`, `import` and `create-index` create a database")
    }

    pub(crate) fn is_missing_database(&self) -> bool {
        self.kind == Kind::NoDatabase
    }

    /// Returns the failure of a command that Ctrl-C ended.
    pub(crate) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, ..Self::new("interrupted") }
    }

    /// Returns the failure for a command line that is not valid.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure of an operation on a file.
    pub(crate) fn file(path: &std::path::Path, error: io::Error) -> Self {
        Self { message: format!("{}: {error}", path.display()), ..Self::from(error) }
    }

    /// Names the file that is being written.
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        Self { message: format!("{}: {}", path.display(), self.message), ..self }
    }

    /// Prints the message and the hint.
    pub(crate) fn report(&self) -> Exit {
        if self.exit != Exit::Success {
            message!("{self}");
        }
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slate: {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // The reader closed the pipe because it needs no more output.
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Success } else { Exit::Failed };
        let hint = (error.kind() == io::ErrorKind::StorageFull).then(|| "free some space".to_owned());
        Self { exit, hint, ..Self::new(error.to_string()) }
    }
}

impl From<slate_core::Error> for Failure {
    fn from(error: slate_core::Error) -> Self {
        let exit = if error.kind() == ErrorKind::Interrupted { Exit::Interrupted } else { Exit::Failed };
        let hint = match error.kind() {
            ErrorKind::Io if is_denied(&error) => Some("check the permissions of the file and of its folder"),
            ErrorKind::Locked => Some("close the other program, or work on a copy that it makes with `backup`"),
            ErrorKind::WrongFormat => Some("check the path; a backup of a memory database opens as memory:PATH"),
            ErrorKind::NewerVersion => Some("install a newer slate"),
            ErrorKind::Corrupt => Some("`verify` lists the damage, and `repair` rebuilds indexes"),
            ErrorKind::Invalid if error.path() == Some("hint") => Some("`indexes` lists the indexes of a collection"),
            ErrorKind::Full => Some("free some space; nothing of this write was stored"),
            ErrorKind::Conflict => Some("another writer was busy: try again"),
            ErrorKind::ReadOnly if is_denied(&error) => Some("check the permissions of the file and of its folder"),
            ErrorKind::ReadOnly => {
                Some("`repair` completes what was interrupted; it needs some free space on the device")
            }
            ErrorKind::OutcomeUnknown if is_about(&error, &[io::ErrorKind::StorageFull]) => {
                Some("free some space; `repair` opens the database again; then read whether the write was stored")
            }
            ErrorKind::OutcomeUnknown => {
                Some("`repair` opens the database again; then read whether the write was stored")
            }
            _ => None,
        };
        let similar = || {
            let name = similar::operator(error.message()).filter(|_| error.kind() == ErrorKind::Invalid)?;
            Some(format!("a similar operator exists: {name}"))
        };
        // `Debug` adds the causes, which explain failures of a device or the system. For other errors the message is
        // enough.
        let message = match error.kind() {
            ErrorKind::Io | ErrorKind::Full | ErrorKind::OutcomeUnknown | ErrorKind::ReadOnly => format!("{error:?}"),
            _ => error.to_string(),
        };
        Self { hint: hint.map(Into::into).or_else(similar), exit, ..Self::new(message) }
    }
}

/// Returns whether the system does not allow the access.
fn is_denied(error: &slate_core::Error) -> bool {
    is_about(error, &[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem])
}

/// Returns whether a failure of the system of one of these kinds caused the error.
fn is_about(error: &slate_core::Error, kinds: &[io::ErrorKind]) -> bool {
    let causes = successors(error.source(), |cause| (*cause).source());
    let mut failures = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    failures.any(|failure| kinds.contains(&failure.kind()))
}
