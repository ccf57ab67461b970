//! A live query, streamed to a page by server-sent events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    extract::State,
    response::{
        Html, IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
};
use bson::{RawDocumentBuf, doc};
use futures_core::Stream;
use slate_core::{LiveChange, Row, aio::LiveQuery};

use crate::{Shop, failure::Failure};

/// How many products the page shows.
const SHOWN: u64 = 10;

/// A comment that keeps proxies from closing a quiet connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /live`: a page with the products of which the least is in stock. It changes when they do.
pub(crate) async fn page() -> Html<&'static str> {
    Html(include_str!("live.html"))
}

/// `GET /live/products`: the rows of the page as server-sent events, one for each step.
pub(crate) async fn products(State(shop): State<Shop>) -> Result<impl IntoResponse, Failure> {
    let least = shop.products().find(doc! {}).sort(doc! { "stock": 1, "sku": 1 }).limit(SHOWN);
    // When the service stops, the response ends.
    let live = least.cancel(shop.stopping.child()).live().await?;
    Ok(Sse::new(Steps(live)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// A client that is slow leaves its steps in the log of changes. If the client leaves, the query ends. After an error the browser
/// connects again, and gets the rows again.
struct Steps(LiveQuery<RawDocumentBuf>);

impl Stream for Steps {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|step| Some(Ok(event(&step?.ok()?))))
    }
}

fn event(step: &LiveChange<RawDocumentBuf>) -> Event {
    let at = |position: &usize, document| format!(r#"{{"position":{position},"product":{}}}"#, Row::from(document));
    let (name, data) = match step {
        LiveChange::Added { position, document } => ("added", at(position, document)),
        LiveChange::Changed { position, document } => ("changed", at(position, document)),
        LiveChange::Moved { from, to, document } => {
            ("moved", format!(r#"{{"from":{from},"to":{to},"product":{}}}"#, Row::from(document)))
        }
        LiveChange::Removed { position } => ("removed", format!(r#"{{"position":{position}}}"#)),
    };
    Event::default().event(name).data(data)
}
