//! Commands of the async API: what the awaiting task executes, and what is never executed twice.

use std::sync::Arc;

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{
    Activity, CancelToken, Error,
    aio::{Commands, RunningCommand},
};

use crate::on_one_thread;

async fn run(commands: &Commands, command: Document) -> Document {
    let name = format!("{command}");
    let reply = commands.run(command).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    Document::try_from(&reply).unwrap()
}

/// Increments a counter by each kind of command, so that a command that was executed in part and repeated would show.
#[test]
fn a_write_command_is_executed_once_however_many_statements_it_has() {
    on_one_thread(|db, _| async move {
        let commands = db.commands();
        run(&commands, doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }] }).await;
        let increment = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } };
        for statements in [1, 2, 300] {
            let updates = vec![increment.clone(); statements];
            run(&commands, doc! { "update": "c", "updates": updates }).await;
        }
        run(&commands, doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } } }).await;
        let found = run(&commands, doc! { "find": "c" }).await;
        let found = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(found, &[doc! { "_id": 1, "n": 304 }.into()]);
    });
}

#[test]
fn a_cursor_that_the_awaiting_task_has_opened_continues_on_the_pool() {
    on_one_thread(|db, _| async move {
        let documents: Vec<Document> = (0..5_000).map(|n| doc! { "_id": n }).collect();
        db.collection("c").insert_many(&documents).run().await.unwrap();
        let commands = db.commands();
        let mut reply = run(&commands, doc! { "find": "c", "batchSize": 50 }).await;
        let mut documents = 50;
        loop {
            let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
            if id == 0 {
                break;
            }
            reply = run(&commands, doc! { "getMore": id, "collection": "c", "batchSize": 1_000 }).await;
            documents += reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap().len();
        }
        assert_eq!((documents, commands.as_blocking().open_cursors()), (5_000, 0));
    });
}

#[test]
fn commands_of_a_transaction_are_committed_with_it() {
    on_one_thread(|db, _| async move {
        let (commands, transaction) = (db.commands(), db.begin().await.unwrap());
        let within = commands.in_transaction(&transaction);
        run(&within, doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        assert_eq!(run(&commands, doc! { "count": "c" }).await.get_i32("n").unwrap(), 0);
        assert_eq!(run(&within, doc! { "count": "c" }).await.get_i32("n").unwrap(), 1);
        transaction.commit().await.unwrap();
        assert_eq!(run(&commands, doc! { "count": "c" }).await.get_i32("n").unwrap(), 1);
        assert!(within.run(doc! { "count": "c" }).await.is_err());
    });
}

#[test]
fn a_token_cancels_a_command_wherever_it_is_executed() {
    on_one_thread(|db, _| async move {
        let (commands, token) = (db.commands(), CancelToken::new());
        token.cancel();
        let one = rawdoc! { "q": {}, "u": { "$inc": { "n": 1 } } };
        let two = rawdoc! { "update": "c", "updates": [one.clone(), one] };
        for command in [rawdoc! { "find": "c" }, rawdoc! { "find": "c", "filter": { "_id": 1 } }, two] {
            let activity = Activity::default();
            let running = RunningCommand::new(&token, &activity);
            let error = commands.run_shared(&Arc::new(command.clone()), running).await.unwrap_err();
            assert_eq!(error.code(), 11_601, "{command:?}");
        }
    });
}

/// The first of two commands creates its collection, so that a thread that may wait repeats both.
#[test]
fn a_command_and_what_follows_it_are_one_transaction() {
    on_one_thread(|db, _| async move {
        let (commands, token, activity) = (db.commands(), CancelToken::new(), Activity::default());
        let running = RunningCommand::new(&token, &activity);
        let insert = |id: i32| Arc::new(rawdoc! { "insert": "c", "documents": [{ "_id": id }] });
        let log = |within: &slate_core::Commands, reply: RawDocumentBuf| {
            let inserted = reply.get_i32("n").unwrap();
            within.run(rawdoc! { "update": "log", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": inserted } }, "upsert": true }] })
        };
        for id in 1..=3 {
            commands.run_then(&insert(id), running, log, Error::is_retryable).await.unwrap();
        }
        let fails = move |within: &slate_core::Commands, reply| {
            log(within, reply)?;
            Err::<(), Error>(within.run(rawdoc! { "nothing": 1 }).unwrap_err())
        };
        assert_eq!(commands.run_then(&insert(4), running, fails, Error::is_retryable).await.unwrap_err().code(), 59);
        assert_eq!(run(&commands, doc! { "count": "c" }).await.get_i32("n").unwrap(), 3);
        let logged = run(&commands, doc! { "distinct": "log", "key": "n" }).await;
        assert_eq!(logged.get_array("values").unwrap(), &[3.into()]);
    });
}
