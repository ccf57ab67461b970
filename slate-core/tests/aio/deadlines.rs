//! Handles with a deadline or a cancel token.

use std::time::Duration;

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{CancelToken, ErrorKind, Result};
use tokio::time::sleep;

use super::{Documents, on_one_thread};

fn kind<R>(result: Result<R>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn every_kind_of_call_obeys_the_limits_of_its_handle() {
    on_one_thread(|db, _| async move {
        let users: Documents = db.collection("users");
        users.insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
        let cancelled = CancelToken::new();
        cancelled.cancel();
        for db in [db.with_deadline(Duration::ZERO), db.with_cancel(cancelled.child())] {
            let late: Documents = db.collection("users");
            let interrupted = Some(ErrorKind::Interrupted);
            assert_eq!(kind(late.find_by_id(1).await), interrupted);
            assert_eq!(kind(late.find(doc! {}).collect().await), interrupted);
            assert_eq!(kind(late.count_documents(doc! {}).await), interrupted);
            assert_eq!(kind(late.exists().await), interrupted);
            assert_eq!(kind(late.insert_one(&rawdoc! { "_id": 2 }).await), interrupted);
            assert_eq!(kind(late.insert_many(&[rawdoc! { "_id": 2 }]).await), interrupted);
            assert_eq!(kind(late.delete_many(doc! {}).await), interrupted);
            assert_eq!(kind(late.drop().await), interrupted);
            assert_eq!(kind(db.list_collection_names().await), interrupted);
            assert_eq!(kind(db.drop_database().await), interrupted);
            assert_eq!(
                kind(db.transact(|tx| tx.collection("users").insert_one(&rawdoc! { "_id": 2 })).await),
                interrupted
            );
            let begun = db.begin().await;
            assert!(match begun {
                Ok(tx) => kind(tx.commit().await) == interrupted,
                Err(error) => error.kind() == ErrorKind::Interrupted,
            });
        }
        assert_eq!(users.count_documents(doc! {}).await.unwrap(), 1);
        let limited: Documents = db.with_deadline(Duration::from_secs(3_600)).collection("users");
        limited.insert_one(&rawdoc! { "_id": 2 }).await.unwrap();
        assert!(limited.find_by_id(2).await.unwrap().is_some());
    });
}

/// A stream that waits is woken by its deadline and by its token, without anyone who polls it.
#[test]
fn a_waiting_stream_ends_at_its_deadline_and_when_it_is_cancelled() {
    on_one_thread(|db, _| async move {
        db.enable_changes(slate_core::ChangeLog::new()).await.unwrap();
        let users: Documents = db.collection("users");
        let none: [bson::Document; 0] = [];
        match users.watch(none.clone()).deadline(Duration::from_millis(200)).await {
            Ok(mut late) => {
                assert_eq!(late.next().await.unwrap().unwrap_err().code(), 50);
                assert!(late.next().await.is_none());
            }
            // A busy machine can take the time to open it.
            Err(late) => assert_eq!(late.code(), 50),
        }
        let error = match users.find(doc! {}).deadline(Duration::from_millis(30)).live().await {
            Ok(mut late) => late.next().await.unwrap().unwrap_err(),
            late => late.unwrap_err(),
        };
        assert_eq!(error.code(), 50);

        let service = CancelToken::new();
        let mut streams = Vec::new();
        for token in [service.clone(), service.child().child()] {
            let mut stream = db.collection::<RawDocumentBuf>("quiet").watch(none.clone()).cancel(token).await.unwrap();
            streams.push(tokio::spawn(async move { stream.next().await.unwrap().unwrap_err().code() }));
        }
        let mut other = users.watch(none).cancel(service.child()).await.unwrap();
        users.insert_one(&rawdoc! { "_id": 1 }).await.unwrap();
        other.next().await.unwrap().unwrap();
        drop(other);
        service.cancel();
        for stream in streams {
            assert_eq!(stream.await.ok(), Some(11_601));
        }
    });
}

#[test]
fn the_time_begins_with_the_call_and_not_when_it_is_awaited() {
    on_one_thread(|db, _| async move {
        let users: Documents = db.collection("users").with_deadline(Duration::from_millis(20));
        let (insert, find, get) =
            (users.insert_one(&rawdoc! { "_id": 1 }), users.find(doc! {}).collect(), users.find_by_id(1));
        sleep(Duration::from_millis(40)).await;
        assert_eq!(kind(insert.await), Some(ErrorKind::Interrupted));
        assert_eq!(kind(find.await), Some(ErrorKind::Interrupted));
        assert_eq!(kind(get.await), Some(ErrorKind::Interrupted));
    });
}
