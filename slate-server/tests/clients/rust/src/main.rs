//! The `mongodb` crate, async and blocking, against a server of this process: each part starts one with a call and stops it when it ends.

use std::error::Error;

use futures::{StreamExt, TryStreamExt, future::try_join_all};
use mongodb::{
    Client, Collection, IndexModel,
    bson::{Bson, Document, doc},
    error::{ErrorKind, TRANSIENT_TRANSACTION_ERROR},
    options::{ClientOptions, Compressor, IndexOptions, ReadConcern, ReturnDocument, SessionOptions, WriteConcern},
};
use serde::{Deserialize, Serialize};
use slate_server::TestServer;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct User {
    #[serde(rename = "_id")]
    id: i32,
    name: String,
    age: i32,
}

fn users() -> Vec<User> {
    (0..1000).map(|id| User { id, name: format!("user {id}"), age: id % 50 }).collect()
}

fn main() -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(with_async())?;
    blocking()?;
    println!("mongodb crate 3.9.1, async and blocking: all checks passed");
    Ok(())
}

async fn with_async() -> Result<()> {
    let server = TestServer::start()?;
    let mut options = ClientOptions::parse(server.uri()).await?;
    options.compressors = Some(vec![Compressor::Snappy, Compressor::Zlib { level: None }]);
    let client = Client::with_options(options)?;
    documents(&client).await?;
    definitions(&client).await?;
    transactions(&client).await?;
    let mut session = client.start_session().with_options(SessionOptions::builder().snapshot(true).build()).await?;
    let users: Collection<User> = client.database("rust").collection("users");
    let before = users.count_documents(doc! {}).session(&mut session).await?;
    users.insert_one(User { id: 7000, name: "late".into(), age: 1 }).await?;
    assert_eq!(users.count_documents(doc! {}).session(&mut session).await?, before);
    assert_eq!(users.count_documents(doc! {}).await?, before + 1);
    // The database of the server is the one of this process.
    assert!(server.database().list_collection_names()?.contains(&"$rust.users".to_owned()));
    Ok(())
}

async fn documents(client: &Client) -> Result<()> {
    let db = client.database("rust");
    let collection: Collection<User> = db.collection("users");
    assert_eq!(collection.insert_many(users()).await?.inserted_ids.len(), 1000);
    assert_eq!(collection.count_documents(doc! { "age": { "$lt": 10 } }).await?, 200);
    assert_eq!(collection.estimated_document_count().await?, 1000);
    assert_eq!(collection.find_one(doc! { "_id": 7 }).await?, users().get(7).cloned());
    assert_eq!(collection.update_many(doc! { "age": 1 }, doc! { "$set": { "old": false } }).await?.modified_count, 20);
    let upserted =
        collection.update_one(doc! { "_id": 5000 }, doc! { "$set": { "name": "new", "age": 1 } }).upsert(true).await?;
    assert_eq!(upserted.upserted_id, Some(Bson::Int32(5000)));
    let changed = collection
        .find_one_and_update(doc! { "_id": 5000 }, doc! { "$inc": { "age": 2 } })
        .return_document(ReturnDocument::After)
        .await?;
    assert_eq!(changed.map(|user| user.age), Some(3));
    assert_eq!(collection.delete_one(doc! { "_id": 5000 }).await?.deleted_count, 1);
    let duplicate = collection.insert_one(User { id: 1, name: String::new(), age: 0 }).await.unwrap_err();
    assert!(duplicate.to_string().contains("E11000"), "{duplicate}");
    let mut cursor = collection.find(doc! {}).sort(doc! { "_id": -1 }).batch_size(7).await?;
    let mut seen = 0;
    while let Some(user) = cursor.next().await {
        seen += 1;
        assert_eq!(user?.id, 1000 - seen);
    }
    assert_eq!(seen, 1000);
    let pipeline = [doc! { "$group": { "_id": "$age", "n": { "$sum": 1 } } }, doc! { "$sort": { "_id": 1 } }];
    let groups: Vec<Document> = collection.aggregate(pipeline).batch_size(3).await?.try_collect().await?;
    assert_eq!((groups.len(), groups[49].get_i32("n")?), (50, 20));
    assert_eq!(collection.distinct("age", doc! {}).await?.len(), 50);
    let models = vec![
        collection.insert_one_model(User { id: 6000, name: "bulk".into(), age: 1 })?,
        db.collection::<User>("other").insert_one_model(User { id: 1, name: "bulk".into(), age: 1 })?,
    ];
    assert_eq!(client.bulk_write(models).await?.inserted_count, 2);
    assert_eq!(collection.delete_many(doc! { "_id": 6000 }).await?.deleted_count, 1);
    Ok(())
}

