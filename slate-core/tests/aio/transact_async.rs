//! `transact_async`: a transaction whose closure is async.

use super::*;
use slate_core::aio::Transaction;

#[derive(Debug)]
enum Failure {
    Refused(i32),
    Database(slate_core::Error),
}

impl From<slate_core::Error> for Failure {
    fn from(error: slate_core::Error) -> Self {
        Self::Database(error)
    }
}

/// A part of a transaction in a function of its own.
async fn increment(tx: &Transaction, id: i32) -> Result<i32, Failure> {
    let documents = tx.collection::<RawDocumentBuf>("documents");
    let n = documents.find_by_id(id).await?.ok_or(Failure::Refused(id))?.get_i32("n").unwrap();
    tokio::task::yield_now().await;
    documents.update_one(doc! { "_id": id }, doc! { "$set": { "n": n + 1 } }).await?;
    Ok(n + 1)
}

#[test]
fn conflicting_tasks_are_retried_until_each_has_committed() {
    on_two_threads(512, |db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 1).await;
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    let id = 0;
                    // Borrows from the task.
                    db.transact_async(async |tx| increment(&tx, id).await).await
                })
            })
            .collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap().unwrap());
        }
        results.sort_unstable();
        assert_eq!(results, (1..=20).collect::<Vec<_>>());
        assert_eq!(documents.find_by_id(0).await.unwrap().unwrap().get_i32("n").unwrap(), 20);
    });
}

#[test]
fn an_error_of_the_closure_rolls_back_and_is_the_callers_own() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 1).await;
        let refused = db.transact_async(async |tx| {
            increment(&tx, 0).await?;
            increment(&tx, 7).await
        });
        assert!(matches!(refused.await, Err(Failure::Refused(7))));
        assert_eq!(documents.find_by_id(0).await.unwrap().unwrap().get_i32("n").unwrap(), 0);
        // The rollback is over: the next write need not wait for it.
        documents.insert_one(&rawdoc! { "_id": 1 }).await.unwrap();

        let invalid = db.transact_async(async |tx| -> Result<(), Failure> {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 2 }).await?;
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await?;
            Ok(())
        });
        let Err(Failure::Database(error)) = invalid.await else { panic!("the key exists") };
        assert_eq!(error.kind(), ErrorKind::DuplicateKey);
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 2);
    });
}

#[test]
fn the_options_limit_attempts_and_time() {
    on_two_threads(512, |db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 1).await;
        let late = TransactionOptions::new().deadline(Duration::from_millis(20));
        let begun = Instant::now();
        let expired = db.transact_async_with(&late, async |tx| {
            sleep(Duration::from_millis(40)).await;
            increment(&tx, 0).await
        });
        let Err(Failure::Database(error)) = expired.await else { panic!("the time is up") };
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(begun.elapsed() < Duration::from_secs(2));

        let cancel = CancelToken::new();
        cancel.cancel();
        let cancelled =
            db.transact_async_with(&TransactionOptions::new().cancel(cancel), async |tx| increment(&tx, 0).await);
        assert!(matches!(cancelled.await, Err(Failure::Database(error)) if error.kind() == ErrorKind::Interrupted));
        assert_eq!(documents.find_by_id(0).await.unwrap().unwrap().get_i32("n").unwrap(), 0);

        // Another task writes between the read and the write of each attempt.
        let attempts = AtomicUsize::new(0);
        let twice = TransactionOptions::new().retries(1);
        let refused = db.transact_async_with(&twice, async |tx| {
            attempts.fetch_add(1, Ordering::Relaxed);
            let n = increment(&tx, 0).await?;
            let other = documents.clone();
            let change = other.update_one(doc! { "_id": 0 }, doc! { "$inc": { "other": 1 } });
            tokio::spawn(async move { change.await }).await.unwrap()?;
            Ok::<_, Failure>(n)
        });
        let Err(Failure::Database(error)) = refused.await else { panic!("each attempt conflicts") };
        assert_eq!((error.kind(), attempts.load(Ordering::Relaxed)), (ErrorKind::Conflict, 2));
    });
}

#[test]
fn a_closure_that_keeps_its_transaction_commits_nothing() {
    on_one_thread(|db, _| async move {
        let kept = std::sync::Mutex::new(None);
        let refused = db.transact_async(async |tx| {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await?;
            *kept.lock().unwrap() = Some(Arc::clone(&tx));
            Ok::<_, slate_core::Error>(())
        });
        assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Invalid);
        drop(kept);
        let documents: Documents = db.collection("documents");
        documents.insert_one(&rawdoc! { "_id": 2 }).await.unwrap();
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 1);
    });
}

#[test]
fn a_dropped_future_rolls_back() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        let mut written = Box::pin(db.transact_async(async |tx| {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await?;
            sleep(Duration::from_secs(3_600)).await;
            Ok::<_, slate_core::Error>(())
        }));
        let _ = tokio::time::timeout(Duration::from_millis(30), &mut written).await.unwrap_err();
        drop(written);
        documents.insert_one(&rawdoc! { "_id": 2 }).await.unwrap();
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 1);
    });
}

#[test]
fn a_write_beside_the_transaction_fails_at_once() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        let outside = |result: slate_core::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Reentrant);
        let outcome = db.transact_async(async |tx| {
            tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await?;
            outside(documents.insert_one(&rawdoc! { "_id": 2 }).await.map(drop));
            outside(db.transact_async(async |_| Ok::<_, slate_core::Error>(())).await);
            Ok::<_, slate_core::Error>(())
        });
        outcome.await.unwrap();
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 1);
        // Nothing of it remains: the task may write, and begin the next one.
        documents.insert_one(&rawdoc! { "_id": 3 }).await.unwrap();
        db.transact_async(async |_| Ok::<_, slate_core::Error>(())).await.unwrap();
    });
}

#[test]
fn a_panic_in_the_closure_unwinds_its_task_and_rolls_back() {
    on_two_threads(4, |db, _| async move {
        let within = db.clone();
        let task = tokio::spawn(async move {
            within
                .transact_async(async |tx| -> slate_core::Result<()> {
                    tx.collection("documents").insert_one(&rawdoc! { "_id": 1 }).await?;
                    panic!("the caller's own");
                })
                .await
        });
        assert!(task.await.unwrap_err().is_panic());
        let documents: Documents = db.collection("documents");
        documents.insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
        assert_eq!(documents.count_documents(doc! {}).await.unwrap(), 1);
    });
}
