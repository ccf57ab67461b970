//! Arguments, stages and names that a command must not have.

use bson::{Document, doc};
use slate_server::TestServer;

use crate::client::{Client, batch};

#[test]
fn a_client_that_is_strict_about_the_api_gets_only_its_commands() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "ping": 1, "apiVersion": "1", "apiStrict": true, "apiDeprecationErrors": true });
    client.ok(doc! { "distinct": "a", "key": "b", "apiVersion": "1" });
    client.refused(doc! { "distinct": "a", "key": "b", "apiVersion": "1", "apiStrict": true }, 323);
    client.refused(doc! { "buildInfo": 1, "apiVersion": "1", "apiStrict": true }, 323);
    let list = doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }], "cursor": {}, "apiVersion": "1", "apiStrict": true };
    client.refused(list, 323);
    client.refused(doc! { "ping": 1, "apiVersion": "2" }, 322);
    client.refused(doc! { "ping": 1, "apiStrict": true }, 4_886_600);
    client.refused(doc! { "bogus": 1, "apiVersion": "1", "apiStrict": true }, 59);
    let mut refused = |mut command: Document| {
        command.extend(doc! { "apiVersion": "1", "apiStrict": true });
        client.refused(command, 323);
    };
    for argument in ["min", "max", "returnKey", "noCursorTimeout", "showRecordId", "tailable", "readOnce"] {
        refused(doc! { "find": "a", argument: false });
    }
    refused(doc! { "aggregate": "a", "pipeline": [], "explain": true });
    let statistics = doc! { "$indexStats": {} };
    for stage in [
        doc! { "$collStats": { "count": {}, "storageStats": {} } },
        doc! { "$lookup": { "from": "a", "pipeline": [statistics.clone()], "as": "x" } },
        doc! { "$unionWith": { "coll": "a", "pipeline": [statistics.clone()] } },
    ] {
        refused(doc! { "aggregate": "a", "pipeline": [stage], "cursor": {} });
    }
    refused(doc! { "explain": { "aggregate": "a", "pipeline": [statistics.clone()], "cursor": {} } });
    refused(doc! { "explain": { "find": "a", "min": {} } });
    refused(doc! { "create": "v", "viewOn": "a", "pipeline": [statistics] });
    let count = doc! { "aggregate": "a", "pipeline": [{ "$collStats": { "count": {} } }], "cursor": {}, "apiVersion": "1", "apiStrict": true };
    client.ok(doc! { "create": "a" });
    client.ok(count);
}