async fn definitions(client: &Client) -> Result<()> {
    let db = client.database("rust");
    let collection: Collection<User> = db.collection("users");
    let index = IndexModel::builder()
        .keys(doc! { "name": 1, "age": -1 })
        .options(IndexOptions::builder().unique(true).build())
        .build();
    assert_eq!(collection.create_index(index).await?.index_name, "name_1_age_-1");
    assert_eq!(collection.list_index_names().await?, ["_id_", "name_1_age_-1"]);
    let explained = db
        .run_command(
            doc! { "explain": { "find": "users", "filter": { "name": "user 3" } }, "verbosity": "executionStats" },
        )
        .await?;
    let stages = explained.get_document("executionStats")?.get_document("executionStages")?;
    assert_eq!(stages.get_document("inputStage")?.get_str("indexName")?, "name_1_age_-1");
    db.create_collection("checked").validator(doc! { "name": { "$type": "string" } }).await?;
    let refused = db.collection("checked").insert_one(doc! { "name": 1 }).await.unwrap_err();
    assert!(matches!(*refused.kind, ErrorKind::Write(_)), "{refused}");
    db.create_collection("young")
        .view_on("users".to_owned())
        .pipeline(vec![doc! { "$match": { "age": { "$lt": 3 } } }])
        .await?;
    assert_eq!(db.collection::<User>("young").count_documents(doc! {}).await?, 60);
    let mut names = db.list_collection_names().await?;
    names.sort();
    assert_eq!(names, ["checked", "other", "users", "young"]);
    assert!(client.list_database_names().await?.contains(&"rust".to_owned()));
    Ok(())
}

async fn transactions(client: &Client) -> Result<()> {
    let accounts: Collection<Document> = client.database("rust").collection("accounts");
    let log: Collection<Document> = client.database("rust_log").collection("log");
    accounts.insert_many([doc! { "_id": "a", "n": 100 }, doc! { "_id": "b", "n": 0 }]).await?;
    log.insert_one(doc! { "amount": 0 }).await?;
    try_join_all((0..10).map(|_| transfer(client, &accounts, &log))).await?;
    let account = accounts.find_one(doc! { "_id": "b" }).await?.unwrap_or_default();
    assert_eq!((account.get_i32("n")?, log.count_documents(doc! {}).await?), (100, 11));
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    accounts.delete_many(doc! {}).session(&mut session).await?;
    assert_eq!(accounts.count_documents(doc! {}).session(&mut session).await?, 0);
    session.abort_transaction().await?;
    assert_eq!(accounts.count_documents(doc! {}).await?, 2);
    // Of two transactions that write a document, one fails with a label that says to repeat.
    let mut second = client.start_session().await?;
    session.start_transaction().await?;
    second.start_transaction().await?;
    let add = || (doc! { "_id": "a" }, doc! { "$inc": { "n": 1 } });
    let ((filter, update), (same, other)) = (add(), add());
    accounts.update_one(filter, update).session(&mut session).await?;
    let lost = accounts.update_one(same, other).session(&mut second).await.err();
    session.commit_transaction().await?;
    let lost = match lost {
        Some(lost) => lost,
        None => second.commit_transaction().await.expect_err("one of two writers loses"),
    };
    assert!(lost.contains_label(TRANSIENT_TRANSACTION_ERROR), "{lost}");
    Ok(())
}

async fn transfer(client: &Client, accounts: &Collection<Document>, log: &Collection<Document>) -> Result<()> {
    let mut session = client.start_session().await?;
    session
        .start_transaction()
        .read_concern(ReadConcern::snapshot())
        .write_concern(WriteConcern::majority())
        .and_run2(async |session| {
            for (id, amount) in [("a", -10), ("b", 10)] {
                accounts
                    .update_one(doc! { "_id": id }, doc! { "$inc": { "n": amount } })
                    .session(&mut *session)
                    .await?;
            }
            log.insert_one(doc! { "amount": 10 }).session(session).await?;
            Ok(())
        })
        .await?;
    Ok(())
}

fn blocking() -> Result<()> {
    let server = TestServer::start()?;
    let client = mongodb::sync::Client::with_uri_str(server.uri())?;
    let collection = client.database("rust").collection::<User>("users");
    assert_eq!(collection.insert_many(users()).run()?.inserted_ids.len(), 1000);
    let found: Vec<User> = collection
        .find(doc! { "age": 3 })
        .sort(doc! { "_id": 1 })
        .limit(2)
        .batch_size(1)
        .run()?
        .collect::<Result<_, _>>()?;
    assert_eq!(found.iter().map(|user| user.id).collect::<Vec<_>>(), [3, 53]);
    let mut session = client.start_session().run()?;
    session.start_transaction().and_run(|session| {
        collection.delete_many(doc! { "age": 3 }).session(&mut *session).run()?;
        collection.insert_one(User { id: 5000, name: "new".into(), age: 3 }).session(session).run()?;
        Ok(())
    })?;
    assert_eq!(collection.count_documents(doc! { "age": 3 }).run()?, 1);
    Ok(())
}
