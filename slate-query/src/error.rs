use std::fmt;

/// The result of parsing or applying a query.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error in a query: MongoDB's code, a message, and the path of the field at fault if there is one.
///
/// One word in size, so that results are returned in registers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorInner {
    refusal: Refusal,
    message: Box<str>,
    path: Option<Box<str>>,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// MongoDB reports this error too, with this code.
    Invalid(Code),
    /// MongoDB supports the operator or option of this name, Slate does not.
    Unsupported(Box<str>),
}

impl Error {
    /// Creates an error that MongoDB reports with `code`.
    #[cold]
    pub fn new(code: Code, message: impl Into<Box<str>>) -> Self {
        Self::of(Refusal::Invalid(code), message.into())
    }

    fn of(refusal: Refusal, message: Box<str>) -> Self {
        Self(Box::new(ErrorInner { refusal, message, path: None }))
    }

    /// Creates an error for an operator or option `name` that MongoDB supports and Slate does not.
    pub fn unsupported(name: &str) -> Self {
        let message = format!("{name} is not supported").into();
        Self::of(Refusal::Unsupported(name.into()), message)
    }

    /// Adds the path of the field at fault, unless the error already has one, which is more specific.
    #[must_use]
    pub fn at(mut self, path: impl Into<Box<str>>) -> Self {
        self.0.path.get_or_insert(path.into());
        self
    }

    /// Returns MongoDB's code for this error; `NotImplemented` (238) for what Slate does not support.
    pub fn code(&self) -> Code {
        match self.0.refusal {
            Refusal::Invalid(code) => code,
            Refusal::Unsupported(_) => Code::NOT_IMPLEMENTED,
        }
    }

    /// Returns the kind of this error.
    pub fn refusal(&self) -> &Refusal {
        &self.0.refusal
    }

    /// Returns the message without the path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path of the field at fault, if there is one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.path.as_ref().map_or(Ok(()), |path| write!(f, " (at '{path}')"))
    }
}

/// MongoDB's number for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub i32);

/// The codes that MongoDB has names for. Others are written `Code(51091)` where they are used.
macro_rules! codes {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        #[allow(missing_docs, reason = "each constant is MongoDB's own name for the number")]
        impl Code {
            $(pub const $constant: Self = Self($number);)*

            /// Returns MongoDB's name for the code; `Location` and the number if it has none.
            pub fn name(self) -> String {
                match self.0 {
                    $($number => $name.into(),)*
                    number => format!("Location{number}"),
                }
            }
        }
    };
}

