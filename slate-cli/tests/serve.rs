//! `slate serve` and `slate mongod` as programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use bson::{Document, RawDocumentBuf, doc};

#[cfg(feature = "client")]
#[path = "serve/client.rs"]
mod client;

#[path = "serve/mongod.rs"]
mod mongod;

#[cfg(feature = "tikv")]
#[path = "serve/processes.rs"]
mod processes;

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

fn run_on(uri: &str, database: &str, command: Document) -> Document {
    send(uri, database, command).unwrap()
}

fn send(uri: &str, database: &str, mut command: Document) -> std::io::Result<Document> {
    command.insert("$db", database);
    let body = RawDocumentBuf::try_from(&command).unwrap();
    let length = i32::try_from(body.as_bytes().len() + 21).unwrap();
    let header = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
    let mut stream = TcpStream::connect(uri.trim_start_matches("mongodb://").trim_end_matches('/'))?;
    stream.write_all(&[&*header, &[0], body.as_bytes()].concat())?;
    let mut header = [0; 21];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; usize::try_from(i32::from_le_bytes(header[..4].try_into().unwrap())).unwrap() - 21];
    stream.read_exact(&mut body)?;
    Ok(Document::try_from(&RawDocumentBuf::from_bytes(body).unwrap()).unwrap())
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

/// Starts a server through a shell that first limits its open files.
#[cfg(unix)]
fn with_few_files(limit: &str, connections: &str) -> Child {
    let script = format!("{limit}; exec \"$0\" serve memory: --port 0 --max-connections {connections}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_slate")]);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(unix)]
#[test]
fn the_limit_of_open_files_is_raised_or_said_to_be_too_low() {
    for (limit, connections, expected) in [
        ("ulimit -n 300", "1000", Some("is 300, and 1000 connections (--max-connections) need 2024")),
        ("ulimit -Sn 300", "100", None),
        ("ulimit -Sn 300; ulimit -Hn 2100", "1000", None),
    ] {
        let mut child = with_few_files(limit, connections);
        let (mut lines, mut errors) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("mongodb://"), "{line}");
        #[cfg(target_os = "linux")]
        if limit.contains("-Hn") {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
            let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
            assert_eq!(files.split_whitespace().nth(3), Some("2100"), "{files}");
        }
        Command::new("kill").arg(child.id().to_string()).status().unwrap();
        child.wait().unwrap();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        match expected {
            Some(expected) => assert!(errors.contains(expected), "{errors}"),
            None => assert_eq!(errors, ""),
        }
    }
}

