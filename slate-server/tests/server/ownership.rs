//! Cursors, sessions, transactions and operations belong to the user who opened them.

use std::time::Duration;

use bson::{Document, doc};
use slate_core::Database;
use slate_server::TestServer;

use crate::{
    auth::{create, enter, message, start},
    client::{Client, batch, session, within},
};

#[test]
fn one_user_has_three_quarters_of_the_cursors_and_a_login_keeps_its_connection() {
    let server = TestServer::with(Database::open("memory:").unwrap(), |server| {
        server.authentication().max_cursors(4).max_transactions(4).max_connections(3)
    })
    .unwrap();
    Client::connect(&server).ok(create("root", "admin", "root"));
    let mut root = enter(&server, "root", "admin");
    root.ok(create("ada", "shop", "readWrite"));
    let mut ada = enter(&server, "ada", "shop");
    ada.ok(doc! { "insert": "c", "documents": [{}, {}] });
    let find = doc! { "find": "c", "batchSize": 1 };
    let begin = |lsid: u8| within(doc! { "find": "c", "batchSize": 3 }, &session(lsid), 1, true);
    for number in 1..=3 {
        ada.ok(find.clone());
        ada.ok(begin(number));
    }
    let refused = ada.refused(find.clone(), 146);
    assert_eq!(message(&refused), "the user has 3 open cursors, and one user may have 3 of 4");
    let refused = ada.refused(begin(4), 146);
    assert_eq!(message(&refused), "the user has 3 open transactions, and one user may have 3 of 4");
    root.ok(find);
    root.ok(begin(1));
    // Others who have not logged in take the third connection from each other, and not those of users.
    for _ in 0..5 {
        Client::connect(&server).ok(doc! { "hello": 1 });
    }
    let others: Vec<Client> = (0..3).map(|_| Client::connect(&server)).collect();
    ada.ok(doc! { "ping": 1 });
    root.ok(doc! { "ping": 1 });
    drop(others);
}

