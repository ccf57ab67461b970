//! `slate mongod`, in place of MongoDB's server.

use super::*;

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
    let parameters = run_on(uri, "admin", doc! { "getParameter": "*" });
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

/// On Linux, every address that begins with 127 is one of the machine.
#[cfg(target_os = "linux")]
#[test]
fn mongod_listens_on_all_of_its_addresses() {
    // An address of IPv4 in the form of IPv6; a name that is resolved, in capitals, and one that is not.
    let addresses = "127.0.0.1, ::ffff:127.0.0.2,localhost,LOCALHOST";
    let arguments = ["mongod", "--port", "0", "--bind_ip", addresses, "--storageEngine", "inMemory"];
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &arguments);
    let waiting = server.line();
    let (_, uri) = waiting.split_once("waiting for connections on ").unwrap();
    assert!(uri.starts_with("mongodb://127.0.0.1:"), "{uri}");
    for (inserted, host) in [(1, "127.0.0.1"), (2, "127.0.0.2"), (3, "127.0.0.1")] {
        let uri = uri.replace("127.0.0.1", host);
        run(&uri, doc! { "insert": "c", "documents": [{}] });
        assert_eq!(run(&uri, doc! { "count": "c" }).get_i32("n").unwrap(), inserted);
    }
    assert_eq!(server.end(), Some(0));
    let open = slate(&["mongod", "--port", "0", "--bind_ip", "127.0.0.1,0.0.0.0", "--storageEngine", "inMemory"]);
    assert!(String::from_utf8_lossy(&open.stderr).contains("--allow-without-authentication"));
    let unknown = slate(&["mongod", "--port", "0", "--bind_ip", "127.0.0.1,db.invalid", "--storageEngine", "inMemory"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("\"db.invalid\" is not the name of an address"));
}

/// The socket of `::` must leave the addresses of IPv4 to the other one.
#[test]
fn mongod_listens_on_all_addresses_of_both_families() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    for addresses in ["::,0.0.0.0", "0.0.0.0,::1,::,127.0.0.1,::"] {
        let arguments = ["mongod", "--port", "0", "--storageEngine", "inMemory", "--allow-without-authentication"];
        let arguments = [&arguments[..], &["--bind_ip", addresses]].concat();
        let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &arguments);
        let waiting = server.line();
        let port = waiting.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
        for host in ["127.0.0.1", "[::1]"] {
            run(&format!("mongodb://{host}:{port}/"), doc! { "ping": 1 });
        }
        assert_eq!(server.end(), Some(0));
    }
}

#[cfg(unix)]
#[test]
fn mongod_reads_its_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("mongod.conf"), folder.path().display().to_string());
    let written = format!(
        "storage: {{ dbPath: {data}, wiredTiger: {{ engineConfig: {{ cacheSizeGB: 0.01 }} }} }}\nnet: {{ port: 1 }}\n\
         replication.replSetName: rs\nsystemLog: {{ path: /x }}\nsetParameter: {{ enableTestCommands: true }}\n\
         security: {{ authorization: enabled }}\n"
    );
    std::fs::write(&file, written).unwrap();
    let shown = file.display().to_string();
    // The command line replaces what the file says.
    let arguments = ["mongod", "--port", "0", "--config", &shown, "--slowms", "100", "--noauth"];
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &arguments);
    let waiting = server.line();
    let (_, uri) = waiting.split_once("waiting for connections on ").unwrap();
    assert_eq!(run(uri, doc! { "hello": 1 }).get_str("setName").unwrap(), "rs");
    assert!(run_on(uri, "admin", doc! { "getParameter": "*" }).get_bool("enableTestCommands").unwrap());
    assert_eq!(server.end(), Some(0));
    assert!(folder.path().join("data.slate").is_file());
    std::fs::write(&file, "net: { prot: 27017 }").unwrap();
    let refused = slate(&["mongod", "-f", &shown]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("mongod.conf: unrecognized option: net.prot"), "{message}");
}
