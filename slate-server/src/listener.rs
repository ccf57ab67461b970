use std::{fmt, io, net::SocketAddr};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};

/// Where a server listens: on a TCP port or, on Unix, on a socket in the file system, whose file is removed with the listener.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, String),
}

/// An end of a connection, as MongoDB writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(String),
}

/// A connection's two halves.
pub(crate) struct Accepted {
    pub(crate) reads: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writes: Box<dyn AsyncWrite + Send + Unpin>,
    /// The address that the client has reached.
    pub(crate) local: Address,
    pub(crate) peer: Address,
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener))
    }
}

#[cfg(unix)]
impl From<tokio::net::UnixListener> for Listener {
    fn from(listener: tokio::net::UnixListener) -> Self {
        let path = listener.local_addr().ok().and_then(|address| Some(address.as_pathname()?.display().to_string()));
        Self(Kind::Unix(listener, path.unwrap_or_default()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Kind::Unix(_, path) = &self.0
            && !path.is_empty()
        {
            // The next server replaces a file that is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Returns the URI by which clients on this machine reach the server.
    ///
    /// # Errors
    /// Fails if the socket has no address.
    pub fn uri(&self) -> io::Result<String> {
        match &self.0 {
            Kind::Tcp(listener) => {
                let mut address = listener.local_addr()?;
                if address.ip().is_unspecified() {
                    address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
                }
                Ok(format!("mongodb://{address}/"))
            }
            #[cfg(unix)]
            Kind::Unix(_, path) => Ok(format!("mongodb://{}/", path.replace('%', "%25").replace('/', "%2F"))),
        }
    }

    /// Waits for a client.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match &self.0 {
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Replies are whole messages: waiting for more bytes only delays them.
                stream.set_nodelay(true)?;
                let local = stream.local_addr()?;
                let (reads, writes) = stream.into_split();
                Ok(Accepted {
                    reads: Box::new(reads),
                    writes: Box::new(writes),
                    local: Address::Tcp(local),
                    peer: Address::Tcp(peer),
                })
            }
            #[cfg(unix)]
            Kind::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                let (reads, writes) = stream.into_split();
                let (local, peer) = (Address::Unix(path.clone()), Address::Unix("anonymous unix socket".into()));
                Ok(Accepted { reads: Box::new(reads), writes: Box::new(writes), local, peer })
            }
        }
    }
}

impl Address {
    /// Whether it is one of this machine that no other can have.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            #[cfg(unix)]
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            #[cfg(unix)]
            Self::Unix(path) => f.write_str(path),
        }
    }
}
