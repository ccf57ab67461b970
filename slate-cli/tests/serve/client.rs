//! The tool's commands at URLs of servers.

use super::*;

/// Runs the tool, and returns its exit code and what it prints on both outputs.
fn tool(arguments: &[&str]) -> (Option<i32>, String) {
    let output = slate(arguments);
    let shown = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(shown).unwrap())
}

fn done(arguments: &[&str]) -> String {
    let (code, shown) = tool(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {shown}");
    shown
}

fn start(arguments: &[&str]) -> (Server, String) {
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &[&["serve"], arguments, &["--port", "0"]].concat());
    let uri = server.line();
    (server, uri)
}

#[test]
fn commands_have_the_same_results_as_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("redb:{}", folder.path().join("shop.slate").display());
    let (server, uri) = start(&["memory:"]);
    let url = format!("{uri}shop");
    for arguments in [
        &["insert", "users", "{ _id: 1, name: 'Ada', n: 5 }", "{ _id: 2, name: 'Alan', n: 7 }"][..],
        &["insert", "users", "{ _id: 3, name: 'grace', tags: ['a', 'b'] }"],
        &["find", "users", "{ name: /^Al/ }"],
        &["find", "users", "{}", "--sort", "{ _id: -1 }", "--skip", "1", "--limit", "1", "--project", "{ n: 1 }"],
        &["find", "users", "{ $expr: { $gt: ['$n', '$$least'] } }", "--let", "{ least: 6 }", "--format", "csv"],
        &["find", "users", "{ name: 'GRACE' }", "--collation", "{ locale: 'en', strength: 2 }"],
        &["count", "users"],
        &["count", "users", "{ n: { $gt: 1 } }", "--limit", "1"],
        &["count", "users", "{ $expr: { $gt: ['$n', '$$least'] } }", "--let", "{ least: 6 }"],
        &["distinct", "users", "tags"],
        &["aggregate", "users", "[{ $group: { _id: null, n: { $sum: '$n' } } }]"],
        &["aggregate", "users", "[{ $match: { n: 5 } }, { $out: 'fives' }]"],
        &["update", "users", "{ _id: 1 }", "{ $set: { n: 6 } }"],
        &["update", "users", "{}", "[{ $set: { m: '$n' } }]", "--many"],
        &["update", "users", "{ _id: 9 }", "{ name: 'Edsger' }", "--replace", "--upsert"],
        &["update", "users", "{}", "{ $set: { 'tags.$[t]': 'c' } }", "--many", "--array-filters", "[{ t: 'a' }]"],
        &["update", "users", "{}", "{ n: 1 }"],
        &["delete", "users", "{ _id: 9 }"],
        &["create-index", "users", "{ name: 1, n: -1 }", "--unique", "--only", "{ n: { $gt: 0 } }"],
        &["indexes", "users"],
        &["find", "users", "{ name: 'Ada', n: 6 }", "--hint", "name_1_n_-1"],
        &["drop-index", "users", "nothing_1"],
        &["drop-index", "users", "name_1_n_-1"],
        &["collections"],
        &["command", "{ ping: 1 }"],
        &["command", "{ insert: 'users', documents: [{ _id: 1 }], ordered: false }"],
        &["export", "users", "{}", "--format", "canonical"],
        &["drop", "fives"],
        &["find", "nothing"],
        &["update", "nothing", "{}", "{ $set: { a: 1 } }"],
    ] {
        let (on_file, on_server) = (tool(&[&[&*file], arguments].concat()), tool(&[&[&*url], arguments].concat()));
        // Messages of a server, and replies to commands, name the database.
        let plain = |(code, shown): (Option<i32>, String)| {
            (code, shown.replace("shop.users", "users").replace("test.users", "users"))
        };
        assert_eq!(plain(on_server), plain(on_file), "{arguments:?}");
    }
    // A duplicate is reported by the server, with its code.
    let (code, shown) = tool(&[&url, "insert", "users", "{ _id: 1 }", "{ _id: 11 }"]);
    assert!(code == Some(1) && shown.contains("E11000") && shown.contains("[DuplicateKey 11000]"), "{shown}");
    assert_eq!(done(&[&url, "count", "users", "{ _id: 11 }"]), "1\n");
    assert!(done(&[&url, "explain", "--analyze", "find", "users", "{ n: 6 }"]).contains("executionStats"));
    assert!(done(&[&url, "stats"]).contains("the database in all"));
    assert!(done(&[&url, "verify"]).ends_with("4 documents, 0 faults\n"));
    let script = slate_with(&[&url], "count users\nfind users { _id: 1 }\n");
    assert_eq!(String::from_utf8(script.stdout).unwrap(), "4\n{\"_id\":1,\"name\":\"Ada\",\"n\":6,\"m\":6}\n");
    for (command, instead) in [
        ("repair", "verify"),
        ("compact", "command"),
        ("schema-version", "slate.migrations"),
        ("restore", "copy"),
        ("collect-garbage", "tikv:"),
    ] {
        let (code, shown) = tool(&[&[&*url, command][..], if command == "restore" { &["x"] } else { &[] }].concat());
        assert!(code == Some(2) && shown.contains(&format!("`{command}`")) && shown.contains(instead), "{shown}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_database_is_copied_to_a_server_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, dump) = (format!("redb:{}", path("shop.slate")), path("dump"));
    let lines: String = (0..2_500).map(|n| format!("{{ _id: {n}, n: NumberLong({n}), text: 'x' }}\n")).collect();
    std::fs::write(path("items.jsonl"), lines).unwrap();
    done(&[&file, "import", &path("items.jsonl")]);
    done(&[&file, "create-index", "items", "{ n: 1 }", "--unique", "--only", "{ n: { $gt: 5 } }"]);
    done(&[&file, "command", "{ create: 'names', collation: { locale: 'en', strength: 2 }, validator: { a: 1 } }"]);
    done(&[&file, "create-index", "names", "{ a: 1 }"]);
    done(&[&file, "command", "{ create: 'few', viewOn: 'items', pipeline: [{ $match: { n: 1 } }] }"]);
    let dumped = |url: &str, folder: &str| {
        done(&[url, "export", "--output", folder]);
        let mut files: Vec<_> = std::fs::read_dir(Path::new(folder).join("slate")).unwrap().collect();
        files.sort_by_key(|file| file.as_ref().unwrap().path());
        let read = |file: std::io::Result<std::fs::DirEntry>| {
            let path = file.unwrap().path();
            (path.file_name().unwrap().to_owned(), std::fs::read(path).unwrap())
        };
        files.into_iter().map(read).collect::<Vec<_>>()
    };
    let expected = dumped(&file, &dump);
    assert_eq!(expected.len(), 5);

    let (server, uri) = start(&["memory:"]);
    let (shop, second) = (format!("{uri}shop"), format!("{uri}second?appName=x"));
    let copied = "2 collections with 2500 documents and 1 view copied to ";
    assert_eq!(done(&["copy", &file, &shop]), format!("{copied}{shop}\n"));
    assert!(dumped(&shop, &path("of-server")) == expected);
    // Nothing is written where a collection exists.
    let (code, shown) = tool(&[&file, "copy", &shop]);
    assert!(code == Some(1) && shown.contains("the target has a collection few already"), "{shown}");
    assert!(done(&["copy", &shop, &second]).starts_with(copied));
    let back = format!("redb:{}", path("back.slate"));
    assert!(done(&[&second, "copy", &back]).starts_with(copied));
    assert!(dumped(&back, &path("of-copy")) == expected);

    // Dumps, and what exists already.
    let third = format!("{uri}third");
    assert!(done(&[&third, "import", &dump]).contains("items.bson: 2500 inserted, collection items\n"));
    assert!(dumped(&third, &path("of-import")) == expected);
    let some = path("some.jsonl");
    std::fs::write(&some, "{ _id: 1, n: 1, b: { c: 1 } }\n{ _id: 9999, 'a.b': 1 }\n{ a: 1 }\n").unwrap();
    let import = |mode: &str| tool(&[&third, "import", &some, "--collection", "items", "--mode", mode]);
    let (code, shown) = import("insert");
    assert!(code == Some(0) && shown.contains(": 2 inserted, 1 existing, collection items\n"), "{shown}");
    assert!(shown.contains("some.jsonl: line 1, column 1: E11000 "), "{shown}");
    assert!(import("merge").1.contains(": 1 inserted, 2 changed"));
    assert_eq!(
        done(&[&third, "find", "items", "{ _id: { $in: [1, 9999] } }"]),
        "{\"_id\":1,\"n\":1,\"text\":\"x\",\"b\":{\"c\":1}}\n{\"_id\":9999,\"a.b\":1}\n"
    );
    assert!(import("upsert").1.contains(": 1 inserted, 2 changed"));
    assert_eq!(done(&[&third, "find", "items", "{ _id: 1 }"]), "{\"_id\":1,\"n\":1,\"b\":{\"c\":1}}\n");
    assert_eq!(server.end(), Some(0));
}

#[cfg(unix)]
#[test]
fn an_interrupted_copy_to_a_server_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = "x".repeat(1_000);
    let lines: String = (0..40_000).map(|n| format!("{{ _id: {n}, text: '{text}' }}\n")).collect();
    std::fs::write(path("items.jsonl"), lines).unwrap();
    std::fs::write(path("few.jsonl"), "{ _id: 1 }\n").unwrap();
    let file = format!("redb:{}", path("shop.slate"));
    done(&[&file, "import", &path("few.jsonl"), &path("items.jsonl")]);
    let (server, uri) = start(&["memory:"]);
    let shop = format!("{uri}shop");
    let mut copy = Command::new(env!("CARGO_BIN_EXE_slate")).args(["copy", &file, &shop]).spawn().unwrap();
    while !is_copying(&uri) {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended before it was interrupted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &copy.id().to_string()]).status().unwrap();
    assert_eq!(copy.wait().unwrap().code(), Some(130));
    assert_eq!(done(&[&shop, "collections"]), "");
    // One that is killed leaves its collection. The next copy tells of it, and does not drop what may belong to one that runs.
    let mut copy = Command::new(env!("CARGO_BIN_EXE_slate")).args(["copy", &file, &shop]).spawn().unwrap();
    while !is_copying(&uri) {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    let small = format!("redb:{}", path("small.slate"));
    done(&[&small, "import", &path("few.jsonl")]);
    let (code, shown) = tool(&["copy", &small, &shop]);
    assert!(code == Some(0) && shown.contains("the target has 2 collections of a copy that began at "), "{shown}");
    assert!(shown.contains("drop --unfinished"), "{shown}");
    assert_eq!(done(&[&shop, "drop", "--unfinished"]), "2 collections of unfinished copies dropped\n");
    assert_eq!(done(&[&shop, "drop", "few"]), "few with 1 document dropped\n");
    assert_eq!(done(&[&shop, "collections"]), "");
    // One that runs while its collections are dropped does not end with a part of the documents.
    let mut copy =
        Command::new(env!("CARGO_BIN_EXE_slate")).args(["copy", &file, &shop]).stderr(Stdio::piped()).spawn().unwrap();
    while !is_copying(&uri) {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended too early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    done(&[&shop, "drop", "--unfinished"]);
    let copied = copy.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&copied.stderr);
    assert!(copied.status.code() == Some(1) && shown.contains("was dropped by another client"), "{shown}");
    assert_eq!(done(&[&shop, "collections"]), "");
    // What another client has created meanwhile is not dropped, although it has the same name and options.
    let mut copy =
        Command::new(env!("CARGO_BIN_EXE_slate")).args(["copy", &file, &shop]).stderr(Stdio::piped()).spawn().unwrap();
    while !is_copying(&uri) {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended too early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run_on(&uri, "shop", doc! { "insert": "items", "documents": [{ "_id": "mine" }] });
    let copied = copy.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&copied.stderr);
    assert_eq!(copied.status.code(), Some(1), "{shown}");
    assert!(shown.contains("items was created by another client"), "{shown}");
    assert_eq!(done(&[&shop, "find", "items"]), "{\"_id\":\"mine\"}\n");
    let listed = run_on(&uri, "shop", doc! { "listCollections": 1, "nameOnly": true });
    assert_eq!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 1, "{listed}");
    assert_eq!(server.end(), Some(0));
}

