//! Migrations: steps that are executed once, in order, in transactions.

use std::sync::{
    Barrier,
    atomic::{AtomicU64, Ordering},
};

use bson::{Document, doc, rawdoc};
use slate_core::{Access, Database, Error, ErrorKind, Index, Migrations, TransactionOptions};

use super::common::{STORES, TestDatabase, on_every_store};

fn first_two() -> Migrations {
    Migrations::new()
        .step("mails are unique", |tx| {
            tx.collection::<Document>("users").create_index(Index::on(doc! { "mail": 1 }).unique()).run().map(drop)
        })
        .step("users have roles", |tx| {
            let users = tx.collection::<Document>("users");
            users.update_many(doc! { "roles": null }, doc! { "$set": { "roles": ["reader"] } }).run().map(drop)
        })
}

fn filled(test: &TestDatabase) {
    let users = [rawdoc! { "_id": 1, "mail": "a" }, rawdoc! { "_id": 2, "mail": "b", "roles": [] }];
    test.collection("users").insert_many(&users).run().unwrap();
}

#[test]
fn steps_are_executed_once_and_in_order() {
    on_every_store(|test| {
        filled(&test);
        assert_eq!(test.db.schema_version().unwrap(), 0);
        let migrated = test.db.migrate(&first_two()).unwrap();
        assert_eq!(
            (migrated.version, &*migrated.applied),
            (2, &["mails are unique".into(), "users have roles".into()][..])
        );
        assert_eq!(test.collection("users").list_indexes().unwrap().len(), 1);
        assert_eq!(test.collection("users").count_documents(doc! { "roles": "reader" }).run().unwrap(), 1);

        let test = test.reopen();
        assert_eq!(test.db.schema_version().unwrap(), 2);
        assert!(test.db.migrate(&first_two()).unwrap().applied.is_empty());
        let third = first_two().step("log", |tx| tx.collection::<Document>("log").create());
        assert_eq!(test.db.migrate(&third).unwrap().applied, ["log"]);
        assert!(test.collection("log").exists().unwrap());

        // The records are documents.
        let records =
            test.db.collection::<Document>("slate.migrations").find(doc! {}).sort(doc! { "_id": 1 }).collect();
        let records: Vec<_> =
            records.unwrap().into_iter().map(|record| (record.get_i64("_id").unwrap(), record)).collect();
        let names: Vec<_> = records.iter().map(|(number, record)| (*number, record.get_str("name").unwrap())).collect();
        assert_eq!(names, [(1, "mails are unique"), (2, "users have roles"), (3, "log")]);
        assert!(records.iter().all(|(_, record)| record.get_datetime("at").unwrap().timestamp_millis() > 0));

        // Older programs, and programs with other steps, are refused before anything is executed.
        for older in [Migrations::new(), first_two()] {
            let refused = test.db.migrate(&older).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NewerSchema);
            assert!(refused.to_string().contains("the database has 3 migration steps"), "{refused}");
        }
        let other = Migrations::new().step("mails are unique", |_| Ok(())).step("something else", |_| Ok(()));
        let refused = test.db.migrate(&other.step("more", |_| panic!("must not be executed"))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("\"users have roles\""), "{refused}");
    });
}