#[test]
fn generic_arguments_are_checked() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    let time = |time: u32| bson::Timestamp { time, increment: 1 };
    let concern = |concern: Document| ("readConcern", concern);
    for ((name, value), code) in [
        (concern(doc! { "afterClusterTime": time(u32::MAX) }), 72),
        (concern(doc! { "level": "snapshot", "atClusterTime": time(u32::MAX) }), 72),
        (concern(doc! { "level": "majority", "atClusterTime": time(1) }), 72),
        (concern(doc! { "atClusterTime": time(1) }), 72),
        (concern(doc! { "level": "snapshot", "atClusterTime": time(1), "afterClusterTime": time(1) }), 72),
        (concern(doc! { "level": "linearizable", "afterClusterTime": time(1) }), 72),
        (concern(doc! { "afterClusterTime": bson::Timestamp { time: 0, increment: 0 } }), 72),
        (concern(doc! { "level": "local", "afterClusterTime": 5 }), 14),
        (concern(doc! { "level": 5 }), 14),
        (concern(doc! { "level": "local", "provenance": "bad" }), 2),
        (concern(doc! { "nothing": 1 }), 40415),
        (("$readPreference", doc! { "mode": "bad" }), 2),
        (("$readPreference", doc! { "mode": "primary", "tags": [{ "a": "b" }] }), 2),
        (("$readPreference", doc! { "mode": "primary", "maxStalenessSeconds": 100 }), 2),
        (("$readPreference", doc! { "mode": "secondary", "maxStalenessSeconds": 1 }), 160),
        (("$readPreference", doc! { "mode": "secondary", "tags": "x" }), 14),
        (("$clusterTime", doc! { "clusterTime": 5 }), 14),
        (("lsid", doc! { "id": bson::Uuid::new(), "foo": 1 }), 40415),
    ] {
        // With and without the way of a lookup by _id.
        for filter in [doc! {}, doc! { "_id": 1 }] {
            client.refused(doc! { "find": "a", "filter": filter, name: value.clone() }, code);
        }
    }
    let fine = doc! { "mode": "secondary", "tags": [{ "a": "b" }], "maxStalenessSeconds": 100 };
    client.ok(doc! { "find": "a", "$readPreference": fine, "clientOperationKey": bson::Uuid::new() });
    client.refused(doc! { "insert": "a", "documents": [{}], "writeConcern": { "fsync": true, "j": true } }, 9);
    let read = doc! { "aggregate": "a", "pipeline": [], "cursor": {}, "writeConcern": { "w": 1 } };
    client.ok(read.clone());
    let mut explained = read;
    explained.insert("explain", true);
    client.refused(explained, 9);
    for command in [
        doc! { "connectionStatus": 1, "foo": 1 },
        doc! { "profile": 0, "unknown": {} },
        doc! { "usersInfo": "u", "foo": true },
    ] {
        client.refused(command, 40415);
    }
    client.refused(doc! { "usersInfo": "u", "showPrivileges": "x" }, 14);
    client.refused(doc! { "usersInfo": 1, "showPrivileges": true }, 20);
    client.refused(doc! { "usersInfo": { "forAllDBs": true }, "showAuthenticationRestrictions": true }, 20);
    client.ok(doc! { "createUser": "u", "pwd": "p", "roles": [], "customData": { "a": 1 } });
    client.refused(doc! { "grantRolesToUser": "u", "roles": [] }, 2);
    let shown =
        |reply: Document| reply.get_array("users").unwrap()[0].as_document().unwrap().contains_key("customData");
    assert!(shown(client.ok(doc! { "usersInfo": "u" })));
    assert!(!shown(client.ok(doc! { "usersInfo": "u", "showCustomData": false })));
    let details = doc! { "getParameter": { "showDetails": true }, "featureCompatibilityVersion": 1, "$db": "admin" };
    let version = client.ok(details).get_document("featureCompatibilityVersion").unwrap().clone();
    assert_eq!(version.get_document("value").unwrap(), &doc! { "version": "8.2" });
    assert!(!version.get_bool("settableAtRuntime").unwrap());
    client.refused(doc! { "dbStats": 1, "scale": (1_i64 << 50) + 1 }, 2);
}

#[test]
fn commands_of_mongodb_that_are_not_offered_fail_by_name() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    for name in ["getDefaultRWConcern", "setFeatureCompatibilityVersion", "mapReduce", "shardCollection"] {
        client.refused(doc! { name: 1, "$db": "admin" }, 238);
    }
    for explained in [
        doc! { "insert": "a", "documents": [{}] },
        doc! { "ping": 1 },
        doc! { "createUser": "u" },
        doc! { "getMore": 1 },
    ] {
        client.refused(doc! { "explain": explained }, 20);
    }
    client.refused(doc! { "explain": { "nothing": 1 } }, 59);
}

#[test]
fn a_reserved_namespace_fails_its_operations_only() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let bulk = doc! {
        "bulkWrite": 1,
        "ops": [{ "insert": 1, "document": {} }, { "insert": 0, "document": {} }],
        "nsInfo": [{ "ns": "shop.a" }, { "ns": "shop.system.x" }],
        "ordered": false,
        "$db": "admin",
    };
    let reply = client.ok(bulk);
    let (entries, _) = batch(&reply);
    let counts = (reply.get_i32("nErrors").unwrap(), reply.get_i32("nInserted").unwrap());
    assert_eq!((entries[0].get_i32("code").unwrap(), counts), (73, (1, 1)), "{reply}");
}
