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

/// How often a comment is sent, so that proxies do not close an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /live`: a page with the products with the least stock. The page follows their changes.
pub(crate) async fn page() -> Html<&'static str> {
    Html(include_str!("live.html"))
}

/// `GET /live/products`: the rows of the page and their changes as server-sent events.
pub(crate) async fn products(State(shop): State<Shop>) -> Result<impl IntoResponse, Failure> {
    let least = shop.products().find(doc! {}).sort(doc! { "stock": 1, "sku": 1 }).limit(SHOWN);
    // When the service stops, the response ends.
    let live = least.cancel(shop.stopping.child()).live().await?;
    Ok(Sse::new(Steps(live)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// A live query as a stream of events. Changes for a slow client stay in the log of changes. If the client disconnects, the query
/// ends. After an error the browser connects again, and receives all rows.
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