/// On the cluster that `SLATE_TIKV` names: slate-tikv-cluster/README.md says how one is started for the tests.
#[cfg(feature = "tikv")]
#[test]
fn two_servers_on_a_cluster_serve_one_database_and_survive_each_other() {
    const EACH: i32 = 60;
    let Ok(driver) = std::env::var("SLATE_TIKV") else { return };
    let url = format!("tikv://{driver}/serve-{}", std::process::id());
    let start = || {
        let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", &url, "--port", "0"]);
        let uri = server.line();
        (server, uri)
    };
    let ((mut killed, first), (stays, second)) = (start(), start());
    let unique = doc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    let created = run(&first, doc! { "createIndexes": "items", "indexes": [unique] });
    assert_eq!(created.get_f64("ok").ok(), Some(1.0), "{created}");
    let insert = |uri: &str, id: i32, u: i32| {
        send(uri, "test", doc! { "insert": "items", "documents": [{ "_id": id, "u": u }] })
    };
    // Each server refuses what the other one has.
    assert_eq!(insert(&second, -1, -1).unwrap().get_i32("n").ok(), Some(1));
    let refused = insert(&first, -2, -1).unwrap();
    let errors = refused.get_array("writeErrors").unwrap();
    assert_eq!(errors[0].as_document().unwrap().get_i32("code").ok(), Some(11000), "{refused}");
    // One of them is killed while both write. What it has acknowledged stays.
    let mut acknowledged = vec![-1];
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            (10_000..10_000 + EACH)
                .filter(|id| insert(&second, *id, *id).unwrap().get_i32("n").ok() == Some(1))
                .collect::<Vec<_>>()
        });
        let victim = &mut killed.child;
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            victim.kill().unwrap();
        });
        let mut written = Vec::new();
        for id in 0.. {
            match insert(&first, id, id) {
                Ok(answer) => written.push((id, answer.get_i32("n").ok())),
                Err(_) => break,
            }
        }
        assert!(written.iter().all(|(_, n)| *n == Some(1)), "{written:?}");
        acknowledged.extend(written.iter().map(|(id, _)| *id));
        let beside = beside.join().unwrap();
        assert_eq!(beside.len(), usize::try_from(EACH).unwrap(), "the other server goes on");
        acknowledged.extend(beside);
    });
    killed.child.wait().unwrap();
    let (again, third) = start();
    let found = |uri: &str| {
        let answer = run(uri, doc! { "distinct": "items", "key": "_id" });
        answer
            .get_array("values")
            .unwrap()
            .iter()
            .map(|id| id.as_i32().unwrap())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (seen, by_second) = (found(&third), found(&second));
    assert_eq!(seen, by_second);
    assert!(acknowledged.iter().all(|id| seen.contains(id)));
    let by_index = run(&second, doc! { "count": "items", "query": { "u": { "$gte": -1 } }, "hint": "u_1" });
    assert_eq!(by_index.get_i32("n").ok(), Some(i32::try_from(seen.len()).unwrap()));
    let valid = run(&third, doc! { "validate": "items" });
    assert_eq!((valid.get_f64("ok").ok(), valid.get_bool("valid").ok()), (Some(1.0), Some(true)), "{valid}");
    assert_eq!((again.end(), stays.end()), (Some(0), Some(0)));
}

/// On the cluster that `SLATE_TIKV` names. Another server writes meanwhile, and then completes the index.
#[cfg(feature = "tikv")]
#[test]
fn on_a_cluster_a_build_whose_server_is_killed_is_completed_by_another_one() {
    const DOCUMENTS: i32 = 6_000;
    let Ok(driver) = std::env::var("SLATE_TIKV") else { return };
    let url = format!("tikv://{driver}/build-{}", std::process::id());
    let start = || {
        let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", &url, "--port", "0"]);
        let uri = server.line();
        (server, uri)
    };
    let ((mut killed, first), (stays, second)) = (start(), start());
    for part in 0..DOCUMENTS / 2_000 {
        let documents: Vec<_> =
            (0..2_000).map(|n| doc! { "_id": part * 2_000 + n, "a": n % 10, "b": [n, -n] }).collect();
        assert_eq!(run(&first, doc! { "insert": "items", "documents": documents }).get_i32("n").ok(), Some(2_000));
    }
    let build = |uri: &str| {
        let indexes = [doc! { "key": { "a": 1 }, "name": "a_1" }, doc! { "key": { "b": 1 }, "name": "b_1" }];
        send(uri, "test", doc! { "createIndexes": "items", "indexes": indexes.to_vec() })
    };
    std::thread::scope(|scope| {
        let builds = scope.spawn(|| build(&first));
        let victim = &mut killed.child;
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(400));
            victim.kill().unwrap();
        });
        for id in DOCUMENTS..DOCUMENTS + 40 {
            let written = run(&second, doc! { "insert": "items", "documents": [{ "_id": id, "a": 3, "b": id }] });
            assert_eq!(written.get_i32("n").ok(), Some(1), "{written}");
            let deleted = doc! { "delete": "items", "deletes": [{ "q": { "_id": id - DOCUMENTS }, "limit": 1 }] };
            let reply = run(&second, deleted);
            let there = || run(&second, doc! { "count": "items", "query": { "_id": { "$lt": DOCUMENTS } } });
            assert_eq!(reply.get_i32("n").ok(), Some(1), "{reply} at {id}, and then {}", there());
        }
        assert!(builds.join().unwrap().is_err(), "the build was faster than the kill");
    });
    killed.child.wait().unwrap();
    let built = build(&second).unwrap();
    assert_eq!(built.get_f64("ok").ok(), Some(1.0), "{built}");
    for index in ["a_1", "b_1"] {
        let range = doc! { "a": { "$gte": 0 }, "b": { "$gte": -100_000 } };
        let counted = run(&second, doc! { "count": "items", "query": range, "hint": index });
        assert_eq!(counted.get_i32("n").ok(), Some(DOCUMENTS), "{counted}");
    }
    let valid = run(&second, doc! { "validate": "items" });
    assert!(valid.get_bool("valid").unwrap(), "{valid}");
    assert_eq!(stays.end(), Some(0));
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