/// Whether a copy has written many documents into a collection that has not got its name.
fn is_copying(uri: &str) -> bool {
    let listed = run_on(uri, "shop", doc! { "listCollections": 1, "nameOnly": true });
    let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().any(|collection| {
        let name = collection.as_document().unwrap().get_str("name").unwrap();
        assert!(name.starts_with("slate.copy."), "{name}");
        run_on(uri, "shop", doc! { "count": name }).get_i32("n").unwrap() > 1
    })
}

#[test]
fn writes_have_the_write_concern_of_the_url() {
    let (server, uri) = start(&["memory:"]);
    done(&[&format!("{uri}shop"), "insert", "users", "{ _id: 1 }", "{ _id: 2 }"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.jsonl").display().to_string();
    std::fs::write(&file, "{ _id: 3 }\n").unwrap();
    // The set has one member.
    let url = format!("{uri}shop?w=2");
    for arguments in [
        &["update", "users", "{ _id: 1 }", "{ $set: { a: 1 } }"][..],
        &["update", "users", "{ _id: 4 }", "{ $set: { a: 1 } }", "--upsert"],
        &["delete", "users", "{ _id: 2 }"],
        &["create-index", "users", "{ a: 1 }"],
        &["import", &file, "--mode", "upsert"],
        &["aggregate", "users", "[{ $out: 'others' }]"],
        &["drop-index", "users", "a_1"],
        &["insert", "users", "{ _id: 5 }"],
    ] {
        let (code, shown) = tool(&[&[&*url], arguments].concat());
        assert_eq!(code, Some(1), "{arguments:?}: {shown}");
        assert!(shown.contains("UnsatisfiableWriteConcern 100"), "{arguments:?}: {shown}");
    }
    let file = format!("redb:{}", folder.path().join("copied").display());
    done(&[&file, "insert", "copied", "{ _id: 1 }"]);
    let (code, shown) = tool(&[&file, "copy", &url]);
    assert!(code == Some(1) && shown.contains("UnsatisfiableWriteConcern 100"), "{shown}");
    let names = run_on(&uri, "shop", doc! { "listCollections": 1, "nameOnly": true }).to_string();
    assert!(!names.contains("copied") && !names.contains("slate.copy"), "{names}");
    assert_eq!(done(&[&format!("{uri}shop"), "distinct", "users", "_id"]), "1\n3\n4\n5\n");
    assert_eq!(done(&[&format!("{uri}shop?w=majority&journal=true"), "delete", "users", "{}"]), "1 deleted\n");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_signal_ends_an_insert_that_a_server_does_not_answer() {
    let (server, uri) = start(&["memory:", "--test-commands"]);
    let data = doc! { "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 20_000 };
    let set = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    assert_eq!(run_on(&uri, "admin", set).get_f64("ok").unwrap(), 1.0);
    let mut insert = Command::new(env!("CARGO_BIN_EXE_slate"))
        .args([&format!("{uri}shop"), "insert", "users", "{ _id: 1 }"])
        .spawn()
        .unwrap();
    let runs = || {
        let running = run_on(&uri, "admin", doc! { "currentOp": 1, "op": "insert" });
        !running.get_array("inprog").unwrap().is_empty()
    };
    while !runs() {
        assert!(insert.try_wait().unwrap().is_none(), "the insert ended early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = std::time::Instant::now();
    Command::new("kill").args(["-INT", &insert.id().to_string()]).status().unwrap();
    assert_eq!(insert.wait().unwrap().code(), Some(130));
    assert!(sent.elapsed() < std::time::Duration::from_millis(2_500), "{:?}", sent.elapsed());
    assert_eq!(server.end(), Some(0));
}

#[test]
fn what_keeps_a_client_out_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("redb:{}", folder.path().join("shop.slate").display());
    let refused = |url: &str, reason: &str| {
        let (code, shown) = tool(&[url, "collections"]);
        assert!(code.is_some_and(|code| code != 0) && shown.contains(reason), "{shown}");
        assert!(!shown.contains("correct horse"), "{shown}");
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = taken.local_addr().unwrap();
    drop(taken);
    refused(
        &format!("mongodb://ada:correct%20horse@{closed}/?serverSelectionTimeoutMS=200"),
        &format!("no server can be used at {closed}: "),
    );
    refused("mongodb://", "slate: ");
    refused("mongodb+srv://example.invalid", "DNS");
    assert_eq!(
        slate_with(&[&file, "user", "add", "ada", "--role", "readWrite@shop"], "correct horse\n").status.code(),
        Some(0)
    );
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slate-server/tests/certificates");
    let certificate = |name: &str| certificates.join(name).display().to_string();
    let (server, uri) = start(&[&file, "--auth"]);
    let hosts = uri.trim_start_matches("mongodb://").trim_end_matches('/').to_owned();
    refused(&format!("{uri}shop"), "[Unauthorized 13]");
    refused(&format!("mongodb://ada:wrong@{hosts}/shop?authSource=admin"), "authSource");
    let logged_in = format!("mongodb://ada:correct%20horse@{hosts}/shop?authSource=admin");
    done(&[&logged_in, "insert", "users", "{ _id: 1 }"]);
    assert_eq!(done(&[&logged_in, "collections"]), "users\n");
    let (code, shown) = tool(&[&logged_in.replace("/shop", "/other"), "insert", "users", "{ _id: 1 }"]);
    assert!(code == Some(1) && shown.contains("[Unauthorized 13]"), "{shown}");
    assert_eq!(server.end(), Some(0));

    let (certificate_of_server, key) = (certificate("server.pem"), certificate("server.key"));
    let (server, uri) = start(&["memory:", "--tls-certificate", &certificate_of_server, "--tls-key", &key]);
    let plain = uri.replace("tls=true", "serverSelectionTimeoutMS=200");
    refused(&plain, "no server can be used");
    refused(&format!("{uri}&serverSelectionTimeoutMS=200"), "no server can be used");
    let trusted = format!("{uri}&tlsCAFile={}", certificate("ca.pem"));
    done(&[&trusted, "insert", "users", "{ _id: 1 }"]);
    assert_eq!(server.end(), Some(0));
}
