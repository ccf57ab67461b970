use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use slate_core::{Access, ChangeLog};
use slate_server::{ClientCertificates, Server, Tls};

use super::{
    config_file,
    open_files::{self, DEFAULT_CONNECTIONS},
    run,
    security::{TlsFiles, check_address},
    store::StoreOptions,
    tcp,
};
use crate::{
    arguments::Arguments,
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Serve a folder with the command line of MongoDB's server, for tools that start one
///
/// A program of the name `mongod` that is a link to `slate` runs this command.
#[derive(Clone, Debug, Args)]
#[command(disable_version_flag = true, args_override_self = true)]
pub(crate) struct Mongod {
    /// Print the version of MongoDB that clients see
    #[arg(long)]
    version: bool,
    /// The port; 0 for a free one
    #[arg(long, default_value_t = 27017)]
    port: u16,
    /// The folder of the database. Its file is data.slate
    #[arg(long, value_name = "PATH", default_value = "/data/db")]
    dbpath: PathBuf,
    /// The addresses to listen on, separated by commas
    #[arg(long = "bind_ip", value_name = "ADDRESSES", default_value = "127.0.0.1")]
    bind_ip: String,
    /// Listen on all addresses
    #[arg(long = "bind_ip_all")]
    bind_ip_all: bool,
    /// The name of the replica set
    #[arg(long = "replSet", value_name = "NAME")]
    replica_set: Option<String>,
    /// wiredTiger: a file in the folder; ephemeralForTest, inMemory: memory
    #[arg(long = "storageEngine", value_name = "NAME", default_value = "wiredTiger")]
    storage_engine: String,
    /// A parameter: enableTestCommands or transactionLifetimeLimitSeconds
    #[arg(long = "setParameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Without authentication, as is the default
    #[arg(long, overrides_with = "auth")]
    noauth: bool,
    /// Let only users in, who may do what their roles allow
    #[arg(long, overrides_with = "noauth")]
    auth: bool,
    /// Require a login, like --auth. The file must be readable; its content is not used
    #[arg(long = "keyFile", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The file for what is printed when the server is ready, in place of standard output
    #[arg(long = "logpath", value_name = "FILE")]
    log: Option<PathBuf>,
    /// Append to the file of --logpath instead of replacing it
    #[arg(long = "logappend")]
    log_append: bool,
    /// TLS: disabled; allowTLS and preferTLS, which let clients connect without it, too; requireTLS
    #[arg(long = "tlsMode", value_name = "MODE", value_parser = ["disabled", "allowTLS", "preferTLS", "requireTLS"])]
    tls_mode: Option<String>,
    /// The server's certificate and its private key: a file of PEM
    #[arg(long = "tlsCertificateKeyFile", value_name = "FILE")]
    tls_certificate_key_file: Option<PathBuf>,
    /// The authorities of the certificates of clients: a file of PEM
    #[arg(long = "tlsCAFile", value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,
    /// Let clients without a certificate in, too
    #[arg(long = "tlsAllowConnectionsWithoutCertificates")]
    tls_allow_connections_without_certificates: bool,
    /// How many connections may be open
    #[arg(long = "maxConns", value_name = "NUMBER")]
    max_connections: Option<usize>,
    /// The size of the cache in GB
    #[arg(long = "wiredTigerCacheSizeGB", value_name = "NUMBER")]
    cache_size: Option<f64>,
    /// Report operations that take longer on standard error
    #[arg(long = "slowms", value_name = "MILLISECONDS")]
    slow_milliseconds: Option<u64>,
    /// A configuration file in MongoDB's format. Options of the command line take precedence
    #[arg(long, short = 'f', value_name = "PATH")]
    config: Option<PathBuf>,
    /// Listen on an address that other machines reach, although everyone may then read and write
    #[arg(long)]
    allow_without_authentication: bool,
}

impl Mongod {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails if the folder or the port cannot be used.
    pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
        if self.version {
            writeln!(session.out(), "db version v8.2.0\nBuild Info: slate {}", env!("CARGO_PKG_VERSION"))?;
            return Ok(Exit::Success);
        }
        match &self.config {
            Some(path) => Arguments::of_mongod(&config_file::options(path)?)?.serve(session),
            None => self.serve(session),
        }
    }

    fn serve(self, session: &mut Session) -> Result<Exit> {
        let addresses = self.addresses()?;
        let authenticates = self.authenticates()?;
        for ip in &addresses {
            check_address(*ip, authenticates, self.allow_without_authentication)?;
        }
        let mut log = self.log()?;
        let tls = self.tls()?;
        let database = self.store()?.open(session, &self.url()?, Access::CreateOrOpen)?;
        if self.replica_set.is_some() {
            // MongoDB's replica sets have change streams.
            database.enable_changes(ChangeLog::new())?;
        }
        let mut server = Server::new(database).arguments(std::env::args());
        if authenticates {
            server = server.authentication();
        }
        if let Some(tls) = tls {
            server = server.tls(tls);
        }
        let connections = self.max_connections.unwrap_or(DEFAULT_CONNECTIONS);
        open_files::prepare(connections);
        server = server.max_connections(connections);
        if let Some(slow) = self.slow_milliseconds {
            server = server.profiler_threshold(Duration::from_millis(slow));
        }
        if let Some(name) = &self.replica_set {
            server = server.replica_set(name);
        }
        for parameter in &self.parameters {
            server = set(server, parameter)?;
        }
        let bind = tcp(addresses.into_iter().map(|ip| SocketAddr::new(ip, self.port)).collect());
        run(session, server, None, bind, |session, listener| {
            // Tools wait for these lines of MongoDB's log.
            let ready = format!(
                "waiting for connections on {}\ntransition to primary complete; database writes are now permitted\n",
                listener.uri()?
            );
            match &mut log {
                Some(log) => log.write_all(ready.as_bytes())?,
                None => session.out().write_all(ready.as_bytes())?,
            }
            Ok(())
        })
    }

    fn authenticates(&self) -> Result<bool> {
        let Some(path) = self.key_file.as_deref().filter(|_| !self.noauth) else { return Ok(self.auth) };
        let unreadable = |error| Failure::new(format!("Unable to acquire security key {}: {error}", path.display()));
        File::open(path).map_err(unreadable)?;
        Ok(true)
    }

    fn log(&self) -> Result<Option<File>> {
        let Some(path) = &self.log else { return Ok(None) };
        let opened =
            OpenOptions::new().create(true).write(true).append(self.log_append).truncate(!self.log_append).open(path);
        opened.map(Some).map_err(|error| Failure::new(format!("--logpath {}: {error}", path.display())))
    }

    fn store(&self) -> Result<StoreOptions> {
        let cache = match self.cache_size {
            Some(gigabytes) if !(0.0..=MOST_GIGABYTES).contains(&gigabytes) => {
                return Err(Failure::usage(format!("--wiredTigerCacheSizeGB: {gigabytes} is no size")));
            }
            Some(gigabytes) => Some(bytes(gigabytes)),
            None => None,
        };
        let slow_query_threshold = self.slow_milliseconds.map(Duration::from_millis);
        Ok(StoreOptions { cache, slow_query_threshold, ..StoreOptions::default() })
    }

    fn tls(&self) -> Result<Option<Tls>> {
        let mode = self.tls_mode.as_deref().unwrap_or("disabled");
        if mode == "disabled" {
            return Ok(None);
        }
        let Some(file) = self.tls_certificate_key_file.as_deref() else {
            return Err(Failure::usage(format!("--tlsMode {mode} needs --tlsCertificateKeyFile")));
        };
        let clients = if self.tls_allow_connections_without_certificates {
            ClientCertificates::Optional
        } else {
            ClientCertificates::Required
        };
        let files = TlsFiles { certificate: file, key: file, authorities: self.tls_ca_file.as_deref(), clients };
        let tls = files.read()?;
        Ok(Some(if mode == "requireTLS" { tls } else { tls.or_plain() }))
    }

    /// Returns the addresses to listen on, each once.
    fn addresses(&self) -> Result<Vec<IpAddr>> {
        let names = if self.bind_ip_all { "*" } else { &*self.bind_ip };
        let mut addresses = Vec::new();
        for name in names.split(',') {
            for address in resolved(name.trim())? {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        let unspecified: Vec<IpAddr> = addresses.iter().copied().filter(IpAddr::is_unspecified).collect();
        // The unspecified address includes the other addresses of its family.
        let is_included = |address: &IpAddr| unspecified.iter().any(|all| all.is_ipv4() == address.is_ipv4());
        addresses.retain(|address| address.is_unspecified() || !is_included(address));
        Ok(addresses)
    }

    fn url(&self) -> Result<String> {
        match &*self.storage_engine {
            "ephemeralForTest" | "inMemory" => Ok("memory:".into()),
            "wiredTiger" => {
                let folder: &Path = &self.dbpath;
                if !fs::metadata(folder).is_ok_and(|there| there.is_dir()) {
                    return Err(Failure::new(format!("Data directory {} not found", folder.display())));
                }
                Ok(format!("redb:{}", folder.join("data.slate").display()))
            }
            other => {
                Err(Failure::usage(format!("--storageEngine: {other:?} is neither wiredTiger nor ephemeralForTest")))
            }
        }
    }
}

/// Resolves a name of `--bind_ip` to IPv4, as MongoDB does without `--ipv6`; to IPv6 if it has no IPv4 address.
fn resolved(name: &str) -> Result<Vec<IpAddr>> {
    match name {
        "localhost" => return Ok(vec![Ipv4Addr::LOCALHOST.into()]),
        "*" => return Ok(vec![Ipv4Addr::UNSPECIFIED.into()]),
        _ => {}
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![address.to_canonical()]);
    }
    let unknown = |error| Failure::usage(format!("--bind_ip: {name:?} is not the name of an address: {error}"));
    let (ipv4, ipv6): (Vec<IpAddr>, Vec<IpAddr>) =
        (name, 0).to_socket_addrs().map_err(unknown)?.map(|address| address.ip()).partition(IpAddr::is_ipv4);
    Ok(if ipv4.is_empty() { ipv6 } else { ipv4 })
}

/// The largest cache that MongoDB allows.
const MOST_GIGABYTES: f64 = 10_000.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is positive and within its bound"
)]
fn bytes(gigabytes: f64) -> usize {
    (gigabytes * f64::from(1_u32 << 30)) as usize
}

/// Applies `NAME=VALUE` of `--setParameter`. Fails for another parameter or a wrong value.
fn set(server: Server, parameter: &str) -> Result<Server> {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    match (name, value) {
        ("enableTestCommands", "1" | "true") => Ok(server.test_commands()),
        ("enableTestCommands", "0" | "false") => Ok(server),
        ("transactionLifetimeLimitSeconds", seconds) => match seconds.parse() {
            Ok(seconds @ 1..) => Ok(server.transaction_lifetime(Duration::from_secs(seconds))),
            _ => Err(Failure::usage(format!("--setParameter {name}: {seconds:?} is not a number of seconds"))),
        },
        _ => Err(Failure::usage(format!("--setParameter: the parameter {parameter:?} is not supported"))),
    }
}
