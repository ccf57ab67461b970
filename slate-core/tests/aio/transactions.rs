//! Transactions: `begin`, which takes no thread between calls, and `transact`.

use super::*;

#[test]
fn a_transaction_reads_its_own_writes_and_is_committed_or_rolled_back() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        let tx = db.begin().await.unwrap();
        let within = tx.collection("documents");
        fill(&within, 3_000).await;
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 0);
        let mut rows = within.find(doc! {}).sort(doc! { "_id": 1 }).run().await.unwrap();
        let mut read = 0;
        while let Some(row) = rows.next().await {
            let id = row.unwrap().get_i32("_id").unwrap();
            if id < 10 {
                within.update_one(doc! { "_id": id }, doc! { "$set": { "n": 1 } }).run().await.unwrap();
            }
            read += 1;
        }
        assert_eq!(read, 3_000);
        tx.commit().await.unwrap();
        assert_eq!(within.count_documents(doc! {}).run().await.unwrap_err().kind(), ErrorKind::TransactionOver);
        assert_eq!(documents.count_documents(doc! { "n": 1 }).run().await.unwrap(), 10);

        let tx = db.begin().await.unwrap();
        tx.collection::<RawDocumentBuf>("documents").delete_many(doc! {}).run().await.unwrap();
        tx.rollback().await.unwrap();
        let tx = db.begin().await.unwrap();
        let within = tx.collection::<RawDocumentBuf>("documents");
        within.delete_many(doc! {}).run().await.unwrap();
        drop(tx);
        assert_eq!(within.delete_many(doc! {}).run().await.unwrap_err().kind(), ErrorKind::TransactionOver);
        documents.insert_one(&rawdoc! { "_id": -1 }).await.unwrap();
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 3_001);
    });
}

#[test]
fn rows_read_by_a_transaction_remain_after_its_end() {
    on_one_thread(|db, _| async move {
        fill(&db.collection("documents"), 100).await;
        let tx = db.begin().await.unwrap();
        let mut rows = tx.collection::<RawDocumentBuf>("documents").find(doc! {}).run().await.unwrap();
        tx.commit().await.unwrap();
        let mut read = 0;
        while let Some(row) = rows.next().await {
            row.unwrap();
            read += 1;
        }
        assert_eq!(read, 100);
    });
}

#[test]
fn a_dropped_transaction_ends_and_admits_the_next_writer() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 20_000).await;
        let tx = db.begin().await.unwrap();
        let within = tx.collection::<RawDocumentBuf>("documents");
        let mut write = Box::pin(within.update_many(doc! {}, doc! { "$set": { "n": 1 } }).run());
        let _ = begin(write.as_mut()).await;
        drop(write);
        drop(tx);
        documents.insert_one(&rawdoc! { "_id": -1 }).await.unwrap();
        assert_eq!(documents.count_documents(doc! { "n": 1 }).run().await.unwrap(), 0);
    });
}

#[test]
fn a_task_that_has_dropped_a_commit_can_write_again() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        let rounds = 50_i64;
        documents.create().await.unwrap();
        for n in 0..rounds {
            let tx = db.begin().await.unwrap();
            tx.collection("documents").insert_one(&rawdoc! { "_id": 2 * n }).await.unwrap();
            let mut commit = Box::pin(tx.commit());
            let _ = begin(commit.as_mut()).await;
            drop(commit);
            documents.insert_one(&rawdoc! { "_id": 2 * n + 1 }).await.unwrap();
        }
        // A commit that was polled is executed, the last one perhaps later.
        let mut count = 0;
        for _ in 0..1_000 {
            count = documents.count_documents(doc! {}).run().await.unwrap();
            if count == 2 * rounds.unsigned_abs() {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(count, 2 * rounds.unsigned_abs());
    });
}

