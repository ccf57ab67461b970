//! Metrics of the library and of the server for Prometheus, over HTTP on a port of their own.

use std::{convert::Infallible, fmt::Write, sync::Arc, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use slate_core::Prometheus;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::shared::Shared;

/// Maximum number of clients that are served at the same time. Others wait.
const CLIENTS: usize = 16;

/// Maximum duration of a client's connection, which usually has few requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Timeout for the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of the head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// The pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves requests until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CLIENTS));
    let mut clients = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while clients.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        clients.spawn(async move {
            // A failed client does not affect others.
            let _ = timeout(PATIENCE, answer_all(stream, &shared)).await;
            drop(place);
        });
    }
}

async fn answer_all(stream: TcpStream, shared: &Arc<Shared>) -> hyper::Result<()> {
    let answer = service_fn(|request| answer(request, Arc::clone(shared)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD);
    http.serve_connection(TokioIo::new(stream), answer).await
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match text(&shared).await {
            Ok(text) => (StatusCode::OK, Prometheus::CONTENT_TYPE, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n")),
        },
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".into()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "see /metrics\n".into()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}

/// Returns the metrics in Prometheus' text format.
async fn text(shared: &Shared) -> slate_core::Result<String> {
    let size = shared.database.size().await?;
    let mut text = shared.database.metrics().prometheus().size(size).to_string();
    let (counts, traffic) = (&shared.counts, shared.operations.traffic());
    let number = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    let connections = u64::try_from(counts.last_connection.load(Ordering::Relaxed)).unwrap_or(0);
    let mut metric = |name: &str, kind: &str, values: &[(&str, u64)]| {
        // Writing into a string does not fail.
        let _ = writeln!(text, "# TYPE slate_server_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "slate_server_{name}{labels} {value}");
        }
    };
    metric("connections", "gauge", &[("", number(counts.connections.load(Ordering::Relaxed)))]);
    metric("connections_total", "counter", &[("", connections)]);
    metric("requests_total", "counter", &[("", traffic.requests)]);
    metric("received_bytes_total", "counter", &[("", traffic.bytes_in)]);
    metric("sent_bytes_total", "counter", &[("", traffic.bytes_out)]);
    let commands = [
        ("{command=\"insert\"}", traffic.inserts),
        ("{command=\"find\"}", traffic.queries),
        ("{command=\"update\"}", traffic.updates),
        ("{command=\"delete\"}", traffic.deletes),
        ("{command=\"getMore\"}", traffic.get_mores),
        ("{command=\"other\"}", traffic.others),
    ];
    metric("commands_total", "counter", &commands);
    metric("sessions", "gauge", &[("", number(shared.sessions.len()))]);
    metric("cursors", "gauge", &[("", number(shared.commands.as_blocking().open_cursors()))]);
    metric("transactions", "gauge", &[("", number(shared.transactions.taken_places()))]);
    metric("snapshots", "gauge", &[("", number(shared.snapshots.taken_places()))]);
    metric("uptime_seconds", "gauge", &[("", shared.started.elapsed().as_secs())]);
    Ok(text)
}
