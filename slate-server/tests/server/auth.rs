//! Users, roles and logins over a real socket.

use base64::{Engine, prelude::BASE64_STANDARD};
use bson::{Binary, Document, RawJavaScriptCodeWithScope, doc, rawdoc, spec::BinarySubtype};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use slate_core::Database;
use slate_server::TestServer;

use crate::client::{Client, batch, nested, session};

/// Starts a server with authentication and the user `root`.
pub(crate) fn start() -> TestServer {
    let server = empty();
    Client::connect(&server).ok(create("root", "admin", "root"));
    server
}

fn empty() -> TestServer {
    TestServer::with(Database::open("memory:").unwrap(), |server| server.authentication()).unwrap()
}

/// A user with a role of the database and the password `pw`.
pub(crate) fn create(user: &str, database: &str, role: &str) -> Document {
    doc! { "createUser": user, "$db": database, "pwd": "pw", "roles": [role], "mechanisms": ["SCRAM-SHA-256"] }
}

/// Connects as a user.
pub(crate) fn enter(server: &TestServer, user: &str, database: &str) -> Client {
    let mut client = Client::connect(server);
    let done = log_in(&mut client, user, database, "pw");
    assert_eq!(done.get_bool("done").ok(), Some(true), "{done}");
    client
}

fn payload(text: impl Into<String>) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: text.into().into_bytes() }
}

fn text(reply: &Document) -> String {
    String::from_utf8(reply.get_binary_generic("payload").unwrap().clone()).unwrap()
}

fn first_message(user: &str, database: &str) -> Document {
    doc! {
        "saslStart": 1, "$db": database, "mechanism": "SCRAM-SHA-256", "payload": payload(format!("n,,n={user},r=nonce")),
        "options": { "skipEmptyExchange": true },
    }
}

/// Logs in by SCRAM-SHA-256. Returns the last reply.
fn log_in(client: &mut Client, user: &str, database: &str, password: &str) -> Document {
    let started = client.run(first_message(user, database));
    if started.get_f64("ok").unwrap() < 1.0 {
        return started;
    }
    client.run(last_message(user, database, password, &text(&started)))
}

/// Returns the answer to the server's first message.
fn last_message(user: &str, database: &str, password: &str, first: &str) -> Document {
    let field = |name: &str| first.split(',').find_map(|field| field.strip_prefix(name)).unwrap();
    let salt = BASE64_STANDARD.decode(field("s=")).unwrap();
    let salted = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), &salt, field("i=").parse().unwrap());
    let hmac = |key: &[u8], text: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes()
    };
    let key = hmac(&salted, "Client Key");
    let without_proof = format!("c=biws,r={}", field("r="));
    let signature = hmac(&Sha256::digest(key), &format!("n={user},r=nonce,{first},{without_proof}"));
    let proof: Vec<u8> = key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    let message = format!("{without_proof},p={}", BASE64_STANDARD.encode(proof));
    doc! { "saslContinue": 1, "$db": database, "conversationId": 1, "payload": payload(message) }
}

pub(crate) fn message(reply: &Document) -> &str {
    reply.get_str("errmsg").unwrap()
}

#[test]
fn without_a_login_only_the_first_user_can_be_created() {
    let server = empty();
    let mut client = Client::connect(&server);
    let refused = client.refused(doc! { "find": "c" }, 13);
    assert_eq!(message(&refused), "Command find requires authentication");
    assert_eq!(refused.get_str("codeName").unwrap(), "Unauthorized");
    for open in ["hello", "ping", "buildInfo", "connectionStatus", "listCommands", "endSessions"] {
        client.ok(if open == "endSessions" {
            doc! { open: [] }
        } else {
            doc! { open: 1 }
        });
    }
    client.refused(doc! { "noSuchCommand": 1 }, 59);
    client.refused(create("ada", "shop", "read"), 13);
    client.ok(create("root", "admin", "root"));
    client.refused(create("second", "admin", "root"), 13);
    let mut client = enter(&server, "root", "admin");
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
    client.ok(doc! { "dropUser": "root", "$db": "admin" });
    // There was a user: the exception is over, and so is the login of the user who is no longer there.
    client.refused(doc! { "find": "c" }, 13);
    Client::connect(&server).refused(create("root", "admin", "root"), 13);
}

