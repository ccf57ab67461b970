//! Memory of what commands hold beside rows: lists whose cursors wait, and the errors of refused statements.

use allocation_counter::measure;
use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Commands, Database, Index};

fn run(commands: &Commands, command: Document) -> Document {
    Document::try_from(&commands.run(command).unwrap()).unwrap()
}

fn batch(commands: &Commands, command: Document, name: &str) -> (Vec<Bson>, i64) {
    let reply = run(commands, command);
    let cursor = reply.get_document("cursor").unwrap();
    (cursor.get_array(name).unwrap().clone(), cursor.get_i64("id").unwrap())
}

#[test]
fn lists_whose_cursors_wait_hold_a_limited_memory_and_go_on() {
    const PARKED: i64 = 64 << 20;
    let db = Database::open("memory:").unwrap();
    let commands = db.commands();
    for number in 0..20 {
        let long = doc! { "$match": { "text": { "$ne": "x".repeat(100_000) } } };
        run(&commands, doc! { "create": format!("view{number:02}"), "viewOn": "c", "pipeline": [long] });
    }
    let (all, _) = batch(&commands, doc! { "listCollections": 1 }, "firstBatch");
    assert_eq!(all.len(), 20);
    let mut cursors = Vec::new();
    let held = measure(|| {
        for size in 0..60 {
            let list = doc! { "listCollections": 1, "cursor": { "batchSize": size % 5 } };
            let (first, id) = batch(&commands, list, "firstBatch");
            cursors.push((first.len(), id));
        }
    });
    // Together they list twice as much.
    assert!(held.bytes_current > PARKED / 2 && held.bytes_current < PARKED + (4 << 20), "{held:?}");
    for (first, id) in cursors {
        let more = |size: i32| doc! { "getMore": id, "collection": "$cmd.listCollections", "batchSize": size };
        let (second, same) = batch(&commands, more(3), "nextBatch");
        assert_eq!(same, id);
        let (third, last) = batch(&commands, more(100), "nextBatch");
        assert!(last == 0 && [second, third].concat() == all[first..]);
    }
}

#[test]
fn the_errors_of_refused_statements_are_bounded_however_long_the_values_are() {
    const STATEMENTS: usize = 270;
    let db = Database::open("memory:").unwrap();
    let long = "x".repeat(40_000);
    let items = db.collection::<RawDocumentBuf>("c");
    // The error of an index with a collation shows the strings of the document.
    let index = Index::on(doc! { "u": 1 }).unique().collation(doc! { "locale": "en", "strength": 2 });
    items.create_index(index).run().unwrap();
    let commands = db.commands();
    run(
        &commands,
        doc! { "insert": "c", "documents": [{ "_id": 0, "u": &long }, { "_id": 1, "u": 1, "long": &long }] },
    );
    let update = doc! { "q": { "_id": 1 }, "u": [{ "$set": { "u": "$long" } }] };
    let command = doc! { "update": "c", "ordered": false, "updates": vec![update; STATEMENTS] };
    let mut reply = Document::new();
    let taken = measure(|| reply = run(&commands, command));
    let errors = reply.get_array("writeErrors").unwrap();
    assert_eq!(errors.len(), STATEMENTS);
    for (nth, error) in errors.iter().enumerate() {
        let error = error.as_document().unwrap();
        let message = error.get_str("errmsg").unwrap();
        assert_eq!(error.get_i32("code").unwrap(), 11_000);
        assert!(message.starts_with("E11000 duplicate key error") && message.ends_with('…'), "{nth}");
        assert!(message.len() < if nth < 256 { 20_000 } else { 600 }, "{nth}: {} bytes", message.len());
        assert!(!error.contains_key("keyValue"), "{nth}");
    }
    // The errors, the reply, the decoded reply, and the document with its changes. With all values it would be more than twice as much.
    assert!(taken.bytes_max < 24 << 20, "{taken:?}");
}