#[test]
fn a_step_that_fails_leaves_the_database_at_the_one_before() {
    on_every_store(|test| {
        filled(&test);
        let failing = first_two().step("split names", |tx| {
            tx.collection::<Document>("users").delete_many(doc! {}).run()?;
            tx.collection::<Document>("names").insert_one(&doc! { "_id": 1 })?;
            tx.collection::<Document>("names").create_index(Index::on(doc! { "n": 1 })).run()?;
            Err(Error::custom("no names"))
        });
        for version in [0, 2] {
            assert_eq!(test.db.schema_version().unwrap(), version);
            let refused = test.db.migrate(&failing).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Custom);
            assert_eq!(refused.to_string(), "migration step 3 \"split names\" failed: no names");
            assert_eq!(test.db.schema_version().unwrap(), 2);
            assert_eq!(test.collection("users").count_documents(doc! {}).run().unwrap(), 2);
            assert!(!test.collection("names").exists().unwrap());
        }
        // The kind and the place of the cause stay.
        let duplicate =
            first_two().step("again", |tx| tx.collection::<Document>("users").insert_one(&doc! { "_id": 1 }).map(drop));
        let refused = test.db.migrate(&duplicate).unwrap_err();
        assert_eq!((refused.kind(), refused.collection()), (ErrorKind::DuplicateKey, Some("users")));
        assert!(refused.to_string().starts_with("migration step 3 \"again\" failed: E11000"), "{refused}");
        assert_eq!(test.db.migrate(&first_two().step("fixed", |_| Ok(()))).unwrap().applied, ["fixed"]);
    });
}

#[test]
fn threads_that_migrate_at_once_execute_each_step_once() {
    on_every_store(|test| {
        test.collection("counters").insert_one(&rawdoc! { "_id": 1, "n": 0 }).unwrap();
        let increment = |tx: &slate_core::Transaction| {
            let counters = tx.collection::<Document>("counters");
            counters.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().map(drop)
        };
        let migrations = (0..5).fold(Migrations::new(), |steps, n| steps.step(&format!("step {n}"), increment));
        let barrier = Barrier::new(4);
        let applied = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let migrated = test.db.migrate(&migrations).unwrap();
                    assert_eq!(migrated.version, 5);
                    applied.fetch_add(migrated.applied.len() as u64, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(applied.load(Ordering::Relaxed), 5);
        let counter = test.collection("counters").find_by_id(1).unwrap().unwrap();
        assert_eq!(counter.get_i32("n").unwrap(), 5);
        assert_eq!(test.db.schema_version().unwrap(), 5);
    });
}

#[test]
fn a_database_that_is_read_only_needs_no_migration_if_it_is_complete() {
    for store in STORES.into_iter().filter(|store| store.is_persistent()) {
        let test = store.open();
        test.db.migrate(&first_two()).unwrap();
        let url = test.url();
        let (db, _folder) = test.into_parts();
        db.close().unwrap();
        let db = Database::builder(&url).access(Access::ReadOnly).open().unwrap();
        assert_eq!(db.migrate(&first_two()).unwrap().version, 2);
        let refused = db.migrate(&first_two().step("third", |_| Ok(()))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn the_options_limit_each_step() {
    on_every_store(|test| {
        let token = slate_core::CancelToken::new();
        let cancel = token.clone();
        let migrations = first_two().step("third", move |tx| {
            cancel.cancel();
            tx.collection::<Document>("log").create()
        });
        let refused = test.db.migrate(&migrations.options(TransactionOptions::new().cancel(token))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Interrupted);
        assert_eq!(test.db.schema_version().unwrap(), 2);
        assert!(!test.collection("log").exists().unwrap());
    });
}

#[cfg(feature = "async")]
#[test]
fn tasks_migrate() {
    on_every_store(|test| {
        filled(&test);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(async {
            let db = slate_core::aio::Database::from(test.db.clone());
            let calls = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&calls);
            let migrations = first_two().step("count", move |tx| {
                counter.fetch_add(1, Ordering::Relaxed);
                tx.collection::<Document>("log").create()
            });
            let other = tokio::spawn({
                let (db, migrations) = (db.clone(), migrations.clone());
                async move { db.migrate(&migrations).await.unwrap() }
            });
            let own = db.migrate(&migrations).await.unwrap();
            let other = other.await.unwrap();
            assert_eq!((own.version, other.version), (3, 3));
            assert_eq!(own.applied.len() + other.applied.len(), 3);
            assert!(calls.load(Ordering::Relaxed) >= 1);
            assert_eq!(db.schema_version().await.unwrap(), 3);
            assert_eq!(db.migrate(&Migrations::new()).await.unwrap_err().kind(), ErrorKind::NewerSchema);
        });
    });
}