#[test]
fn what_a_user_may_not_do_is_not_profiled() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(create("ada", "other", "read"));
    root.ok(doc! { "profile": 2 });
    let mut ada = enter(&server, "ada", "other");
    ada.refused(doc! { "find": "c" }, 13);
    ada.refused(doc! { "find": "c", "apiVersion": "7" }, 322);
    Client::connect(&server).ok(doc! { "ping": 1 });
    root.ok(doc! { "find": "c" });
    let (entries, _) = batch(&root.ok(doc! { "find": "system.profile" }));
    let users: Vec<&str> = entries.iter().map(|entry| entry.get_str("user").unwrap()).collect();
    assert_eq!(users, ["root@admin"]);
}

#[test]
fn wrong_passwords_users_and_messages_fail_alike() {
    let server = start();
    let mut client = Client::connect(&server);
    let mut reply = log_in(&mut client, "root", "admin", "wrong");
    for failed in [
        log_in(&mut client, "nobody", "admin", "pw"),
        log_in(&mut client, "root", "shop", "pw"),
        log_in(&mut client, "root.x", "admin", "pw"),
    ] {
        reply.remove("$clusterTime");
        let mut failed = failed;
        failed.remove("$clusterTime");
        reply.remove("operationTime");
        failed.remove("operationTime");
        assert_eq!(reply, failed);
    }
    assert_eq!((reply.get_i32("code").unwrap(), message(&reply)), (18, "Authentication failed."));
    // A user who does not exist has the same salt each time.
    let salt = |client: &mut Client, user: &str| {
        let first = text(&client.ok(first_message(user, "admin")));
        first.split(',').find(|field| field.starts_with("s=")).unwrap().to_owned()
    };
    assert_eq!(salt(&mut client, "nobody"), salt(&mut client, "nobody"));
    assert_ne!(salt(&mut client, "nobody"), salt(&mut client, "nobody2"));
    // What is no exchange.
    client.refused(doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": payload("") }, 334);
    client.refused(doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload("x") }, 18);
    client.refused(doc! { "saslContinue": 1, "conversationId": 1, "payload": payload("") }, 17);
    client.ok(first_message("root", "admin"));
    client.refused(doc! { "saslContinue": 1, "conversationId": 2, "payload": payload("") }, 17);
    let started = client.ok(first_message("root", "admin"));
    let mut last = last_message("root", "admin", "pw", &text(&started));
    client.ok(last.clone());
    // The same proof is of no use a second time.
    client.refused(last.clone(), 17);
    last.insert("conversationId", 1);
    let mut other = Client::connect(&server);
    other.ok(first_message("root", "admin"));
    other.refused(last, 18);
    other.refused(doc! { "find": "c" }, 13);
}

#[test]
fn failed_logins_are_limited() {
    let server = start();
    let mut client = Client::connect(&server);
    for _ in 0..10 {
        assert_eq!(message(&log_in(&mut client, "root", "admin", "wrong")), "Authentication failed.");
    }
    let refused = log_in(&mut client, "root", "admin", "pw");
    assert_eq!(refused.get_i32("code").unwrap(), 18);
    assert!(message(&refused).contains("too often"), "{refused}");
    // Another user may log in.
    assert_eq!(message(&log_in(&mut client, "other", "admin", "pw")), "Authentication failed.");
}

