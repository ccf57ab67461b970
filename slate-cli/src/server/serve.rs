use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueHint};
use slate_core::{Access, ChangeLog};
use slate_server::{ClientCertificates, Server, Tls};

use super::{
    open_files::{self, DEFAULT_CONNECTIONS},
    run,
    security::{TlsFiles, check_address, check_metrics},
    store::StoreOptions,
    tcp, unix,
};
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// The address without `--listen`, `--port` and `--unix`: MongoDB's default.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 27017);

/// Serve the database to MongoDB's drivers, shells and web pages
#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// The database, if it does not precede the command. It is created if it does not exist
    #[arg(value_name = "URL")]
    database: Option<String>,
    /// The address: IP:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["port", "unix"])]
    listen: Option<SocketAddr>,
    /// The port on 127.0.0.1; 0 for a free one. The default is 27017
    #[arg(long, conflicts_with = "unix")]
    port: Option<u16>,
    /// A Unix socket in place of a port; drivers know those whose names end with .sock
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unix: Option<PathBuf>,
    /// Let only users in, who may do what their roles allow; `slate user add` adds the first
    #[arg(long)]
    auth: bool,
    /// Use TLS with this certificate: a file of PEM, with the certificates that lead to its authority
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of the certificate: a file of PEM that is not encrypted
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Verify the certificates of clients with these authorities: a file of PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_certificate")]
    tls_ca: Option<PathBuf>,
    /// Let clients without a certificate in, too
    #[arg(long, requires = "tls_ca")]
    tls_optional_client_certificates: bool,
    /// How many connections may be open
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_CONNECTIONS)]
    max_connections: usize,
    /// How many cursors clients may have open
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_cursors: usize,
    /// How many transactions clients may have open
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_transactions: usize,
    /// Refuse every write
    #[arg(long)]
    read_only: bool,
    /// The name of the replica set that clients see
    #[arg(long, value_name = "NAME", default_value = "slate")]
    replica_set: String,
    /// The address that the server reports to clients, if it is not the one that they connect to. Drivers then use the
    /// reported one
    #[arg(long, value_name = "NAME:PORT", conflicts_with = "unix")]
    host: Option<String>,
    /// How long a transaction may be open before it is rolled back
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    transaction_lifetime: u64,
    /// Let clients make commands fail (configureFailPoint), for the tests of drivers
    #[arg(long)]
    test_commands: bool,
    /// Log all changes from now on, so that clients can open change streams
    #[arg(long)]
    changes: bool,
    /// How often documents that are due by TTL indexes are deleted, in seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    expire_every: u64,
    #[command(flatten)]
    store: StoreOptions,
    /// Answer http://ADDRESS/metrics with numbers for Prometheus, without a login: IP:PORT
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Let clients write backups into this folder (the command `backup`, and `slate mongodb://… backup NAME`)
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    backup_directory: Option<PathBuf>,
    /// Listen on an address that other machines reach, although everyone may then read and write, or see the numbers
    #[arg(long)]
    allow_without_authentication: bool,
}

impl Serve {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails if the database cannot be opened or the address cannot be used.
    pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
        let url = match &self.database {
            Some(url) => url.clone(),
            None => session.url()?.to_owned(),
        };
        let default = self.port.map_or(DEFAULT, |port| SocketAddr::new(DEFAULT.ip(), port));
        let address = self.listen.unwrap_or(default);
        if self.unix.is_none() {
            check_address(address.ip(), self.auth, self.allow_without_authentication)?;
        }
        if let Some(metrics) = self.metrics {
            check_metrics(metrics.ip(), self.allow_without_authentication)?;
        }
        let tls = self.tls()?;
        let access =
            if self.read_only && !url.starts_with("memory:") { Access::ReadOnly } else { Access::CreateOrOpen };
        let database = self.store.open(session, &url, access)?;
        if self.changes {
            database.enable_changes(ChangeLog::new())?;
        }
        let mut server = Server::new(database)
            .replica_set(self.replica_set)
            .expire_every(Duration::from_secs(self.expire_every))
            .arguments(std::env::args());
        server = server.transaction_lifetime(Duration::from_secs(self.transaction_lifetime));
        open_files::prepare(self.max_connections);
        server = server.max_connections(self.max_connections);
        server = server.max_cursors(self.max_cursors).max_transactions(self.max_transactions);
        if let Some(host) = self.host {
            server = server.host(host);
        }
        if let Some(slow) = self.store.slow_query_threshold {
            server = server.profiler_threshold(slow);
        }
        if self.auth {
            server = server.authentication();
        }
        let options = if tls.is_some() && self.unix.is_none() { "?tls=true" } else { "" };
        if let Some(tls) = tls {
            server = server.tls(tls);
        }
        if self.test_commands {
            server = server.test_commands();
        }
        if self.read_only {
            server = server.read_only();
        }
        if let Some(folder) = &self.backup_directory {
            if !folder.is_dir() {
                return Err(Failure::new(format!("{} is no folder", folder.display())));
            }
            server = server.backup_directory(folder);
        }
        let bind = async move {
            match &self.unix {
                Some(path) => unix(path).await,
                None => tcp(vec![address]).await,
            }
        };
        run(session, server, self.metrics, bind, |session, listener| {
            Ok(writeln!(session.out(), "{}{options}", listener.uri()?)?)
        })
    }

    fn tls(&self) -> Result<Option<Tls>> {
        let Some((certificate, key)) = self.tls_certificate.as_deref().zip(self.tls_key.as_deref()) else {
            return Ok(None);
        };
        let clients = if self.tls_optional_client_certificates {
            ClientCertificates::Optional
        } else {
            ClientCertificates::Required
        };
        TlsFiles { certificate, key, authorities: self.tls_ca.as_deref(), clients }.read().map(Some)
    }
}
