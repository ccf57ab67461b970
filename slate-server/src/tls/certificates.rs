use std::{fmt, io, sync::Arc};

use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// The certificate of a server, and which certificates of clients it accepts. TLS 1.2 and 1.3.
///
/// ```no_run
/// # use std::fs;
/// use slate_server::{ClientCertificates, Tls};
///
/// let tls = Tls::new(&fs::read("server.pem")?, &fs::read("server.key")?)?;
/// let tls = tls.client_ca(&fs::read("ca.pem")?, ClientCertificates::Required)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    config: Arc<ServerConfig>,
    accepts_plain: bool,
}

/// Whether a client must send a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client without a certificate cannot connect.
    Required,
    /// A certificate is verified if the client sends one.
    Optional,
}

impl Tls {
    /// Reads a certificate, with the chain to its authority, and its private key, as PEM. Both may be in the same text.
    ///
    /// # Errors
    /// Fails if the certificate or the key is missing, if the key is encrypted, or if it does not belong to the certificate.
    pub fn new(certificate: &[u8], key: &[u8]) -> io::Result<Self> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| invalid(format!("there is no private key that is not encrypted: {error}")))?;
        let config = configure(&chain, &key, None)?;
        Ok(Self { chain, key: Arc::new(key), config, accepts_plain: false })
    }

    /// Verifies the certificates of clients against those of authorities, given as PEM.
    ///
    /// # Errors
    /// Fails if `authorities` has no certificate.
    pub fn client_ca(self, authorities: &[u8], clients: ClientCertificates) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
        }
        let config = configure(&self.chain, &self.key, Some((roots, clients)))?;
        Ok(Self { config, ..self })
    }

    /// Accepts connections without TLS on the same port, too.
    #[must_use]
    pub fn or_plain(mut self) -> Self {
        self.accepts_plain = true;
        self
    }

    pub(crate) fn accepts_plain(&self) -> bool {
        self.accepts_plain
    }

    pub(super) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

fn certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| invalid(format!("the certificate cannot be read: {error}")))?;
    if read.is_empty() { Err(invalid("there is no certificate".into())) } else { Ok(read) }
}

fn configure(
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    clients: Option<(RootCertStore, ClientCertificates)>,
) -> io::Result<Arc<ServerConfig>> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| invalid(error.to_string()))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some((roots, clients)) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match clients {
                ClientCertificates::Required => verifier,
                ClientCertificates::Optional => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| invalid(error.to_string()))?)
        }
    };
    let config = builder.with_single_cert(chain.to_vec(), key.clone_key());
    config.map(Arc::new).map_err(|error| invalid(error.to_string()))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}
