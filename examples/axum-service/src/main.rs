//! Reads the settings, opens the database and serves requests until a signal arrives.

use std::{error::Error, io, path::PathBuf};

use axum_service::{Settings, Shop, serve};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let beside_this = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/service.toml"));
    let path = std::env::args_os().nth(1).map_or_else(beside_this, PathBuf::from);
    let settings = Settings::load(&path)?;

    let stop = stop_signal()?;
    let shop = Shop::open(&settings).await?;
    let listener = TcpListener::bind(&settings.listen).await?;
    println!("listening on {}, products are in {}", listener.local_addr()?, settings.database.url);
    serve(listener, shop, stop).await
}

/// Completes when the process is asked to end: by Ctrl-C, on Unix also by SIGTERM.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Completes when the process is asked to end, by Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
