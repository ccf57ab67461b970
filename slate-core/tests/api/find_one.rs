//! `find_one` with each of its options.

use std::time::Duration;

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{CancelToken, ErrorKind, ExplainVerbosity, Hint, Index};

use super::common::{TestDatabase, on_every_store};

fn filled(test: &TestDatabase) {
    let users = test.collection("users");
    users.create_index(Index::on(doc! { "age": 1 })).run().unwrap();
    let documents = [
        rawdoc! { "_id": 1, "name": "ada", "age": 36 },
        rawdoc! { "_id": 2, "name": "Bob", "age": 41 },
        rawdoc! { "_id": 3, "name": "Cy", "age": 17 },
    ];
    users.insert_many(&documents).run().unwrap();
}

#[test]
fn find_one_takes_the_options_of_a_find() {
    on_every_store(|test| {
        filled(&test);
        let users = test.collection("users");
        let id = |found: Option<RawDocumentBuf>| found.map(|user| user.get_i32("_id").unwrap());

        let oldest = users.find_one(doc! {}).sort(doc! { "age": -1 });
        assert_eq!(id(oldest.clone().run().unwrap()), Some(2));
        assert_eq!(id(oldest.clone().skip(1).run().unwrap()), Some(1));
        assert_eq!(id(oldest.clone().skip(3).run().unwrap()), None);
        let name = oldest.clone().projection(doc! { "_id": 0, "name": 1 }).run().unwrap();
        assert_eq!(name, Some(rawdoc! { "name": "Bob" }));
        let explained = oldest.clone().explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert!(explained.uses_index());
        assert_eq!(explained.execution_stats().unwrap().documents_examined, 1);

        let unhinted = users.find_one(doc! { "name": "Cy" });
        assert!(!unhinted.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
        let hinted = unhinted.hint(Hint::Name("age_1".into()));
        assert!(hinted.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
        assert_eq!(id(hinted.run().unwrap()), Some(3));
        assert_eq!(users.find_one(doc! {}).hint(Hint::Name("none".into())).run().unwrap_err().code(), 2);

        let older =
            users.find_one(doc! { "$expr": { "$gt": ["$age", "$$limit"] } }).let_variables(doc! { "limit": 40 });
        assert_eq!(id(older.run().unwrap()), Some(2));
        let sorted = users.find_one(doc! {}).sort(doc! { "name": 1 });
        assert_eq!(id(sorted.clone().run().unwrap()), Some(2));
        #[cfg(feature = "collation")]
        {
            let (english, ignoring_case) = (doc! { "locale": "en" }, doc! { "locale": "en", "strength": 2 });
            assert_eq!(id(sorted.clone().collation(english).run().unwrap()), Some(1));
            assert_eq!(id(users.find_one(doc! { "name": "BOB" }).collation(ignoring_case).run().unwrap()), Some(2));
        }

        let token = CancelToken::new();
        token.cancel();
        assert_eq!(sorted.clone().cancel(token).run().unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(sorted.clone().deadline(Duration::ZERO).run().unwrap_err().kind(), ErrorKind::Interrupted);
        // One row of three is held at a time, whatever the limit.
        assert_eq!(id(sorted.memory_limit(1 << 20).allow_disk_use(false).run().unwrap()), Some(2));

        let snapshot = test.db.snapshot().unwrap();
        users.delete_many(doc! {}).run().unwrap();
        assert_eq!(users.find_one(doc! {}).run().unwrap(), None);
        let before = snapshot.collection::<RawDocumentBuf>("users").find_one(doc! {}).sort(doc! { "age": 1 });
        assert_eq!(id(before.run().unwrap()), Some(3));
    });
}

#[test]
fn an_invalid_argument_of_find_one_is_reported_when_it_runs() {
    on_every_store(|test| {
        let users = test.collection("users");
        let refused = users.find_one(doc! {}).sort(doc! { "age": 2 }).run().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        let refused = users.find_one(doc! { "$nothing": 1 }).projection(doc! { "a": 1 }).run().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    });
}

#[cfg(feature = "async")]
#[test]
fn find_one_is_awaited_with_or_without_run() {
    on_every_store(|test| {
        filled(&test);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let users = slate_core::aio::Database::from(test.db.clone()).collection::<RawDocumentBuf>("users");
            assert!(users.find_one(doc! { "name": "Bob" }).await.unwrap().is_some());
            let oldest = users.find_one(doc! {}).sort(doc! { "age": -1 }).projection(doc! { "_id": 1 }).skip(1);
            assert!(oldest.clone().explain(ExplainVerbosity::QueryPlanner).await.unwrap().uses_index());
            assert_eq!(oldest.run().await.unwrap(), Some(rawdoc! { "_id": 1 }));
            let hinted = users.find_one(doc! {}).hint(Hint::Name("none".into()));
            assert_eq!(hinted.await.unwrap_err().code(), 2);
        });
    });
}
