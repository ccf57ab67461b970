//! Requests for operating the service: health, metrics, backups.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bson::oid::ObjectId;
use serde_json::json;
use slate_core::Prometheus;

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
pub(crate) async fn metrics(State(shop): State<Shop>) -> Result<Response, Failure> {
    let text = shop.db.metrics().prometheus().size(shop.db.size().await?).to_string();
    Ok(([(header::CONTENT_TYPE, Prometheus::CONTENT_TYPE)], text).into_response())
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
