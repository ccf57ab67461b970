use std::{error::Error, io, time::Duration};

use axum::{
    Router,
    routing::{get, post},
};
use slate_server::Server;
use tokio::{net::TcpListener, sync::oneshot};

use crate::{Shop, live, operating, orders, products};

/// After the signal to stop, running requests have this time to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves requests until `stop` completes. Then it accepts no more, waits for the running ones, and closes the database.
///
/// # Errors
/// Fails if connections cannot be accepted, or if closing the database fails.
pub async fn serve(
    listener: TcpListener,
    shop: Shop,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (stopping, stopped) = oneshot::channel();
    let streams = shop.stopping.clone();
    let server = axum::serve(listener, router(shop.clone())).with_graceful_shutdown(async move {
        stop.await;
        streams.cancel();
        // Fails only if the server has already ended.
        let _ = stopping.send(());
    });
    let time_is_up = async move {
        if stopped.await.is_ok() {
            tokio::time::sleep(STOP_TIMEOUT).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        served = server => served?,
        () = time_is_up => eprintln!("requests that did not end in {STOP_TIMEOUT:?} are cut off"),
    }
    // Writes the commits with the durability `deferred` that are still in memory.
    shop.db.close().await?;
    Ok(())
}

/// Serves the database to clients of MongoDB's protocol, such as `mongosh`, beside the requests of the service. They can only read.
///
/// # Errors
/// Fails if the system has no random bytes.
pub async fn show_database(listener: TcpListener, shop: Shop) -> io::Result<()> {
    Server::new(shop.db).read_only().serve(listener).await
}

fn router(shop: Shop) -> Router {
    Router::new()
        .route("/products", get(products::search).post(products::create))
        .route("/products/{id}", get(products::read).patch(products::change).delete(products::remove))
        .route("/orders", post(orders::create))
        .route("/sales", get(orders::sales))
        .route("/live", get(live::page))
        .route("/live/products", get(live::products))
        .route("/backups", post(operating::backup))
        .route("/health", get(operating::health))
        .route("/metrics", get(operating::metrics))
        .with_state(shop)
}
