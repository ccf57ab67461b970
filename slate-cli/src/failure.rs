use std::{error::Error as _, fmt, io, iter::successors};

use bson::{Bson, Document};
use slate_core::ErrorKind;

use crate::{
    interrupt::Cancelled,
    message::{ErrorFormat, abridged, message},
    output, similar,
};

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
    /// Ctrl-C or another signal ended the command.
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
            // For Ctrl-C; see `Interrupt::exit_code`.
            Self::Interrupted => 130,
        }
    }
}

/// Why a command failed, and what can be done about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    exit: Exit,
    kind: Kind,
    /// The code and other fields of an error of the database, for programs.
    details: Option<Box<Document>>,
}

/// Longest message on standard error, in characters. Messages of the database can repeat a query or a key.
const LONGEST_MESSAGE: usize = 2_000;

/// MongoDB's code for a value that a unique index already contains.
const DUPLICATE_KEY: i32 = 11_000;

/// The names of the codes that errors of single documents and statements have: a server's reply has only their numbers.
const STATEMENT_CODES: [(i32, &str); 12] = [
    (2, "BadValue"),
    (9, "FailedToParse"),
    (14, "TypeMismatch"),
    (28, "PathNotViable"),
    (40, "ConflictingUpdateOperators"),
    (52, "DollarPrefixedFieldName"),
    (56, "EmptyFieldName"),
    (66, "ImmutableField"),
    (112, "WriteConflict"),
    (121, "DocumentValidationFailure"),
    (10_334, "BSONObjectTooLarge"),
    (DUPLICATE_KEY, "DuplicateKey"),
];

/// Failures that callers handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    NoDatabase,
    /// The database refused this call, and can execute others.
    Refused,
    /// A write that succeeded, but whose write concern failed.
    Unsatisfied,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::Failed, kind: Kind::Other, details: None }
    }

    /// Returns the failure for a URL at which there is no database.
    pub(crate) fn no_database(url: &str) -> Self {
        let failure = Self { kind: Kind::NoDatabase, ..Self::new(format!("there is no database at {url}")) };
        failure.hint("check the path; `insert`, `import` and `create-index` create a database")
    }

    pub(crate) fn is_missing_database(&self) -> bool {
        self.kind == Kind::NoDatabase
    }

    /// Returns the failure for a collection or an index that does not exist, with the code that MongoDB has for it.
    pub(crate) fn missing(message: impl Into<String>, code: i32, code_name: &str) -> Self {
        let details = bson::doc! { "kind": "NotFound", "code": code, "codeName": code_name };
        Self { details: Some(Box::new(details)), ..Self::new(message) }
    }

    /// Returns the failure for an error in a server's reply.
    pub(crate) fn replied(message: String, code: i32, name: &str, info: Option<Document>) -> Self {
        let known = STATEMENT_CODES.iter().find(|(known, _)| *known == code).map(|(_, name)| (*name).to_owned());
        let name = match name {
            "" => known.unwrap_or_else(|| format!("Location{code}")),
            name => name.to_owned(),
        };
        let mut details = bson::doc! { "code": code, "codeName": name };
        if let Some(info) = info {
            details.insert("errInfo", info);
        }
        let hint = match code {
            13 => Some("log in as a user whose roles allow it: mongodb://USER:PASSWORD@HOST/DATABASE?authSource=admin"),
            18 => Some("check the user, the password, and authSource: the database to which the user belongs"),
            _ => None,
        };
        let kind = if matches!(code, 13 | 18) { Kind::Other } else { Kind::Refused };
        Self { details: Some(Box::new(details)), hint: hint.map(Into::into), kind, ..Self::new(message) }
    }

    /// Returns the failure for a write that was done, but not as the write concern of the URL demands.
    #[cfg(feature = "client")]
    pub(crate) fn unsatisfied(message: String, code: i32, name: &str) -> Self {
        let failure = Self { kind: Kind::Unsatisfied, ..Self::replied(message, code, name, None) };
        failure.hint("the write is done, but not as the write concern of the URL demands")
    }

    /// Whether the database refused this call, but can execute others. False if, for example, the storage or the
    /// connection failed.
    pub(crate) fn is_refusal(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// Whether the call succeeded but its write concern failed.
    pub(crate) fn is_unsatisfied(&self) -> bool {
        self.kind == Kind::Unsatisfied
    }

    /// Whether a document was refused as a duplicate of an `_id` or a unique value.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.number() == Some(DUPLICATE_KEY)
    }

    /// Returns the failure as a line for people: its message and its code.
    pub(crate) fn line(&self) -> String {
        let message = abridged(&self.message, LONGEST_MESSAGE);
        match self.code() {
            Some((name, code)) => format!("{message} [{name} {code}]"),
            None => message,
        }
    }

    /// Returns MongoDB's code; `None` if the failure has none, such as that of a file.
    pub(crate) fn number(&self) -> Option<i32> {
        self.code().map(|(_, number)| number)
    }

    fn code(&self) -> Option<(&str, i32)> {
        let details = self.details.as_ref()?;
        Some((details.get_str("codeName").ok()?, details.get_i32("code").ok()?))
    }

    /// Returns the failure of a command that a signal ended.
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
        let message = format!("{}: {error}", path.display());
        match Self::from(error) {
            failure if failure.exit == Exit::Interrupted => failure,
            failure => Self { message, ..failure },
        }
    }

    /// Puts the name of the file that is being written before the message.
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        Self { message: format!("{}: {}", path.display(), self.message), ..self }
    }

    /// Prints the message and the hint in the requested format, unless the failure is a closed pipe. Returns the exit
    /// code.
    pub(crate) fn report(&self) -> Exit {
        match ErrorFormat::get() {
            _ if self.exit == Exit::Success => {}
            ErrorFormat::Text => message!("{self}"),
            ErrorFormat::Json => message!("{}", output::relaxed(Bson::Document(self.to_document()))),
        }
        self.exit
    }

    /// Returns the failure as a document for programs: the message, the details of the database's error, the hint, and
    /// the exit code.
    fn to_document(&self) -> Document {
        let mut document = bson::doc! { "error": &self.message };
        document.extend(self.details.iter().flat_map(|details| (**details).clone()));
        if let Some(hint) = &self.hint {
            document.insert("hint", hint);
        }
        document.insert("exit", i32::from(self.exit.code()));
        document
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slate: {}", self.line())?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let exit = match error.kind() {
            // The reader closed the pipe because it needs no more output.
            io::ErrorKind::BrokenPipe => Exit::Success,
            _ if error.get_ref().is_some_and(|error| error.is::<Cancelled>()) => return Self::interrupted(),
            _ => Exit::Failed,
        };
        let hint = (error.kind() == io::ErrorKind::StorageFull).then(|| "free some space".to_owned());
        Self { exit, hint, ..Self::new(error.to_string()) }
    }
}

