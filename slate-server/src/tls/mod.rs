//! TLS by rustls.

mod certificates;
mod subject;

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

pub use certificates::{ClientCertificates, Tls};

impl Tls {
    /// Makes the handshake of a server. Returns the subject of the client's certificate, too, if it has sent one.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let stream = TlsAcceptor::from(Arc::clone(self.config())).accept(stream).await?;
        let first = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let subject = first.and_then(|certificate| subject::of(certificate));
        Ok((stream, subject))
    }
}