#[test]
fn a_dropped_call_in_a_transaction_is_executed_in_order() {
    on_one_thread(|db, _| async move {
        let tx = db.begin().await.unwrap();
        let within: Documents = tx.collection("documents");
        fill(&within, 2_000).await;
        let mut write = Box::pin(within.update_many(doc! {}, doc! { "$set": { "n": 1 } }).run());
        let _ = begin(write.as_mut()).await;
        drop(write);
        assert_eq!(within.count_documents(doc! { "n": 1 }).run().await.unwrap(), 2_000);
        let mut commit = Box::pin(tx.commit());
        let _ = begin(commit.as_mut()).await;
        drop(commit);
        let documents: Documents = db.collection("documents");
        let deadline = Instant::now() + Duration::from_secs(30);
        while documents.count_documents(doc! { "n": 1 }).run().await.unwrap() != 2_000 {
            assert!(Instant::now() < deadline, "a commit that was polled is executed");
            sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn transactions_of_concurrent_tasks_are_separate() {
    // Threads of the pool execute calls of different tasks in turn while transactions are open.
    on_two_threads(40, |db, _| async move {
        let documents: Documents = db.collection("documents");
        documents.insert_one(&rawdoc! { "_id": 0, "n": 0 }).await.unwrap();
        let tasks: Vec<_> = (1..=16)
            .map(|task| {
                let (db, documents) = (db.clone(), documents.clone());
                tokio::spawn(async move {
                    loop {
                        let tx = db.begin().await?;
                        let within = tx.collection::<RawDocumentBuf>("documents");
                        let counted = async {
                            within.update_one(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }).run().await?;
                            documents.count_documents(doc! {}).run().await
                        };
                        let outcome = match counted.await {
                            Ok(_) => tx.commit().await,
                            Err(error) => Err(error),
                        };
                        match outcome {
                            Err(error) if error.is_retryable() => tokio::task::yield_now().await,
                            outcome => break outcome?,
                        }
                    }
                    documents.insert_one(&rawdoc! { "_id": task }).await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(documents.find_by_id(0).await.unwrap().unwrap().get_i32("n").unwrap(), 16);
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 17);
    });
}

#[test]
fn many_waiting_writers_do_not_block_the_open_transaction() {
    on_two_threads(64, |db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 10).await;
        let tx = db.begin().await.unwrap();
        tx.collection("documents").insert_one(&rawdoc! { "_id": -1 }).await.unwrap();
        let crowd: Vec<_> = (100..700)
            .map(|id| {
                let documents = documents.clone();
                tokio::spawn(async move { documents.insert_one(&rawdoc! { "_id": id }).await })
            })
            .collect();
        sleep(Duration::from_millis(50)).await;
        for id in 0..10 {
            assert!(documents.find_by_id(id).await.unwrap().is_some());
        }
        tx.commit().await.unwrap();
        for insertion in crowd {
            insertion.await.unwrap().unwrap();
        }
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 611);
    });
}

#[test]
fn transact_retries_conflicts_and_rolls_back_errors() {
    on_two_threads(512, |db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 1).await;
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                tokio::spawn(db.transact(|tx| {
                    let documents = tx.collection::<RawDocumentBuf>("documents");
                    let n = documents.find_by_id(0)?.unwrap().get_i32("n").unwrap();
                    documents.update_one(doc! { "_id": 0 }, doc! { "$set": { "n": n + 1 } }).run()
                }))
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let refused = db
            .transact(|tx| {
                let documents = tx.collection::<RawDocumentBuf>("documents");
                documents.delete_many(doc! {}).run()?;
                documents.find(doc! { "$no": 1 }).count().run()
            })
            .await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(documents.find_by_id(0).await.unwrap().unwrap().get_i32("n").unwrap(), 20);

        let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
        let count = db.transact_with(&serializable, |tx| {
            tx.collection::<RawDocumentBuf>("documents").count_documents(doc! {}).run()
        });
        assert_eq!(count.await.unwrap(), 1);
    });
}

#[test]
fn a_dropped_begin_leaves_no_transaction_open() {
    on_one_thread(|db, _| async move {
        let open = tokio::spawn(db.begin()).await.unwrap().unwrap();
        let mut next = Box::pin(db.begin());
        let _ = begin(next.as_mut()).await;
        sleep(Duration::from_millis(5)).await;
        drop(next);
        open.commit().await.unwrap();
        db.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
    });
}

#[test]
fn a_panic_in_the_callers_code_unwinds_its_task_and_leaves_nothing_open() {
    on_two_threads(4, |db, _| async move {
        let within = db.clone();
        let task = tokio::spawn(async move {
            within
                .transact(|tx| -> slate_core::Result<()> {
                    tx.collection("documents").insert_one(&rawdoc! { "_id": 1 })?;
                    panic!("the caller's own");
                })
                .await
        });
        assert!(task.await.unwrap_err().is_panic());
        let documents: Documents = db.collection("documents");
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 0);
        documents.insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
    });
}

#[track_caller]
fn is_refused<R>(result: slate_core::Result<R>) {
    let error = result.err().expect("it was executed outside of the transaction");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Reentrant, false), "{error}");
}