#[test]
fn drivers_log_in_with_hello() {
    let server = start();
    let mut client = Client::connect(&server);
    let mut hello = doc! { "hello": 1, "$db": "admin", "saslSupportedMechs": "admin.root" };
    let mut speculative = first_message("root", "admin");
    speculative.extend(doc! { "db": "admin" });
    speculative.remove("$db");
    hello.insert("speculativeAuthenticate", speculative.clone());
    let reply = client.ok(hello.clone());
    assert_eq!(reply.get_array("saslSupportedMechs").unwrap(), &["SCRAM-SHA-256".into()]);
    let started = reply.get_document("speculativeAuthenticate").unwrap();
    assert!(!started.get_bool("done").unwrap());
    client.ok(last_message("root", "admin", "pw", &text(started)));
    client.ok(doc! { "find": "c" });
    // A user who does not exist seems to have every mechanism; an exchange that cannot begin is left out.
    hello.insert("saslSupportedMechs", "admin.nobody");
    speculative.insert("mechanism", "PLAIN");
    hello.insert("speculativeAuthenticate", speculative);
    let reply = client.ok(hello);
    assert_eq!(reply.get_array("saslSupportedMechs").unwrap().len(), 2);
    assert!(!reply.contains_key("speculativeAuthenticate"));
    client.refused(doc! { "hello": 1, "saslSupportedMechs": "root" }, 2);
    // Nor does one begin with a mechanism that the user has no keys for: the driver goes on with another.
    let mut other = first_message("root", "admin");
    other.extend(doc! { "db": "admin", "mechanism": "SCRAM-SHA-1" });
    let reply = client.ok(doc! { "hello": 1, "saslSupportedMechs": "admin.root", "speculativeAuthenticate": other });
    assert!(!reply.contains_key("speculativeAuthenticate"));
    // Without the option, the exchange ends with an empty message.
    let mut client = Client::connect(&server);
    let mut first = first_message("root", "admin");
    first.remove("options");
    let started = client.ok(first);
    let proved = client.ok(last_message("root", "admin", "pw", &text(&started)));
    assert!(!proved.get_bool("done").unwrap() && text(&proved).starts_with("v="));
    client.refused(doc! { "find": "c" }, 13);
    client.ok(doc! { "saslContinue": 1, "conversationId": 1, "payload": payload("") });
    client.refused(doc! { "saslContinue": 1, "conversationId": 1, "payload": payload("") }, 17);
    client.ok(doc! { "find": "c" });
    client.ok(doc! { "logout": 1 });
    client.refused(doc! { "find": "c" }, 13);
}