impl From<slate_core::Error> for Failure {
    fn from(error: slate_core::Error) -> Self {
        let exit = if error.kind() == ErrorKind::Interrupted { Exit::Interrupted } else { Exit::Failed };
        let hint = match error.kind() {
            ErrorKind::Io if is_denied(&error) => Some("check the permissions of the file and of its folder"),
            ErrorKind::Locked => {
                Some("close the other program, wait for it with --wait, or work on a copy that it makes with `backup`")
            }
            ErrorKind::WrongFormat => Some("check the path; a backup of a memory database opens as memory:PATH"),
            ErrorKind::NewerVersion => Some("install a newer slate"),
            ErrorKind::Corrupt => Some(
                "`verify` lists the damage; `copy --skip-damaged NEW-URL` writes what can be read to a new database, \
                 `export --skip-damaged` to files; or `restore` a backup",
            ),
            ErrorKind::Invalid if error.path() == Some("hint") => Some("`indexes` lists the indexes of a collection"),
            ErrorKind::Full => Some("free some space; nothing of this write was stored"),
            ErrorKind::Conflict => Some("another writer was busy: try again"),
            ErrorKind::ReadOnly if is_denied(&error) => Some("check the permissions of the file and of its folder"),
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
        let is_of_storage =
            matches!(error.kind(), ErrorKind::Io | ErrorKind::Full | ErrorKind::Corrupt | ErrorKind::Interrupted);
        Self {
            kind: if is_of_storage { Kind::Other } else { Kind::Refused },
            hint: hint.map(Into::into).or_else(similar),
            exit,
            details: Some(Box::new(details(&error))),
            ..Self::new(message)
        }
    }
}

/// Returns the kind, the code and the details of an error. Fields that MongoDB's replies have, too, have the same
/// names.
fn details(error: &slate_core::Error) -> Document {
    let mut details = bson::doc! {
        "kind": format!("{:?}", error.kind()),
        "code": error.code(),
        "codeName": error.code_name(),
    };
    let texts = [
        ("path", error.path()),
        ("unsupported", error.unsupported()),
        ("collection", error.collection()),
        ("index", error.index()),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Bson::from(text?))));
    let documents = [("keyPattern", error.key_pattern()), ("keyValue", error.key()), ("errInfo", error.details())];
    let documents =
        documents.into_iter().filter_map(|(name, document)| Some((name.to_owned(), document?.clone().into())));
    details.extend(texts.chain(documents));
    details
}

/// Returns whether the system does not allow the access.
fn is_denied(error: &slate_core::Error) -> bool {
    is_about(error, &[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem])
}

/// Returns whether an I/O error of one of these kinds is among the error's causes.
fn is_about(error: &slate_core::Error, kinds: &[io::ErrorKind]) -> bool {
    let causes = successors(error.source(), |cause| (*cause).source());
    let mut failures = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    failures.any(|failure| kinds.contains(&failure.kind()))
}
