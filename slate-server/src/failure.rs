use std::fmt;

use bson::{RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_core::{Error, ErrorKind};

use crate::labels;

/// The failure of a command, as its reply reports it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    name: String,
    message: String,
    labels: Vec<String>,
    /// Whether the labels are complete, because a fail point has set them.
    has_all_labels: bool,
    /// Fields about the failure: `keyPattern`, `keyValue`, `errInfo`.
    details: Option<RawDocumentBuf>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// MongoDB's codes for failures of sessions and of the server, with their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32, pub(crate) &'static str);

impl Code {
    pub(crate) const BAD_VALUE: Self = Self(2, "BadValue");
    pub(crate) const USER_NOT_FOUND: Self = Self(11, "UserNotFound");
    pub(crate) const UNAUTHORIZED: Self = Self(13, "Unauthorized");
    pub(crate) const TYPE_MISMATCH: Self = Self(14, "TypeMismatch");
    pub(crate) const PROTOCOL: Self = Self(17, "ProtocolError");
    pub(crate) const AUTHENTICATION_FAILED: Self = Self(18, "AuthenticationFailed");
    pub(crate) const FAILED_TO_PARSE: Self = Self(9, "FailedToParse");
    pub(crate) const ILLEGAL_OPERATION: Self = Self(20, "IllegalOperation");
    pub(crate) const INVALID_BSON: Self = Self(22, "InvalidBSON");
    pub(crate) const TIME_LIMIT: Self = Self(50, "MaxTimeMSExpired");
    pub(crate) const COMMAND_NOT_FOUND: Self = Self(59, "CommandNotFound");
    pub(crate) const INVALID_OPTIONS: Self = Self(72, "InvalidOptions");
    pub(crate) const WRITE_CONFLICT: Self = Self(112, "WriteConflict");
    pub(crate) const CONFLICTING: Self = Self(117, "ConflictingOperationInProgress");
    pub(crate) const INCOMPLETE_HISTORY: Self = Self(217, "IncompleteTransactionHistory");
    pub(crate) const TRANSACTION_TOO_OLD: Self = Self(225, "TransactionTooOld");
    pub(crate) const NOT_IMPLEMENTED: Self = Self(238, "NotImplemented");
    pub(crate) const SNAPSHOT_TOO_OLD: Self = Self(239, "SnapshotTooOld");
    pub(crate) const NO_SUCH_TRANSACTION: Self = Self(251, "NoSuchTransaction");
    pub(crate) const TRANSACTION_COMMITTED: Self = Self(256, "TransactionCommitted");
    pub(crate) const TOO_MANY_SESSIONS: Self = Self(261, "TooManyLogicalSessions");
    pub(crate) const NOT_IN_TRANSACTION: Self = Self(263, "OperationNotSupportedInTransaction");
    pub(crate) const OBJECT_TOO_LARGE: Self = Self(10334, "BSONObjectTooLarge");
    pub(crate) const INTERRUPTED: Self = Self(11601, "Interrupted");
    pub(crate) const NOT_RETRYABLE: Self = Self(50768, "NotARetryableWriteCommand");
}

impl Failure {
    /// Returns the failure with this code. Its name is `Location…` unless the code is known here.
    pub(crate) fn of_reply(code: i32, message: &str) -> Self {
        let known =
            [Code::WRITE_CONFLICT, Code::TIME_LIMIT, Code::INTERRUPTED].into_iter().find(|known| known.0 == code);
        let name = known.map(|known| known.1).or_else(|| labels::name_of(code));
        let name = name.map_or_else(|| format!("Location{code}"), str::to_owned);
        Self { code, name, ..Self::new(Code::BAD_VALUE, message) }
    }

    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.0,
            name: code.1.into(),
            message: message.into(),
            labels: Vec::new(),
            has_all_labels: false,
            details: None,
        }
    }

    /// Returns a failure whose code has no name in MongoDB: it is `Location…`.
    pub(crate) fn located(code: i32, message: impl Into<String>) -> Self {
        Self { code, name: format!("Location{code}"), ..Self::new(Code::BAD_VALUE, message) }
    }

    /// Returns the failure of a command or option of MongoDB that Slate does not support.
    pub(crate) fn not_implemented(what: &str) -> Self {
        Self::new(Code::NOT_IMPLEMENTED, format!("Slate does not support {what}"))
    }

    pub(crate) fn mistyped(field: &str, expected: &str) -> Self {
        Self::new(Code::TYPE_MISMATCH, format!("BSON field '{field}' is the wrong type, expected type '{expected}'"))
    }

    pub(crate) fn unknown_field(field: &str) -> Self {
        Self::new(Code(40415, "IDLUnknownField"), format!("BSON field '{field}' is an unknown field."))
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    #[must_use]
    pub(crate) fn with_label(mut self, label: &str) -> Self {
        if !self.has_all_labels && !self.labels.iter().any(|known| known == label) {
            self.labels.push(label.to_owned());
        }
        self
    }

    /// Returns the failure with these labels and no others.
    pub(crate) fn only_labelled(self, labels: Vec<String>) -> Self {
        Self { labels, has_all_labels: true, ..self }
    }

    /// Adds a write concern error, which the reply has beside the failure.
    pub(crate) fn with_write_concern_error(mut self, error: RawDocumentBuf) -> Self {
        self.details.get_or_insert_default().append(cstr!("writeConcernError"), error);
        self
    }

    /// Returns whether repeating the whole work can succeed: it conflicted with another writer.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code == Code::WRITE_CONFLICT.0
    }

    /// Returns the reply to a command that has failed.
    pub(crate) fn reply(&self) -> RawDocumentBuf {
        let mut reply = rawdoc! { "ok": 0.0, "errmsg": &*self.message, "code": self.code, "codeName": &*self.name };
        if let Some(details) = &self.details {
            for (name, value) in details.iter().flatten() {
                reply.append(name, value);
            }
        }
        if !self.labels.is_empty() {
            let labels: RawArrayBuf = self.labels.iter().map(String::as_str).collect();
            reply.append(cstr!("errorLabels"), labels);
        }
        reply
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut details = RawDocumentBuf::new();
        if error.kind() == ErrorKind::DuplicateKey {
            for (name, value) in [(cstr!("keyPattern"), error.key_pattern()), (cstr!("keyValue"), error.key())] {
                if let Some(value) = value.and_then(|value| RawDocumentBuf::try_from(value).ok()) {
                    details.append(name, value);
                }
            }
        }
        if let Some(info) = error.details().and_then(|info| RawDocumentBuf::try_from(info).ok()) {
            details.append(cstr!("errInfo"), info);
        }
        Self {
            code: error.code(),
            name: error.code_name(),
            message: error.to_string(),
            labels: Vec::new(),
            has_all_labels: false,
            details: Some(details),
        }
    }
}

impl From<bson::error::Error> for Failure {
    fn from(error: bson::error::Error) -> Self {
        Self::new(Code::INVALID_BSON, format!("invalid BSON: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.code, self.message)
    }
}