#[test]
fn users_are_managed_and_survive_a_restart() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    let user = doc! { "createUser": "ada", "$db": "shop", "pwd": "pw", "roles": ["readWrite", { "role": "read", "db": "other" }], "customData": { "n": 1 } };
    root.ok(user.clone());
    let exists = root.refused(user, 51003);
    assert_eq!(message(&exists), "User \"ada@shop\" already exists");
    for (command, code) in [
        (doc! { "createUser": "b", "roles": [] }, 2),
        (doc! { "createUser": "b", "pwd": "x" }, 40414),
        (doc! { "createUser": "b", "pwd": "", "roles": [] }, 2),
        (doc! { "createUser": "", "pwd": "x", "roles": [] }, 2),
        (doc! { "createUser": "b", "pwd": 1, "roles": [] }, 14),
        (doc! { "createUser": "b", "pwd": "x", "roles": ["noRole"] }, 31),
        (doc! { "createUser": "b", "pwd": "x", "roles": ["root"] }, 31),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "mechanisms": [] }, 2),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "mechanisms": ["PLAIN"] }, 2),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "digestPassword": false }, 2),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "noField": 1 }, 40415),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "authenticationRestrictions": [{}] }, 238),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "$db": "$external" }, 2),
        (doc! { "createUser": "b", "pwd": "x", "roles": [], "$db": "a.b" }, 73),
        (doc! { "createRole": "r", "privileges": [], "roles": [] }, 238),
        (doc! { "updateUser": "nobody", "pwd": "x" }, 11),
        (doc! { "updateUser": "ada" }, 2),
        (doc! { "dropUser": "nobody" }, 11),
        (doc! { "grantRolesToUser": "nobody", "roles": ["read"] }, 11),
        (doc! { "revokeRolesFromUser": "ada" }, 40414),
    ] {
        root.refused(command, code);
    }
    // What is stored has MongoDB's form.
    let (stored, _) = batch(&root.ok(doc! { "find": "system.users", "$db": "admin", "filter": { "user": "ada" } }));
    let credentials = stored[0].get_document("credentials").unwrap();
    assert_eq!(stored[0].get_str("_id").unwrap(), "shop.ada");
    assert_eq!(credentials.get_document("SCRAM-SHA-1").unwrap().get_i32("iterationCount").unwrap(), 10_000);
    assert_eq!(credentials.get_document("SCRAM-SHA-256").unwrap().get_i32("iterationCount").unwrap(), 15_000);
    // What is shown of users.
    let users = |reply: &Document| -> Vec<Document> {
        reply.get_array("users").unwrap().iter().map(|user| user.as_document().unwrap().clone()).collect()
    };
    let shown = users(&root.ok(doc! { "usersInfo": "ada", "showPrivileges": true }));
    assert_eq!(shown[0].get_array("mechanisms").unwrap(), &["SCRAM-SHA-1".into(), "SCRAM-SHA-256".into()]);
    assert!(!shown[0].contains_key("credentials"));
    assert_eq!(shown[0].get_array("inheritedPrivileges").unwrap().len(), 2);
    assert!(users(&root.ok(doc! { "usersInfo": "ada", "showCredentials": true }))[0].contains_key("credentials"));
    for (asked, expected) in [
        (doc! { "usersInfo": 1 }, 1),
        (doc! { "usersInfo": 1, "$db": "admin" }, 1),
        (doc! { "usersInfo": { "forAllDBs": true } }, 2),
        (doc! { "usersInfo": { "forAllDBs": true }, "filter": { "customData.n": 1 } }, 1),
        (doc! { "usersInfo": ["ada", { "user": "root", "db": "admin" }, "nobody"] }, 2),
        (doc! { "usersInfo": { "user": "root", "db": "shop" } }, 0),
    ] {
        assert_eq!(users(&root.ok(asked.clone())).len(), expected, "{asked}");
    }
    let guess = doc! { "usersInfo": 1, "filter": { "credentials.SCRAM-SHA-1.salt": { "$gt": "a" } } };
    root.refused(guess, 13);
    let roles = root.ok(doc! { "rolesInfo": 1, "showBuiltinRoles": true, "showPrivileges": true });
    assert_eq!(roles.get_array("roles").unwrap().len(), 5);
    // Roles change at once, for a connection that is open, too.
    let mut ada = enter(&server, "ada", "shop");
    ada.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
    root.ok(doc! { "revokeRolesFromUser": "ada", "roles": ["readWrite"] });
    let refused = ada.refused(doc! { "insert": "c", "documents": [{ "_id": 2 }] }, 13);
    assert!(message(&refused).starts_with("not authorized on shop to execute command { insert: \"c\""), "{refused}");
    root.ok(doc! { "grantRolesToUser": "ada", "roles": ["read"] });
    ada.ok(doc! { "find": "c" });
    // A new password, and keys that are given up.
    root.ok(doc! { "updateUser": "ada", "pwd": "new", "roles": ["dbAdmin"] });
    assert_eq!(log_in(&mut Client::connect(&server), "ada", "shop", "pw").get_i32("code").unwrap(), 18);
    assert_eq!(log_in(&mut Client::connect(&server), "ada", "shop", "new").get_f64("ok").unwrap(), 1.0);
    root.ok(doc! { "updateUser": "ada", "mechanisms": ["SCRAM-SHA-1"] });
    assert_eq!(log_in(&mut Client::connect(&server), "ada", "shop", "new").get_i32("code").unwrap(), 18);
    root.refused(doc! { "updateUser": "ada", "mechanisms": ["SCRAM-SHA-256"] }, 2);
    assert_eq!(root.ok(doc! { "dropAllUsersFromDatabase": 1 }).get_i32("n").unwrap(), 1);
    ada.refused(doc! { "find": "c" }, 13);
    // The users are part of the database.
    let database = server.database().clone();
    drop(server);
    let server = TestServer::with(database, |server| server.authentication()).unwrap();
    enter(&server, "root", "admin").ok(doc! { "find": "c" });
}

