//! `slate serve` and `slate mongod` as programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use bson::{Document, RawDocumentBuf, doc};

struct Server {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Self {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends the server with SIGTERM, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

fn slate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slate")).args(arguments).output().unwrap()
}

fn run(uri: &str, mut command: Document) -> Document {
    command.insert("$db", "test");
    let body = RawDocumentBuf::try_from(&command).unwrap();
    let length = i32::try_from(body.as_bytes().len() + 21).unwrap();
    let header = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
    let mut stream = TcpStream::connect(uri.trim_start_matches("mongodb://").trim_end_matches('/')).unwrap();
    stream.write_all(&[&*header, &[0], body.as_bytes()].concat()).unwrap();
    let mut header = [0; 21];
    stream.read_exact(&mut header).unwrap();
    let mut body = vec![0; usize::try_from(i32::from_le_bytes(header[..4].try_into().unwrap())).unwrap() - 21];
    stream.read_exact(&mut body).unwrap();
    Document::try_from(&RawDocumentBuf::from_bytes(body).unwrap()).unwrap()
}

#[test]
fn a_file_is_served_and_keeps_what_clients_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("shop.slate").display());
    for arguments in [["serve", &*url, "--port", "0"], [&*url, "serve", "--listen", "127.0.0.1:0"]] {
        let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &arguments);
        let uri = server.line();
        assert!(uri.starts_with("mongodb://127.0.0.1:"), "{uri}");
        run(&uri, doc! { "insert": "users", "documents": [{ "name": "Ada" }] });
        assert_eq!(server.end(), Some(0));
    }
    let count = slate(&[&url, "count", "users"]);
    assert_eq!(String::from_utf8_lossy(&count.stdout).trim(), "2");
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", &url, "--port", "0", "--read-only"]);
    let uri = server.line();
    assert_eq!(run(&uri, doc! { "count": "users" }).get_i32("n").unwrap(), 2);
    assert_eq!(run(&uri, doc! { "insert": "users", "documents": [{}] }).get_f64("ok").unwrap(), 0.0);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn addresses_of_other_machines_need_a_word() {
    for arguments in [
        &["serve", "memory:", "--listen", "0.0.0.0:0"][..],
        &["serve", "memory:", "--listen", "[::]:0"],
        &["mongod", "--port", "0", "--bind_ip", "*", "--storageEngine", "inMemory"],
    ] {
        let refused = slate(arguments);
        let shown = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{shown}");
        assert!(shown.contains("--allow-without-authentication"), "{shown}");
    }
}

#[cfg(unix)]
#[test]
fn mongod_is_a_link_that_takes_the_options_of_test_tools() {
    let folder = tempfile::tempdir().unwrap();
    let (mongod, data) = (folder.path().join("mongod"), folder.path().display().to_string());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_slate"), &mongod).unwrap();
    let version = Command::new(&mongod).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("db version v8.2.0\n"));
    let arguments = [
        "--port",
        "0",
        "--dbpath",
        &data,
        "--storageEngine",
        "wiredTiger",
        "--bind_ip",
        "127.0.0.1",
        "--noauth",
        "--replSet",
        "rs",
        "--setParameter",
        "enableTestCommands=1",
        "--setParameter",
        "transactionLifetimeLimitSeconds=5",
    ];
    let mut server = Server::start(&mongod, &arguments);
    let waiting = server.line();
    let (_, uri) = waiting.split_once("waiting for connections on ").unwrap();
    assert_eq!(server.line(), "transition to primary complete; database writes are now permitted");
    assert_eq!(run(uri, doc! { "hello": 1 }).get_str("setName").unwrap(), "rs");
    let parameters = run(uri, doc! { "getParameter": "*" });
    assert!(parameters.get_bool("enableTestCommands").unwrap(), "{parameters}");
    assert_eq!(parameters.get_i32("transactionLifetimeLimitSeconds").unwrap(), 5);
    let port = uri.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let taken = Command::new(&mongod).args(["--port", &port, "--storageEngine", "inMemory"]).output().unwrap();
    assert!(String::from_utf8_lossy(&taken.stderr).to_lowercase().contains("address already in use"));
    assert_eq!(server.end(), Some(0));
    assert!(Path::new(&data).join("data.slate").is_file());
    for refused in [&["--auth"][..], &["--config", "x"], &["--dbpath", "/no/such/folder"]] {
        assert!(!Command::new(&mongod).args(refused).output().unwrap().status.success());
    }
}

#[cfg(unix)]
#[test]
fn a_socket_that_a_server_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slate.sock");
    let shown = path.display().to_string();
    for is_killed in [true, false] {
        let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", "memory:", "--unix", &shown]);
        assert_eq!(server.line(), format!("mongodb://{}/", shown.replace('/', "%2F")));
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        let second = slate(&["serve", "memory:", "--unix", &shown]);
        assert!(!second.status.success());
        if is_killed {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
        } else {
            assert_eq!(server.end(), Some(0));
        }
        assert_eq!(path.exists(), is_killed);
    }
}
