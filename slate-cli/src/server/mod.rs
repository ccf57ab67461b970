//! Commands that serve a database over MongoDB's protocol, and that manage the users of one.

mod config_file;
mod mongod;
mod open_files;
mod security;
mod serve;
mod store;
mod user;

use std::{
    future::Future,
    io::{self, Write},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

use slate_server::{Listener, Server};
use tokio::{
    net::{TcpListener, TcpSocket},
    runtime,
    time::sleep,
};

pub(crate) use self::{mongod::Mongod, serve::Serve, user::User};
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// How often a server checks whether a signal has arrived.
const SIGNAL_STEP: Duration = Duration::from_millis(20);

/// How long a server that has ended waits for threads whose work cannot be cancelled, such as a backup on RocksDB or a commit on a device that
/// does not answer. The process then ends as in a crash. With the eight seconds of `Shutdown::now` that makes the ten that `docker stop`
/// waits.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(2);

/// Runs a server until a signal ends it. `ready` is called when clients can connect; then the address of the metrics is printed, if they are
/// served.
fn run(
    session: &mut Session,
    mut server: Server,
    metrics: Option<SocketAddr>,
    bind: impl Future<Output = Result<Listener>>,
    ready: impl FnOnce(&mut Session, &Listener) -> Result<()>,
) -> Result<Exit> {
    within_runtime(LEFTOVER_PATIENCE, async {
        let listener = bind.await?;
        let mut address = None;
        if let Some(metrics) = metrics {
            let bound = bound(metrics, Ipv6Socket::WithIpv4)?;
            address = Some(bound.local_addr()?);
            server = server.metrics(bound);
        }
        ready(session, &listener)?;
        if let Some(address) = address {
            writeln!(session.out(), "http://{address}/metrics")?;
        }
        session.out().flush()?;
        let (shutdown, cancel) = (server.shutdown(), session.cancel());
        let signals = async {
            while !cancel.is_cancelled() {
                sleep(SIGNAL_STEP).await;
            }
            shutdown.now();
            // Waits for `serve`, which returns when the connections have ended.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            served = server.serve(listener) => served?,
            () = signals => {}
        }
        Ok(Exit::Success)
    })
}

/// Executes `work` on a new runtime, whose threads have `patience` to end afterwards.
fn within_runtime<R>(patience: Duration, work: impl Future<Output = Result<R>>) -> Result<R> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(patience);
    result
}

/// Listens on these addresses, at least one. Port 0 stands for a free port, the same one at all addresses.
async fn tcp(addresses: Vec<SocketAddr>) -> Result<Listener> {
    let ipv6 = if addresses.iter().any(SocketAddr::is_ipv4) { Ipv6Socket::Alone } else { Ipv6Socket::WithIpv4 };
    let (mut listener, mut free): (Option<Listener>, u16) = (None, 0);
    for mut address in addresses {
        if address.port() == 0 {
            address.set_port(free);
        }
        let next = bound(address, ipv6)?;
        free = next.local_addr()?.port();
        listener = Some(match listener {
            None => Listener::from(next),
            Some(listener) => listener.and(next),
        });
    }
    listener.ok_or_else(|| Failure::usage("there is no address to listen on"))
}

/// Whether a socket of IPv6 also listens on IPv4 addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ipv6Socket {
    /// Listens on both, if its address is `::`.
    WithIpv4,
    /// Listens only on IPv6: other sockets listen on the IPv4 addresses.
    Alone,
}

fn bound(address: SocketAddr, ipv6: Ipv6Socket) -> Result<TcpListener> {
    /// Connections that the system accepts before the server does.
    const BACKLOG: u32 = 1024;
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if address.is_ipv6() && ipv6 == Ipv6Socket::Alone {
            socket2::SockRef::from(&socket).set_only_v6(true)?;
        }
        // Lets a server use the port of one that has just ended. On Windows the option has another meaning.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(format!("cannot listen on {address}: {error}"))
}

/// Listens on a socket in the file system. A socket on which no server listens is replaced.
#[cfg(unix)]
async fn unix(path: &Path) -> Result<Listener> {
    use std::os::unix::{fs::FileTypeExt, net::UnixStream};

    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(|error| Failure::file(path, error))?;
    }
    tokio::net::UnixListener::bind(path).map(Listener::from).map_err(|error| Failure::file(path, error))
}

#[cfg(not(unix))]
async fn unix(_: &Path) -> Result<Listener> {
    Err(Failure::usage("this system has no Unix sockets"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_does_not_end_does_not_keep_the_process() {
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let ended = within_runtime(Duration::from_millis(10), async {
            tokio::task::spawn_blocking(move || {
                begun.send(()).unwrap();
                // Ends with the sender, which outlives the runtime.
                let _ = released.recv();
            });
            has_begun.recv().unwrap();
            Ok(7)
        });
        assert_eq!(ended.unwrap(), 7);
        release.send(()).unwrap();
    }
}