#[test]
fn a_connection_says_who_it_is_and_stays_that() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(create("ada", "shop", "read"));
    let mut ada = enter(&server, "ada", "shop");
    let status = ada.ok(doc! { "connectionStatus": 1, "showPrivileges": true });
    let info = status.get_document("authInfo").unwrap();
    assert_eq!(info.get_array("authenticatedUsers").unwrap(), &[doc! { "user": "ada", "db": "shop" }.into()]);
    assert_eq!(info.get_array("authenticatedUserRoles").unwrap(), &[doc! { "role": "read", "db": "shop" }.into()]);
    let privileges = info.get_array("authenticatedUserPrivileges").unwrap();
    let resource = privileges[0].as_document().unwrap().get_document("resource").unwrap();
    assert_eq!(resource, &doc! { "db": "shop", "collection": "" });
    assert_eq!(log_in(&mut ada, "ada", "shop", "pw").get_f64("ok").unwrap(), 1.0);
    assert_eq!(log_in(&mut ada, "root", "admin", "pw").get_i32("code").unwrap(), 17);
    ada.refused(doc! { "insert": "c", "documents": [{}] }, 13);
}

#[test]
fn a_user_reaches_no_more_than_the_roles_say() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(create("ada", "shop", "readWrite"));
    for database in ["shop", "other"] {
        root.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": database });
    }
    root.ok(doc! { "create": "view", "viewOn": "c", "pipeline": [] });
    let mut ada = enter(&server, "ada", "shop");
    ada.ok(doc! { "find": "view" });
    let names = |reply: &Document| -> Vec<String> {
        let databases = reply.get_array("databases").unwrap().iter();
        databases.map(|database| database.as_document().unwrap().get_str("name").unwrap().to_owned()).collect()
    };
    assert_eq!(names(&ada.ok(doc! { "listDatabases": 1, "$db": "admin" })), ["shop"]);
    let none = doc! { "listDatabases": 1, "$db": "admin", "filter": { "name": "other" } };
    assert!(names(&ada.ok(none)).is_empty());
    assert_eq!(names(&root.ok(doc! { "listDatabases": 1, "$db": "admin" })), ["admin", "other", "shop"]);
    let known = |database: &str| {
        doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true, "$db": database }
    };
    assert_eq!(batch(&ada.ok(known("shop"))).0.len(), 2);
    assert_eq!(batch(&ada.ok(known("admin"))).0.len(), 0);
    assert_eq!(batch(&root.ok(known("admin"))).0.len(), 1);
    for command in [
        doc! { "find": "c", "$db": "other" },
        doc! { "find": "system.users", "$db": "admin" },
        doc! { "insert": "system.users", "documents": [{}], "$db": "admin" },
        doc! { "aggregate": "c", "pipeline": [{ "$out": { "db": "other", "coll": "d" } }], "cursor": {} },
        doc! { "renameCollection": "shop.c", "to": "other.d", "$db": "admin" },
        doc! { "listCollections": 1, "$db": "other" },
        doc! { "dropDatabase": 1 },
        doc! { "serverStatus": 1, "$db": "admin" },
        doc! { "shutdown": 1, "$db": "admin" },
        doc! { "createUser": "b", "pwd": "x", "roles": ["read"] },
        doc! { "usersInfo": 1 },
        doc! { "updateUser": "ada", "roles": ["dbOwner"] },
        doc! { "explain": { "find": "c", "$db": "other" } },
    ] {
        ada.refused(command, 13);
    }
    ada.ok(doc! { "usersInfo": "ada" });
    root.refused(doc! { "dropDatabase": 1, "$db": "admin" }, 20);
    root.refused(doc! { "insert": "system.other", "documents": [{}], "$db": "admin" }, 13);
    // Names as they are stored are no way around.
    ada.refused(doc! { "find": "$admin.system.users" }, 73);
    ada.refused(doc! { "aggregate": "c", "pipeline": [{ "$unionWith": "$other.c" }], "cursor": {} }, 73);
}