/// Writes outside its transaction in every way.
async fn write_outside(db: Database) {
    let documents: Documents = db.collection("documents");
    let tx = db.begin().await.unwrap();
    tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
    is_refused(documents.insert_one(&rawdoc! { "_id": 2 }).await);
    is_refused(documents.insert_many(&[rawdoc! { "_id": 2 }]).await);
    is_refused(documents.delete_many(doc! {}).await);
    is_refused(documents.create_index(Index::on(doc! { "a": 1 })).await);
    is_refused(documents.drop().await);
    is_refused(db.transact(|tx| tx.collection("documents").insert_one(&rawdoc! { "_id": 2 })).await);
    is_refused(db.run_blocking(|db| db.collection("documents").insert_one(&rawdoc! { "_id": 2 })).await);
    // Reads are allowed, and so are the transaction's own writes.
    assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 0);
    tx.collection("documents").insert_one(&rawdoc! { "_id": 3 }).await.unwrap();
    tx.commit().await.unwrap();
    documents.insert_one(&rawdoc! { "_id": 4 }).await.unwrap();
    drop(db.begin().await.unwrap());
    documents.insert_one(&rawdoc! { "_id": 5 }).await.unwrap();
    assert_eq!(documents.delete_many(doc! {}).await.unwrap(), 4);
}

#[test]
fn a_write_of_the_same_task_outside_its_transaction_fails_at_once_on_every_store() {
    on_two_threads(4, |db, _| async move {
        tokio::spawn(write_outside(db.clone())).await.unwrap();
        // The future of `block_on` is no task of the runtime.
        write_outside(db).await;
    });
    on_one_thread(|db, _| write_outside(db));
}

#[test]
fn a_write_within_the_closure_of_transact_fails_at_once_and_one_beside_it_does_not() {
    on_two_threads(4, |db, _| async move {
        let (within, runtime) = (db.clone(), tokio::runtime::Handle::current());
        let outcome = db.transact(move |tx| -> slate_core::Result<()> {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 })?;
            is_refused(within.as_blocking().collection("documents").insert_one(&rawdoc! { "_id": 2 }));
            is_refused(runtime.block_on(within.collection("documents").insert_one(&rawdoc! { "_id": 2 })));
            Ok(())
        });
        let documents: Documents = db.collection("documents");
        // Both are polled by one task; the closure runs on a thread of the pool.
        let (outcome, inserted) = tokio::join!(outcome, documents.insert_one(&rawdoc! { "_id": 3 }));
        outcome.unwrap();
        inserted.unwrap();
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 2);
    });
}

#[test]
fn transact_returns_the_callers_own_error() {
    #[derive(Debug)]
    enum Failure {
        Refused(&'static str),
        Database(slate_core::Error),
    }
    impl From<slate_core::Error> for Failure {
        fn from(error: slate_core::Error) -> Self {
            Self::Database(error)
        }
    }
    on_one_thread(|db, _| async move {
        let refused = db.transact(|tx| -> Result<(), Failure> {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 })?;
            Err(Failure::Refused("no"))
        });
        assert!(matches!(refused.await, Err(Failure::Refused("no"))));
        let twice = db.transact(|tx| -> Result<(), Failure> {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 })?;
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 })?;
            Ok(())
        });
        let Err(Failure::Database(error)) = twice.await else { panic!("it is inserted twice") };
        assert_eq!(error.kind(), ErrorKind::DuplicateKey);
        assert_eq!(db.collection::<RawDocumentBuf>("documents").count_documents(doc! {}).await.unwrap(), 0);
    });
}

/// With one thread for all tasks and two that may block.
#[test]
fn ten_thousand_open_transactions_take_no_thread_and_move_between_tasks() {
    const TRANSACTIONS: i32 = 10_000;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(2).build().unwrap().block_on(async {
        let db = Database::open("memory:").await.unwrap();
        db.collection::<RawDocumentBuf>("documents").create().await.unwrap();
        let mut open = Vec::new();
        for id in 0..TRANSACTIONS {
            let tx = db.begin().await.unwrap();
            tx.collection("documents").insert_one(&rawdoc! { "_id": id }).await.unwrap();
            open.push(tx);
        }
        // Another task can write while they are open.
        let other = db.collection::<RawDocumentBuf>("documents");
        tokio::spawn(async move { other.insert_one(&rawdoc! { "_id": -1 }).await }).await.unwrap().unwrap();
        let commits: Vec<_> = open
            .into_iter()
            .map(|tx| {
                tokio::spawn(async move {
                    let documents = tx.collection::<RawDocumentBuf>("documents");
                    assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 1);
                    tx.commit().await
                })
            })
            .collect();
        for commit in commits {
            commit.await.unwrap().unwrap();
        }
        let documents = db.collection::<RawDocumentBuf>("documents");
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), u64::try_from(TRANSACTIONS).unwrap() + 1);
    });
}