#[test]
fn a_backup_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let backups = folder.path().display().to_string();
    let serve = ["serve", "memory:", "--port", "0", "--test-commands", "--backup-directory", &backups];
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &serve);
    let uri = server.line();
    run(&uri, doc! { "insert": "c", "documents": [{}] });
    let data = doc! { "failCommands": ["backup"], "blockConnection": true, "blockTimeMS": 500 };
    run_on(&uri, "admin", doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data });
    let killed = std::thread::scope(|threads| {
        let backup = threads.spawn(|| run_on(&uri, "admin", doc! { "backup": "killed.slate" }));
        let running = || {
            let reply = run_on(&uri, "admin", doc! { "currentOp": 1, "command.backup": "killed.slate" });
            Some(reply.get_array("inprog").unwrap().first()?.as_document().unwrap().get_i32("opid").unwrap())
        };
        let id = std::iter::repeat_with(running).find_map(|id| id).unwrap();
        run_on(&uri, "admin", doc! { "killOp": 1, "op": id });
        backup.join().unwrap()
    });
    assert_eq!(killed.get_i32("code").unwrap(), 11_601, "{killed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of the copy");
    run_on(&uri, "admin", doc! { "configureFailPoint": "failCommand", "mode": "off" });
    assert_eq!(run_on(&uri, "admin", doc! { "backup": "whole.slate" }).get_f64("ok").unwrap(), 1.0);
    assert_eq!(server.end(), Some(0));
}

/// A field of `/proc/PID/status` in bytes.
#[cfg(target_os = "linux")]
fn memory(server: &Server, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[test]
fn long_batches_take_the_memory_of_one() {
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", "memory:", "--port", "0"]);
    let uri = server.line();
    let bytes = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![7; 500_000] };
    for _ in 0..12 {
        let documents = vec![doc! { "bytes": bytes.clone() }; 10];
        assert_eq!(run(&uri, doc! { "insert": "c", "documents": documents }).get_i32("n").unwrap(), 10);
    }
    let mut reply = run(&uri, doc! { "find": "c", "batchSize": 0 });
    // The peak begins again.
    std::fs::write(format!("/proc/{}/clear_refs", server.child.id()), "5").unwrap();
    let before = memory(&server, "VmRSS:");
    let (mut documents, mut batches) = (0, 0);
    loop {
        let cursor = reply.get_document("cursor").unwrap();
        let id = cursor.get_i64("id").unwrap();
        let next = cursor.get_array("nextBatch").map_or(0, Vec::len);
        documents += next;
        if id == 0 {
            break;
        }
        batches += 1;
        reply = run(&uri, doc! { "getMore": id, "collection": "c" });
    }
    // Of 33 documents within 16 MiB.
    assert_eq!((documents, batches), (120, 4));
    let (peak, after) = (memory(&server, "VmHWM:") - before, memory(&server, "VmRSS:").saturating_sub(before));
    assert!(peak < 20 << 20, "a batch of 16 MiB takes {peak} bytes");
    assert!(after < 4 << 20, "{after} bytes are kept after it");
    assert_eq!(server.end(), Some(0));
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