#[test]
fn cursors_sessions_and_operations_belong_to_their_user() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    for user in ["ada", "bob"] {
        root.ok(create(user, "shop", "readWrite"));
    }
    root.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] });
    let (mut ada, mut bob) = (enter(&server, "ada", "shop"), enter(&server, "bob", "shop"));
    // Cursors.
    let (_, id) = batch(&ada.ok(doc! { "find": "c", "batchSize": 1 }));
    let refused = bob.refused(doc! { "getMore": id, "collection": "c" }, 13);
    assert!(message(&refused).contains("was not created by the authenticated user"), "{refused}");
    root.refused(doc! { "getMore": id, "collection": "c" }, 13);
    bob.refused(doc! { "killCursors": "c", "cursors": [id] }, 13);
    ada.ok(doc! { "getMore": id, "collection": "c", "batchSize": 1 });
    let killed = root.ok(doc! { "killCursors": "c", "cursors": [id] });
    assert_eq!(killed.get_array("cursorsKilled").unwrap().len(), 1);
    // Sessions: the same id is another session for another user.
    let lsid = session(1);
    ada.ok(within(doc! { "insert": "c", "documents": [{ "_id": 4 }] }, &lsid, 1, true));
    bob.refused(within(doc! { "find": "c" }, &lsid, 1, false), 251);
    bob.ok(doc! { "killSessions": [lsid.clone()] });
    bob.ok(doc! { "killSessions": [] });
    bob.refused(doc! { "killAllSessions": [], "$db": "admin" }, 13);
    bob.ok(doc! { "endSessions": [lsid.clone()] });
    let (_, id) = batch(&ada.ok(doc! { "find": "c", "batchSize": 1, "lsid": session(2) }));
    bob.ok(doc! { "endSessions": [session(2)] });
    ada.ok(doc! { "getMore": id, "collection": "c", "lsid": session(2) });
    ada.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false));
    // An administrator ends the sessions of others: as they are shown, and by their users.
    let (shown, mut number) = (
        doc! { "aggregate": 1, "$db": "admin", "pipeline": [{ "$listLocalSessions": { "allUsers": true } }], "cursor": {} },
        1,
    );
    let of_ada = |reply: &Document| {
        let id = |shown: &Document| shown.get_document("_id").unwrap().clone();
        let is_hers = |id: &Document| id.get("id") == lsid.get("id") && id.contains_key("uid");
        batch(reply).0.iter().map(id).find(is_hers).unwrap()
    };
    let whole = of_ada(&root.ok(shown.clone()));
    bob.refused(doc! { "killSessions": [whole.clone()] }, 13);
    for (kill, ends) in [
        (doc! { "killSessions": [lsid.clone()], "$db": "admin" }, false),
        (doc! { "killAllSessions": [{ "user": "bob", "db": "shop" }], "$db": "admin" }, false),
        (doc! { "killSessions": [whole], "$db": "admin" }, true),
        (doc! { "killAllSessions": [{ "user": "ada", "db": "shop" }], "$db": "admin" }, true),
        (doc! { "killAllSessions": [], "$db": "admin" }, true),
    ] {
        number += 1;
        ada.ok(within(doc! { "find": "c" }, &lsid, number, true));
        root.ok(kill);
        let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, number, false);
        if ends { drop(ada.refused(commit, 251)) } else { drop(ada.ok(commit)) }
    }
    let insert = doc! { "insert": "c", "documents": [{ "_id": 5 }], "lsid": session(3), "txnNumber": 1_i64 };
    for client in [&mut ada, &mut bob] {
        let reply = client.ok(insert.clone());
        assert!(!reply.contains_key("writeErrors"));
        client.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 5 }, "limit": 1 }] });
    }
    // Operations.
    let topology = ada.ok(doc! { "hello": 1 }).get_document("topologyVersion").unwrap().clone();
    ada.send(0, doc! { "hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 60_000 });
    let stages = doc! { "aggregate": 1, "$db": "admin", "pipeline": [{ "$currentOp": {} }], "cursor": {} };
    let all =
        doc! { "aggregate": 1, "$db": "admin", "pipeline": [{ "$currentOp": { "allUsers": true } }], "cursor": {} };
    let of_ada = |reply: &Document| {
        let user = doc! { "user": "ada", "db": "shop" }.into();
        batch(reply).0.into_iter().find(|op| op.get_array("effectiveUsers").is_ok_and(|users| users.contains(&user)))
    };
    let running = loop {
        if let Some(running) = of_ada(&root.ok(all.clone())) {
            break running.get_i32("opid").unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(of_ada(&bob.ok(stages.clone())).is_none() && of_ada(&root.ok(stages)).is_none());
    bob.refused(all, 13);
    bob.refused(doc! { "currentOp": 1, "$db": "admin" }, 13);
    let own = bob.ok(doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" });
    assert_eq!(own.get_array("inprog").unwrap().len(), 1);
    let api = doc! { "apiVersion": "1", "apiStrict": false, "apiDeprecationErrors": true };
    let mut own = doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" };
    own.extend(api);
    assert_eq!(bob.ok(own).get_array("inprog").unwrap().len(), 1, "fields of the API are no filter");
    bob.refused(doc! { "killOp": 1, "op": running, "$db": "admin" }, 13);
    root.ok(doc! { "killOp": 1, "op": running, "$db": "admin" });
    // Nobody is counted without a login.
    Client::connect(&server).refused(doc! { "find": "nowhere" }, 13);
    bob.ok(doc! { "find": "somewhere" });
    let top = root.ok(doc! { "top": 1, "$db": "admin" });
    let totals = top.get_document("totals").unwrap();
    assert!(totals.contains_key("shop.somewhere") && !totals.contains_key("shop.nowhere"), "{totals}");
}

#[test]
fn a_stranger_ends_nothing() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(doc! { "insert": "c", "documents": [{}, {}, {}] });
    let find = doc! { "find": "c", "batchSize": 1, "lsid": session(1) };
    let (_, id) = batch(&root.ok(find.clone()));
    let more = |id: i64| doc! { "getMore": id, "collection": "c", "batchSize": 1, "lsid": session(1) };
    Client::connect(&server).ok(doc! { "endSessions": [session(1)], "$db": "admin" });
    root.ok(more(id));
    root.ok(doc! { "endSessions": [session(2), session(1)] });
    root.refused(more(id), 43);
}

#[test]
fn cursors_end_with_the_roles_that_have_opened_them() {
    let server = start();
    let mut root = enter(&server, "root", "admin");
    root.ok(doc! { "insert": "c", "documents": [{}, {}, {}] });
    root.ok(create("ada", "shop", "read"));
    let open = |client: &mut Client| batch(&client.ok(doc! { "find": "c", "batchSize": 1, "lsid": session(1) })).1;
    let more = |id: i64| doc! { "getMore": id, "collection": "c", "batchSize": 1, "lsid": session(1) };
    let mut ada = enter(&server, "ada", "shop");
    // New roles end nothing.
    let id = open(&mut ada);
    root.ok(doc! { "grantRolesToUser": "ada", "roles": ["dbAdmin"] });
    ada.ok(more(id));
    root.ok(doc! { "revokeRolesFromUser": "ada", "roles": ["read"] });
    ada.refused(more(id), 43);
    root.ok(doc! { "updateUser": "ada", "roles": ["read", "dbAdmin"] });
    let id = open(&mut ada);
    root.ok(doc! { "updateUser": "ada", "roles": ["read"] });
    ada.refused(more(id), 43);
    // A user of the same name is another one.
    let id = open(&mut ada);
    root.ok(doc! { "dropUser": "ada" });
    root.ok(create("ada", "shop", "read"));
    enter(&server, "ada", "shop").refused(more(id), 43);
    // A change that was made past the server is seen when the user is read again, here because of another change.
    let mut ada = enter(&server, "ada", "shop");
    let id = open(&mut ada);
    let revoke = doc! { "update": "system.users", "$db": "admin", "updates": [{ "q": { "_id": "shop.ada" }, "u": { "$set": { "roles": [] } } }] };
    server.database().command(&revoke).unwrap();
    root.ok(create("bob", "shop", "read"));
    ada.refused(more(id), 43);
}