codes! {
    INTERNAL_ERROR = 1 "InternalError",
    BAD_VALUE = 2 "BadValue",
    GRAPH_CONTAINS_CYCLE = 5 "GraphContainsCycle",
    UNKNOWN_ERROR = 8 "UnknownError",
    FAILED_TO_PARSE = 9 "FailedToParse",
    UNAUTHORIZED = 13 "Unauthorized",
    TYPE_MISMATCH = 14 "TypeMismatch",
    OVERFLOW = 15 "Overflow",
    INVALID_LENGTH = 16 "InvalidLength",
    ILLEGAL_OPERATION = 20 "IllegalOperation",
    INVALID_BSON = 22 "InvalidBSON",
    NAMESPACE_NOT_FOUND = 26 "NamespaceNotFound",
    INDEX_NOT_FOUND = 27 "IndexNotFound",
    PATH_NOT_VIABLE = 28 "PathNotViable",
    CANNOT_BACKFILL_ARRAY = 34 "CannotBackfillArray",
    FILE_RENAME_FAILED = 37 "FileRenameFailed",
    FILE_NOT_OPEN = 38 "FileNotOpen",
    CONFLICTING_UPDATE_OPERATORS = 40 "ConflictingUpdateOperators",
    CURSOR_NOT_FOUND = 43 "CursorNotFound",
    NO_MATCHING_DOCUMENT = 47 "NoMatchingDocument",
    NAMESPACE_EXISTS = 48 "NamespaceExists",
    MAX_TIME_MS_EXPIRED = 50 "MaxTimeMSExpired",
    DOLLAR_PREFIXED_FIELD_NAME = 52 "DollarPrefixedFieldName",
    INVALID_ID_FIELD = 53 "InvalidIdField",
    NOT_SINGLE_VALUE_FIELD = 54 "NotSingleValueField",
    INVALID_DB_REF = 55 "InvalidDBRef",
    EMPTY_FIELD_NAME = 56 "EmptyFieldName",
    COMMAND_NOT_FOUND = 59 "CommandNotFound",
    IMMUTABLE_FIELD = 66 "ImmutableField",
    CANNOT_CREATE_INDEX = 67 "CannotCreateIndex",
    INVALID_OPTIONS = 72 "InvalidOptions",
    INVALID_NAMESPACE = 73 "InvalidNamespace",
    INDEX_OPTIONS_CONFLICT = 85 "IndexOptionsConflict",
    INDEX_KEY_SPECS_CONFLICT = 86 "IndexKeySpecsConflict",
    SHUTDOWN_IN_PROGRESS = 91 "ShutdownInProgress",
    DB_PATH_IN_USE = 98 "DBPathInUse",
    NOT_EXACT_VALUE_FIELD = 111 "NotExactValueField",
    WRITE_CONFLICT = 112 "WriteConflict",
    COMMAND_NOT_SUPPORTED = 115 "CommandNotSupported",
    DOCUMENT_VALIDATION_FAILURE = 121 "DocumentValidationFailure",
    CURSOR_IN_USE = 143 "CursorInUse",
    EXCEEDED_MEMORY_LIMIT = 146 "ExceededMemoryLimit",
    INCOMPATIBLE_COLLATION_VERSION = 161 "IncompatibleCollationVersion",
    VIEW_DEPTH_LIMIT_EXCEEDED = 165 "ViewDepthLimitExceeded",
    COMMAND_NOT_SUPPORTED_ON_VIEW = 166 "CommandNotSupportedOnView",
    OPTION_NOT_SUPPORTED_ON_VIEW = 167 "OptionNotSupportedOnView",
    INVALID_PIPELINE_OPERATOR = 168 "InvalidPipelineOperator",
    CANNOT_INDEX_PARALLEL_ARRAYS = 171 "CannotIndexParallelArrays",
    AMBIGUOUS_INDEX_KEY_PATTERN = 181 "AmbiguousIndexKeyPattern",
    VIEW_PIPELINE_MAX_SIZE_EXCEEDED = 195 "ViewPipelineMaxSizeExceeded",
    INVALID_INDEX_SPECIFICATION_OPTION = 197 "InvalidIndexSpecificationOption",
    CANNOT_BUILD_INDEX_KEYS = 201 "CannotBuildIndexKeys",
    QUERY_FEATURE_NOT_ALLOWED = 224 "QueryFeatureNotAllowed",
    MAX_SUB_PIPELINE_DEPTH_EXCEEDED = 232 "MaxSubPipelineDepthExceeded",
    CURSOR_KILLED = 237 "CursorKilled",
    NOT_IMPLEMENTED = 238 "NotImplemented",
    SNAPSHOT_TOO_OLD = 239 "SnapshotTooOld",
    CONVERSION_FAILURE = 241 "ConversionFailure",
    NO_SUCH_TRANSACTION = 251 "NoSuchTransaction",
    INVALID_RESUME_TOKEN = 260 "InvalidResumeToken",
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION = 263 "OperationNotSupportedInTransaction",
    INDEX_BUILD_ABORTED = 276 "IndexBuildAborted",
    CHANGE_STREAM_FATAL_ERROR = 280 "ChangeStreamFatalError",
    CHANGE_STREAM_HISTORY_LOST = 286 "ChangeStreamHistoryLost",
    NO_QUERY_EXECUTION_PLANS = 291 "NoQueryExecutionPlans",
    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED = 292 "QueryExceededMemoryLimitNoDiskUseAllowed",
    API_VERSION_ERROR = 322 "APIVersionError",
    COLLECTION_UUID_MISMATCH = 361 "CollectionUUIDMismatch",
    BSON_OBJECT_TOO_LARGE = 10334 "BSONObjectTooLarge",
    DUPLICATE_KEY = 11000 "DuplicateKey",
    INTERRUPTED = 11601 "Interrupted",
    MERGE_STAGE_NO_MATCHING_DOCUMENT = 13113 "MergeStageNoMatchingDocument",
    DATABASE_DIFFER_CASE = 13297 "DatabaseDifferCase",
    OUT_OF_DISK_SPACE = 14031 "OutOfDiskSpace",
    IDL_DUPLICATE_FIELD = 40413 "IDLDuplicateField",
    IDL_FAILED_TO_PARSE = 40414 "IDLFailedToParse",
    IDL_UNKNOWN_FIELD = 40415 "IDLUnknownField",
}
