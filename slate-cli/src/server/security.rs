use std::{fs, net::IpAddr, path::Path};

use slate_server::{ClientCertificates, Tls};

use crate::failure::{Failure, Result};

/// The files of TLS on a command line.
pub(super) struct TlsFiles<'a> {
    pub(super) certificate: &'a Path,
    pub(super) key: &'a Path,
    /// The certificates of the authorities that sign clients' certificates.
    pub(super) authorities: Option<&'a Path>,
    pub(super) clients: ClientCertificates,
}

impl TlsFiles<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails with the name of the file that cannot be used.
    pub(super) fn read(&self) -> Result<Tls> {
        let bytes = |path: &Path| fs::read(path).map_err(|error| Failure::file(path, error));
        let (certificate, key) = (bytes(self.certificate)?, bytes(self.key)?);
        let unusable = |path: &Path, error| Failure::new(format!("{}: {error}", path.display()));
        let tls = Tls::new(&certificate, &key).map_err(|error| unusable(self.certificate, error))?;
        let Some(authorities) = self.authorities else { return Ok(tls) };
        tls.client_ca(&bytes(authorities)?, self.clients).map_err(|error| unusable(authorities, error))
    }
}

/// Refuses to serve metrics at an address that other machines can reach.
///
/// # Errors
/// Fails for such an address, unless `allows_everyone` is set.
pub(super) fn check_metrics(ip: IpAddr, allows_everyone: bool) -> Result<()> {
    if ip.to_canonical().is_loopback() || allows_everyone {
        return Ok(());
    }
    let failure = Failure::usage(format!("{ip} can be reached from other machines, and --metrics needs no login"));
    Err(failure.hint("use 127.0.0.1, or say --allow-without-authentication if everyone may see the numbers"))
}

/// Refuses to listen at an address that other machines can reach, unless clients must log in.
///
/// # Errors
/// Fails for such an address, unless `allows_everyone` is set.
pub(super) fn check_address(ip: IpAddr, has_authentication: bool, allows_everyone: bool) -> Result<()> {
    if ip.to_canonical().is_loopback() || has_authentication || allows_everyone {
        return Ok(());
    }
    let failure = Failure::usage(format!("{ip} can be reached from other machines, and there is no authentication"));
    let hint = "listen on 127.0.0.1, or say --auth, or --allow-without-authentication if everyone may read and write";
    Err(failure.hint(hint))
}
