//! Requests of those who operate the service: health, metrics, backups.

use std::fmt::Write;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bson::oid::ObjectId;
use serde_json::json;
use slate_core::Metrics;

use crate::{Shop, failure::Failure};

/// `GET /health`: whether the database answers.
pub(crate) async fn health(State(shop): State<Shop>) -> Response {
    match shop.db.list_collection_names().await {
        Ok(_) => json_response(StatusCode::OK, &json!({ "status": "ok", "store": shop.db.store() })),
        Err(error) => {
            eprintln!("{error:?}");
            json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "failed" }))
        }
    }
}

/// `POST /backups`: writes a copy of one commit while other requests continue.
pub(crate) async fn backup(State(shop): State<Shop>) -> Result<Response, Failure> {
    // The client does not choose the name, so it cannot choose the folder.
    let path = shop.backups.join(format!("{}.slate", ObjectId::new()));
    shop.db.backup(&path).await?;
    Ok(json_response(StatusCode::CREATED, &json!({ "backup": path })))
}

/// `GET /metrics`, in the text format of Prometheus.
pub(crate) async fn metrics(State(shop): State<Shop>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], prometheus(&shop.db.metrics())).into_response()
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn prometheus(metrics: &Metrics) -> String {
    let mut text = String::new();
    let counters = [
        ("slate_rows_returned_total", metrics.rows_returned),
        ("slate_keys_examined_total", metrics.keys_examined),
        ("slate_documents_examined_total", metrics.documents_examined),
        ("slate_commits_total", metrics.commits()),
        ("slate_conflicts_total", metrics.conflicts),
        ("slate_retries_total", metrics.retries),
        ("slate_spilled_bytes_total", metrics.spilled_bytes),
    ];
    // Writing to a string does not fail.
    for (name, value) in counters {
        let _ = writeln!(text, "# TYPE {name} counter\n{name} {value}");
    }
    let _ = writeln!(text, "# TYPE slate_failures_total counter");
    for (kind, operation) in &metrics.operations {
        let _ = writeln!(text, "slate_failures_total{{operation=\"{kind}\"}} {}", operation.failures);
    }
    let _ = writeln!(text, "# TYPE slate_seconds histogram");
    for (kind, operation) in &metrics.operations {
        let mut below = 0;
        for (end, count) in operation.latency.buckets() {
            below += count;
            let end = end.map_or_else(|| "+Inf".to_owned(), |end| end.as_secs_f64().to_string());
            let _ = writeln!(text, "slate_seconds_bucket{{operation=\"{kind}\",le=\"{end}\"}} {below}");
        }
        let _ = writeln!(text, "slate_seconds_sum{{operation=\"{kind}\"}} {}", operation.latency.sum().as_secs_f64());
        let _ = writeln!(text, "slate_seconds_count{{operation=\"{kind}\"}} {below}");
    }
    text
}
