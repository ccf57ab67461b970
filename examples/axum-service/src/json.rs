//! Extended JSON in requests and responses.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::header,
    response::{IntoResponse, Response},
};
use bson::{Bson, Document, RawDocumentBuf};
use slate_core::Row;

use crate::failure::Failure;

/// The body of a request: a document in extended JSON, version 2.
pub(crate) struct Json(pub(crate) Document);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let body = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        parse(&body).map(Self).map_err(IntoResponse::into_response)
    }
}

/// Parses a document, such as a filter. The fields keep their order.
pub(crate) fn parse(json: &[u8]) -> Result<Document, Failure> {
    let invalid = |error: &dyn std::error::Error| Failure::Invalid(error.to_string());
    let value: serde_json::Value = serde_json::from_slice(json).map_err(|error| invalid(&error))?;
    match Bson::try_from(value).map_err(|error| invalid(&error))? {
        Bson::Document(document) => Ok(document),
        _ => Err(Failure::Invalid("expected an object".into())),
    }
}

/// A stored product as a response: relaxed extended JSON, with the version in the header `ETag`.
pub(crate) struct Stored(pub(crate) RawDocumentBuf);

impl IntoResponse for Stored {
    fn into_response(self) -> Response {
        let body = ([(header::CONTENT_TYPE, "application/json")], Row::from(&self.0).to_string());
        match self.0.get_i64("version") {
            Ok(version) => ([(header::ETAG, format!("\"{version}\""))], body).into_response(),
            Err(_) => body.into_response(),
        }
    }
}
