//! `axum-service [--mongodb ADDRESS] [SETTINGS]`: reads the settings, opens the database and serves requests until a signal arrives.

use std::{error::Error, io, path::PathBuf};

use axum_service::{Settings, Shop, serve, show_database};
use lexopt::{Arg, ValueExt};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (mut path, mut mongodb) = (PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/service.toml")), None);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("mongodb") => mongodb = Some(arguments.value()?.string()?),
            Arg::Value(settings) => path = settings.into(),
            other => return Err(other.unexpected().into()),
        }
    }
    let settings = Settings::load(&path)?;

    let stop = stop_signal()?;
    let shop = Shop::open(&settings).await?;
    let listener = TcpListener::bind(&settings.listen).await?;
    println!("listening on {}, products are in {}", listener.local_addr()?, settings.database.url);
    if let Some(address) = mongodb {
        let listener = TcpListener::bind(&address).await?;
        println!("mongodb://{}/?directConnection=true shows the database", listener.local_addr()?);
        tokio::spawn(show_database(listener, shop.clone()));
    }
    serve(listener, shop, stop).await
}

/// Completes on Ctrl-C or SIGTERM.
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

/// Completes on Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
