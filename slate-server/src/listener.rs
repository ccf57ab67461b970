use std::{
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    task::{Context, Poll},
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
#[cfg(feature = "tls")]
use tokio::time::sleep;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

use crate::shared::Settings;

/// After this time without a byte, the system probes whether the client is still reachable, and closes the connection if it is not.
const KEEPALIVE: Duration = Duration::from_secs(120);

/// Where a server listens: on TCP ports and, on Unix, on sockets in the file system, whose files are removed with the listener.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<Socket>,
    /// The position of the socket that is polled first for the next client, so that all sockets get their turn.
    next: usize,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, String),
}

/// An address of one side of a connection, as MongoDB writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(String),
}

/// An accepted connection from which nothing was read yet.
pub(crate) struct Accepted {
    stream: Stream,
    local: Address,
    peer: Address,
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

/// The two halves of a connection, after the TLS handshake if there is one.
pub(crate) struct Opened {
    pub(crate) reads: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writes: Box<dyn AsyncWrite + Send + Unpin>,
    /// The server's address that the client has connected to.
    pub(crate) local: Address,
    pub(crate) peer: Address,
    /// The subject of the client's verified certificate; `None` without one.
    pub(crate) certificate: Option<String>,
}

impl From<Socket> for Listener {
    fn from(socket: Socket) -> Self {
        Self { sockets: vec![socket], next: 0 }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Socket::Tcp(listener).into()
    }
}

#[cfg(unix)]
impl From<tokio::net::UnixListener> for Listener {
    fn from(listener: tokio::net::UnixListener) -> Self {
        let path = listener.local_addr().ok().and_then(|address| Some(address.as_pathname()?.display().to_string()));
        Socket::Unix(listener, path.unwrap_or_default()).into()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Self::Unix(_, path) = self
            && !path.is_empty()
        {
            // Ignores a failure: the next server replaces the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Listens at the addresses of `other`, too.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.sockets.append(&mut other.into().sockets);
        self
    }

    /// Returns the URI by which clients on this machine reach the first address of the listener.
    ///
    /// # Errors
    /// Fails if the socket has no address.
    pub fn uri(&self) -> io::Result<String> {
        match self.sockets.first() {
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
            Some(Socket::Tcp(listener)) => {
                let mut address = listener.local_addr()?;
                if address.ip().is_unspecified() {
                    address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
                }
                Ok(format!("mongodb://{address}/"))
            }
            #[cfg(unix)]
            Some(Socket::Unix(_, path)) => Ok(format!("mongodb://{}/", path.replace('%', "%25").replace('/', "%2F"))),
        }
    }

    /// Waits for a client.
    ///
    /// # Errors
    /// Fails if the system accepts no connections. Skips a connection that cannot be set up because the client has already disconnected.
    pub(crate) async fn accept(&mut self) -> io::Result<Accepted> {
        loop {
            if let Some(accepted) = poll_fn(|context| self.poll_accept(context)).await? {
                return Ok(accepted);
            }
        }
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Accepted>>> {
        let number = self.sockets.len();
        for (place, socket) in self.sockets.iter().enumerate().cycle().skip(self.next).take(number) {
            if let Poll::Ready(accepted) = socket.poll_accept(context) {
                // Begins with the next socket, so that clients of one socket cannot block those of the others.
                self.next = place + 1;
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    }
}

impl Socket {
    /// Accepts a client; `None` if its connection cannot be set up.
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<Accepted>>> {
        match self {
            Self::Tcp(listener) => {
                listener.poll_accept(context).map_ok(|(stream, peer)| Accepted::over_tcp(stream, peer).ok())
            }
            #[cfg(unix)]
            Self::Unix(listener, path) => listener.poll_accept(context).map_ok(|(stream, _)| {
                let (local, peer) = (Address::Unix(path.clone()), Address::Unix("anonymous unix socket".into()));
                Some(Accepted { stream: Stream::Unix(stream), local, peer })
            }),
        }
    }
}

impl Accepted {
    fn over_tcp(stream: TcpStream, peer: SocketAddr) -> io::Result<Self> {
        // Replies are written as a whole, so waiting for further bytes only delays them.
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
        let local = Address::Tcp(stream.local_addr()?);
        Ok(Self { stream: Stream::Tcp(stream), local, peer: Address::Tcp(peer) })
    }

    pub(crate) fn peer(&self) -> &Address {
        &self.peer
    }

    /// Performs the TLS handshake, if the server has a certificate. Unix sockets do not use TLS.
    ///
    /// # Errors
    /// Fails if the handshake fails, for example because the client does not speak TLS or its certificate is not accepted.
    pub(crate) async fn open(self, settings: &Settings) -> io::Result<Opened> {
        let Self { stream, local, peer } = self;
        let plain =
            |reads, writes| Opened { reads, writes, local: local.clone(), peer: peer.clone(), certificate: None };
        match stream {
            Stream::Tcp(stream) => {
                #[cfg(feature = "tls")]
                if let Some(tls) = &settings.tls
                    && !(tls.accepts_plain() && is_plain(&stream).await?)
                {
                    let (stream, certificate) = tls.accept(stream).await?;
                    let (reads, writes) = tokio::io::split(stream);
                    return Ok(Opened { certificate, ..plain(Box::new(reads), Box::new(writes)) });
                }
                #[cfg(not(feature = "tls"))]
                let _ = settings;
                let (reads, writes) = stream.into_split();
                Ok(plain(Box::new(reads), Box::new(writes)))
            }
            #[cfg(unix)]
            Stream::Unix(stream) => {
                let (reads, writes) = stream.into_split();
                Ok(plain(Box::new(reads), Box::new(writes)))
            }
        }
    }
}

/// Whether a client begins with a message of MongoDB and not with a TLS handshake, which is a record of the kind 22 and the version 3. A message
/// that begins with these bytes would have many megabytes, which no client sends first.
#[cfg(feature = "tls")]
async fn is_plain(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 3];
    loop {
        match (stream.peek(&mut first).await?, first) {
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (_, [kind, ..]) if kind != 22 => return Ok(true),
            (1 | 2, _) => sleep(Duration::from_millis(5)).await,
            (_, [_, version, minor]) => return Ok(version != 3 || minor > 4),
        }
    }
}

impl Address {
    /// Whether the address can only be that of a client on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            #[cfg(unix)]
            Self::Unix(_) => true,
        }
    }

    /// Returns the address without the port.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            #[cfg(unix)]
            Self::Unix(path) => path.clone(),
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
