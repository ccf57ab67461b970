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

fn run(uri: &str, command: Document) -> Document {
    run_on(uri, "test", command)
}

fn run_on(uri: &str, database: &str, mut command: Document) -> Document {
    command.insert("$db", database);
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
fn mongod_reads_its_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("mongod.conf"), folder.path().display().to_string());
    let written = format!(
        "storage: {{ dbPath: {data}, wiredTiger: {{ engineConfig: {{ cacheSizeGB: 0.01 }} }} }}\nnet: {{ port: 1 }}\n\
         replication.replSetName: rs\nsystemLog: {{ path: /x }}\nsetParameter: {{ enableTestCommands: true }}\n"
    );
    std::fs::write(&file, written).unwrap();
    let shown = file.display().to_string();
    // The command line replaces what the file says.
    let mut server =
        Server::start(env!("CARGO_BIN_EXE_slate"), &["mongod", "--port", "0", "--config", &shown, "--slowms", "100"]);
    let waiting = server.line();
    let (_, uri) = waiting.split_once("waiting for connections on ").unwrap();
    assert_eq!(run(uri, doc! { "hello": 1 }).get_str("setName").unwrap(), "rs");
    assert!(run(uri, doc! { "getParameter": "*" }).get_bool("enableTestCommands").unwrap());
    assert_eq!(server.end(), Some(0));
    assert!(folder.path().join("data.slate").is_file());
    std::fs::write(&file, "net: { prot: 27017 }").unwrap();
    let refused = slate(&["mongod", "-f", &shown]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("mongod.conf: unrecognized option: net.prot"), "{message}");
}

