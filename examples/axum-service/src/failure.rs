use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use slate_core::{Error, ErrorKind};

/// The reason why a request fails. Closures of `transact` return it, too: `?` converts errors of the database.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is wrong, for this reason.
    Invalid(String),
    NotFound,
    /// Another request changed the product after its version was read.
    Changed,
    /// The request must name a version in `If-Match`.
    VersionRequired,
    OutOfStock,
    Database(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, body) = match self {
            Self::Invalid(why) => (StatusCode::BAD_REQUEST, json!({ "error": why })),
            Self::NotFound => (StatusCode::NOT_FOUND, json!({ "error": "there is no such document" })),
            Self::Changed => (StatusCode::PRECONDITION_FAILED, json!({ "error": "the product has another version" })),
            Self::VersionRequired => (StatusCode::PRECONDITION_REQUIRED, json!({ "error": "If-Match is missing" })),
            Self::OutOfStock => (StatusCode::CONFLICT, json!({ "error": "the stock is too low" })),
            Self::Database(error) => (status(error.kind()), describe(&error)),
        };
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::TooLarge => StatusCode::BAD_REQUEST,
        ErrorKind::DuplicateKey => StatusCode::CONFLICT,
        // The call conflicted until `lock_timeout` was over, or its deadline has passed: a later try may succeed.
        ErrorKind::Conflict | ErrorKind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Full => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the body of the response. The client sees errors that its request caused; others are only written to the
/// log.
fn describe(error: &Error) -> Value {
    if status(error.kind()).is_client_error() {
        json!({ "error": error.to_string(), "code": error.code(), "index": error.index(), "path": error.path() })
    } else {
        eprintln!("{error:?}");
        json!({ "error": "the request could not be completed" })
    }
}
