//! TLS by rustls.

mod certificates;
mod subject;

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

pub use certificates::{ClientCertificates, Tls};

impl Tls {
    /// Performs the handshake of a server. Also returns the subject of the client's certificate; `None` without a certificate, or if its subject
    /// cannot be [written as text](subject::of).
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let stream = TlsAcceptor::from(Arc::clone(self.config())).accept(stream).await?;
        let first = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let subject = first.and_then(|certificate| subject::of(certificate));
        Ok((stream, subject))
    }
}
