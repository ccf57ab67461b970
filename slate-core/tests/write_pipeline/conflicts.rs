//! Conflicts that a store finds before the commit.

use std::sync::Arc;

use bson::{Document, doc};
use slate_core::{Database, ErrorKind};

use crate::counting::CountingStore;

#[test]
fn a_statement_that_conflicts_in_a_transaction_fails_the_whole_command() {
    let store = CountingStore::default();
    let counts = Arc::clone(&store.counts);
    let db = Database::with_store(store).unwrap();
    db.collection("c").insert_one(&doc! { "_id": 0 }).unwrap();
    counts.conflict_on(b"in vain");
    let (fine, lost) = (doc! { "_id": 1 }, doc! { "_id": 2, "why": "in vain" });
    let set = |id: i32, change: &Document| doc! { "q": { "_id": id }, "u": { "$set": change } };
    let insert = |document: &Document| doc! { "insert": 0, "document": document };
    for command in [
        doc! { "update": "c", "ordered": false, "updates": [set(0, &doc! { "why": "in vain" }), set(0, &doc! { "n": 1 })] },
        // The reply says how the first operation went; the others are behind its batch.
        doc! {
            "bulkWrite": 1, "$db": "admin", "nsInfo": [{ "ns": "test.c" }], "cursor": { "batchSize": 1 }, "ordered": false,
            "ops": [insert(&fine), insert(&lost), insert(&doc! { "_id": 3 })],
        },
    ] {
        let transaction = db.begin().unwrap();
        let commands = db.commands();
        let error = commands.in_transaction(&transaction).run(command.clone()).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, 112), "{command}");
        assert_eq!(commands.open_cursors(), 0);
    }
}