#[test]
fn a_server_tells_its_numbers_reports_slow_calls_and_is_backed_up_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (url, backups, log) = (format!("redb:{}", path("shop.slate")), path("backups"), path("log"));
    std::fs::create_dir(&backups).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_slate"))
        .args(["serve", &url, "--port", "0", "--metrics", "127.0.0.1:0", "--backup-directory", &backups])
        .args(["--slow", "1ns", "--cache", "8MiB", "--memory-limit", "1MiB"])
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut server = Server { child, lines };
    let (uri, metrics) = (server.line(), server.line());
    run(&uri, doc! { "insert": "users", "documents": [{ "name": "Ada" }] });
    run(&uri, doc! { "find": "users", "filter": { "name": "Ada" } });

    let address = metrics.trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
    let get = |what: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let numbers = get("/metrics");
    assert!(numbers.starts_with("HTTP/1.1 200 OK\r\n"), "{numbers}");
    for line in [
        "content-type: text/plain; version=0.0.4; charset=utf-8\r\n",
        "\nslate_operations_total{operation=\"insert\"} 1\n",
        "\n# TYPE slate_server_commands_total counter\nslate_server_commands_total{command=\"insert\"} 1\n",
        "\nslate_server_connections_total 2\n",
    ] {
        assert!(numbers.contains(line), "{line} in {numbers}");
    }
    assert!(get("/").starts_with("HTTP/1.1 404 "));

    let admin = |command: Document| run_on(&uri, "admin", command);
    assert!(admin(doc! { "backup": "monday.slate" }).get_str("path").unwrap().ends_with("monday.slate"));
    // A backup never overwrites, and stays in its folder.
    assert_eq!(admin(doc! { "backup": "monday.slate" }).get_f64("ok").unwrap(), 0.0);
    for name in ["", ".", "..", "../tuesday.slate", "a/b", "/tmp/tuesday.slate", "a/", "./a"] {
        assert_eq!(admin(doc! { "backup": name }).get_i32("code").unwrap(), 2, "{name}");
    }
    assert_eq!(run(&uri, doc! { "backup": "tuesday.slate" }).get_i32("code").unwrap(), 13);
    assert_eq!(server.end(), Some(0));
    let count = slate(&[&format!("redb:{backups}/monday.slate"), "count", "users"]);
    assert_eq!(String::from_utf8_lossy(&count.stdout).trim(), "1");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(" slow: find users { \"name\": ? }: "), "{log}");

    for arguments in [
        &["serve", "memory:", "--metrics", "0.0.0.0:0"][..],
        &["serve", "memory:", "--cache", "much"],
        &["serve", "memory:", "--slow", "5"],
    ] {
        assert_eq!(slate(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(slate(&["serve", "memory:", "--port", "0", "--backup-directory", "/no/such"]).status.code(), Some(1));
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

/// Runs the tool with a line of standard input.
fn slate_with(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_slate"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn users_are_managed_without_a_password_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("shop.slate").display());
    let shown = |output: Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let add = [&*url, "user", "add", "ada", "--database", "shop", "--role", "readWrite", "--role", "read@other"];
    assert_eq!(shown(slate_with(&add, "correct horse\n")), "ada added\n");
    let again = slate_with(&add, "correct horse\n");
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("already exists"));
    assert_eq!(slate_with(&[&url, "user", "add", "bob", "--role", "root"], "\n").status.code(), Some(1));
    assert_eq!(slate_with(&[&url, "user", "add", "bob", "--role", "no"], "x\n").status.code(), Some(1));
    let subject = "CN=bob,O=Slate";
    shown(slate(&[&url, "user", "add", "--certificate", subject, "--role", "root"]));
    let ada = "ada@shop: readWrite@shop, read@other\n";
    assert_eq!(shown(slate(&[&url, "user", "list"])), format!("CN=bob,O=Slate@$external: root@admin\n{ada}"));
    shown(slate_with(&[&url, "user", "password", "ada", "--database", "shop"], "another\n"));
    shown(slate(&[&url, "user", "roles", "ada", "--database", "shop", "--role", "read"]));
    shown(slate(&[&url, "user", "remove", subject, "--database", "$external"]));
    assert_eq!(shown(slate(&[&url, "user", "list"])), "ada@shop: read@shop\n");
    assert_eq!(slate(&[&url, "user", "remove", "nobody"]).status.code(), Some(1));
    // The server lets nobody else in, and may listen elsewhere.
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", &url, "--auth", "--listen", "0.0.0.0:0"]);
    let uri = server.line();
    assert_eq!(run(&uri, doc! { "find": "c" }).get_i32("code").unwrap(), 13);
    assert_eq!(run(&uri, doc! { "createUser": "x", "pwd": "x", "roles": [] }).get_i32("code").unwrap(), 13);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn tls_is_set_up_by_files() {
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slate-server/tests/certificates");
    let file = |name: &str| certificates.join(name).display().to_string();
    let (certificate, key, both) = (file("server.pem"), file("server.key"), file("server-and-key.pem"));
    let serve = ["serve", "memory:", "--port", "0", "--tls-certificate", &certificate, "--tls-key", &key];
    let mongod = ["mongod", "--port", "0", "--storageEngine", "inMemory", "--tlsMode", "preferTLS"];
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &serve);
    assert!(server.line().ends_with("/?tls=true"));
    server.end();
    let mut server =
        Server::start(env!("CARGO_BIN_EXE_slate"), &[&mongod[..], &["--tlsCertificateKeyFile", &both]].concat());
    let line = server.line();
    let (_, uri) = line.split_once("waiting for connections on ").unwrap();
    assert_eq!(run(uri, doc! { "ping": 1 }).get_f64("ok").unwrap(), 1.0);
    server.end();
    for (arguments, reason) in [
        (&serve[..6], "--tls-key"),
        (&mongod[..], "--tlsCertificateKeyFile"),
        (&["serve", "memory:", "--tls-certificate", &certificate, "--tls-key", &certificate], "private key"),
        (&["serve", "memory:", "--tls-certificate", "/no/such/file", "--tls-key", &key], "/no/such/file"),
    ] {
        let refused = slate(arguments);
        let shown = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && shown.contains(reason), "{shown}");
    }
}
