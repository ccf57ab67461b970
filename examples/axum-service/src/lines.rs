use std::{
    fmt::Write,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bson::RawDocumentBuf;
use futures_core::Stream;
use slate_core::{Row, aio::Documents};

/// A chunk of the body is sent when it has this many bytes, or when the next document is not read yet.
const CHUNK_BYTES: usize = 16 << 10;

/// The documents of a query as a response with one document per line, sent while they are read.
///
/// A slow client holds at most two batches of documents in memory and no thread. If reading fails, the connection is closed
/// before the end of the body, so that the client can detect the failure. If the client disconnects, the query ends.
pub(crate) struct Lines(pub(crate) Documents<RawDocumentBuf>);

impl IntoResponse for Lines {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(self)).into_response()
    }
}

impl Stream for Lines {
    type Item = slate_core::Result<String>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut chunk = String::new();
        loop {
            match Pin::new(&mut self.0).poll_next(context) {
                Poll::Ready(Some(Ok(document))) => {
                    // Writing to a string does not fail.
                    let _ = writeln!(chunk, "{}", Row::from(&document));
                    if chunk.len() >= CHUNK_BYTES {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    eprintln!("{error:?}");
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) if chunk.is_empty() => return Poll::Ready(None),
                Poll::Pending if chunk.is_empty() => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => return Poll::Ready(Some(Ok(chunk))),
            }
        }
    }
}