#[test]
fn what_nests_deep_is_refused_before_its_needs_are_known() {
    let server = start();
    enter(&server, "root", "admin").ok(create("ada", "shop", "read"));
    let mut ada = enter(&server, "ada", "shop");
    for (stage, field) in
        [("$facet", "a"), ("$lookup", "pipeline"), ("$unionWith", "pipeline"), ("$merge", "whenMatched")]
    {
        let stage = nested(&[(3, stage), (4, field), (3, "0")], 90_000);
        for command in [
            rawdoc! { "aggregate": "c", "pipeline": [stage.clone()], "cursor": {}, "$db": "shop" },
            rawdoc! { "explain": { "aggregate": 1, "pipeline": [stage.clone()], "cursor": {} }, "$db": "shop" },
            rawdoc! { "create": "v", "viewOn": "c", "pipeline": [stage.clone()], "$db": "shop" },
            rawdoc! { "ping": 1, "pipeline": [stage.clone()], "$db": "shop" },
        ] {
            let reply = ada.run_raw(&command);
            assert_eq!(reply.get_i32("code").ok(), Some(15), "{reply}");
        }
    }
    // What is refused is shown in the message, but not what is long.
    let scope = nested(&[(3, "a")], 50_000);
    let code = RawJavaScriptCodeWithScope { code: String::new(), scope };
    let reply = ada.run_raw(&rawdoc! { "insert": "c", "documents": [], "comment": code, "$db": "shop" });
    assert_eq!(reply.get_i32("code").ok(), Some(13), "{reply}");
    assert!(message(&reply).contains("comment: ..."), "{reply}");
}

#[test]
fn what_is_not_the_first_field_of_a_stage_shows_nothing() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(create("ada", "shop", "read"));
    root.ok(doc! { "ping": 1, "lsid": session(1) });
    let mut ada = enter(&server, "ada", "shop");
    for (first, second) in
        [("$documents", "$listLocalSessions"), ("$listLocalSessions", "$documents"), ("$documents", "$currentOp")]
    {
        let mut stage = doc! { first: [] };
        stage.insert(second, doc! { "allUsers": true });
        for database in ["shop", "admin"] {
            ada.refused(doc! { "aggregate": 1, "pipeline": [stage.clone()], "cursor": {}, "$db": database }, 40323);
        }
    }
    let all = doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": { "allUsers": true } }], "cursor": {} };
    ada.refused(all.clone(), 13);
    assert!(!batch(&root.ok(all)).0.is_empty());
}

#[test]
fn a_stranger_does_not_move_the_clock() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    let time = |reply: &Document| reply.get_timestamp("operationTime").unwrap();
    let now = time(&root.ok(doc! { "ping": 1 }));
    let hour = bson::Timestamp { time: now.time + 3600, increment: 1 };
    let ping = |time: bson::Timestamp| doc! { "ping": 1, "$clusterTime": { "clusterTime": time } };
    assert!(time(&Client::connect(&server).ok(ping(hour))) < hour);
    let month = bson::Timestamp { time: now.time + 30 * 86_400, increment: 1 };
    assert!(time(&root.ok(ping(month))) < hour);
    assert!(time(&root.ok(ping(hour))) >= hour);
}
