//! TLS and client certificates over a real socket.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use bson::{Document, RawDocumentBuf, doc};
use slate_core::Database;
use slate_server::{Accounts, ClientCertificates, Server, TestServer, Tls};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use crate::client::Client;

const AUTHORITY: &[u8] = include_bytes!("../certificates/ca.pem");
const CLIENT: &[u8] = include_bytes!("../certificates/client-and-key.pem");
const STRANGER: &[u8] = include_bytes!("../certificates/stranger-and-key.pem");

fn tls() -> Tls {
    let (certificate, key) =
        (include_bytes!("../certificates/server.pem"), include_bytes!("../certificates/server.key"));
    Tls::new(certificate, key).unwrap()
}

fn start(tls: Tls) -> TestServer {
    TestServer::with(Database::open("memory:").unwrap(), |server| server.tls(tls)).unwrap()
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Connects, with a certificate if one is given.
fn connect(server: &TestServer, certificate: Option<&[u8]>) -> Stream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pem).unwrap()).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let address = server.uri().trim_start_matches("mongodb://").trim_end_matches('/');
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

fn run(stream: &mut Stream, mut command: Document) -> io::Result<Document> {
    if !command.contains_key("$db") {
        command.insert("$db", "shop");
    }
    let body = RawDocumentBuf::try_from(&command).unwrap();
    let length = i32::try_from(body.as_bytes().len() + 21).unwrap();
    let header = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
    stream.write_all(&[&*header, &[0], body.as_bytes()].concat())?;
    let mut header = [0; 21];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; usize::try_from(i32::from_le_bytes(header[..4].try_into().unwrap())).unwrap() - 21];
    stream.read_exact(&mut body)?;
    Ok(Document::try_from(&RawDocumentBuf::from_bytes(body).unwrap()).unwrap())
}

fn ok(stream: &mut Stream, command: Document) {
    let reply = run(stream, command).unwrap();
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
}

#[test]
fn commands_run_over_tls_and_not_without() {
    let server = start(tls());
    let mut client = connect(&server, None);
    // More than one record of TLS.
    ok(&mut client, doc! { "insert": "c", "documents": [{ "_id": 1, "text": "x".repeat(3_000_000) }] });
    let reply = run(&mut client, doc! { "find": "c" }).unwrap();
    assert!(reply.to_string().len() > 3_000_000);
    let mut plain = Client::connect(&server);
    plain.send(0, doc! { "hello": 1 });
    assert!(plain.try_receive().is_err());
    ok(&mut client, doc! { "ping": 1 });
}

#[test]
fn one_port_serves_both_if_it_is_said() {
    let server = start(tls().or_plain());
    ok(&mut connect(&server, None), doc! { "ping": 1 });
    Client::connect(&server).ok(doc! { "ping": 1 });
}

#[test]
fn who_is_silent_in_the_handshake_gives_way_when_all_connections_are_taken() {
    let configure = |server: Server| server.authentication().max_connections(1).tls(tls());
    let server = TestServer::with(Database::open("memory:").unwrap(), configure).unwrap();
    let mut silent = Client::connect(&server);
    ok(&mut connect(&server, None), doc! { "hello": 1 });
    assert!(matches!(silent.stream.read(&mut [0; 1]), Ok(0)), "the connection is closed");
}

#[test]
fn a_handshake_does_not_keep_the_server_from_stopping() {
    let server = start(tls());
    let mut silent = Client::connect(&server);
    ok(&mut connect(&server, None), doc! { "hello": 1 });
    let stopping = std::thread::spawn(move || drop(server));
    // Less than the six seconds after which a server that stops drops what is left.
    silent.stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    assert!(matches!(silent.stream.read(&mut [0; 1]), Ok(0)), "the connection is closed");
    stopping.join().unwrap();
}

#[test]
fn certificates_of_clients_are_verified() {
    let required = start(tls().client_ca(AUTHORITY, ClientCertificates::Required).unwrap());
    ok(&mut connect(&required, Some(CLIENT)), doc! { "ping": 1 });
    for certificate in [None, Some(STRANGER)] {
        assert!(run(&mut connect(&required, certificate), doc! { "ping": 1 }).is_err());
    }
    let optional = start(tls().client_ca(AUTHORITY, ClientCertificates::Optional).unwrap());
    for certificate in [None, Some(CLIENT)] {
        ok(&mut connect(&optional, certificate), doc! { "ping": 1 });
    }
    assert!(run(&mut connect(&optional, Some(STRANGER)), doc! { "ping": 1 }).is_err());
}

#[test]
fn a_certificate_is_a_login() {
    let database = Database::open("memory:").unwrap();
    let subject = "CN=ada,OU=clients,O=Slate\\, tests,C=DE";
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tls = tls().client_ca(AUTHORITY, ClientCertificates::Optional).unwrap();
    let configure = |server: Server| server.authentication().tls(tls);
    let server = TestServer::with(database.clone(), configure).unwrap();
    let authenticate = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    let code = |reply: Document| reply.get_i32("code").unwrap_or_default();
    // Nobody has this subject yet.
    assert_eq!(code(run(&mut connect(&server, Some(CLIENT)), authenticate.clone()).unwrap()), 18);
    runtime.block_on(Accounts::new(database).add_certificate(subject, &["read@shop"])).unwrap();
    let mut client = connect(&server, Some(CLIENT));
    assert_eq!(code(run(&mut client, doc! { "find": "c" }).unwrap()), 13);
    let mut other = authenticate.clone();
    other.insert("user", "CN=bob");
    assert_eq!(code(run(&mut client, other).unwrap()), 18);
    let reply = run(&mut client, authenticate.clone()).unwrap();
    assert_eq!(reply.get_str("user").unwrap(), subject, "{reply}");
    ok(&mut client, doc! { "find": "c" });
    assert_eq!(code(run(&mut client, doc! { "insert": "c", "documents": [{}] }).unwrap()), 13);
    // Without a certificate there is no such login, and no other one for this user.
    let mut client = connect(&server, None);
    assert_eq!(code(run(&mut client, authenticate).unwrap()), 18);
    // Drivers send it with `hello`.
    let hello = doc! { "hello": 1, "speculativeAuthenticate": { "authenticate": 1, "mechanism": "MONGODB-X509", "db": "$external" } };
    let mut client = connect(&server, Some(CLIENT));
    assert!(run(&mut client, hello).unwrap().contains_key("speculativeAuthenticate"));
    ok(&mut client, doc! { "find": "c" });
}

#[test]
fn what_is_no_certificate_or_not_its_key_is_refused() {
    let certificate = include_bytes!("../certificates/server.pem");
    assert!(Tls::new(b"", CLIENT).is_err());
    assert!(Tls::new(certificate, b"").is_err());
    assert!(Tls::new(certificate, CLIENT).is_err());
    assert!(tls().client_ca(b"", ClientCertificates::Required).is_err());
}
