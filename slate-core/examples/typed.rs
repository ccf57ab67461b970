//! Typed collections: documents as your own type, as `Document`, and as borrowed raw bytes.
//!
//! ```sh
//! cargo run --example typed
//! ```

use bson::{DateTime, Document, doc, oid::ObjectId};
use serde::{Deserialize, Serialize};
use slate_core::{Database, ErrorKind, ReturnDocument};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Article {
    #[serde(rename = "_id")]
    id: ObjectId,
    title: String,
    /// A serde enum is a string in the document.
    state: State,
    tags: Vec<String>,
    views: u32,
    /// Not stored while it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<DateTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Draft,
    Published,
}

/// The type of a projection, which borrows from the stored document.
#[derive(Debug, Deserialize)]
struct Headline<'d> {
    title: &'d str,
    views: u32,
}

fn main() -> slate_core::Result<()> {
    let db = Database::open("memory:")?;
    let articles = db.collection::<Article>("articles");

    let mut ids = Vec::new();
    for (title, tags) in
        [("On trees", ["rust", "storage"]), ("On logs", ["storage", "crash"]), ("On tea", ["life", "tea"])]
    {
        let article = Article {
            id: ObjectId::new(),
            title: title.into(),
            state: State::Draft,
            tags: tags.map(String::from).into(),
            views: 0,
            published: None,
        };
        articles.insert_one(&article)?;
        ids.push(article.id);
    }

    // Updates use MongoDB's update language and return typed documents.
    let publish = doc! { "$set": { "state": "published", "published": DateTime::now() }, "$inc": { "views": 1 } };
    let published =
        articles.find_one_and_update(doc! { "tags": "rust" }, publish).return_document(ReturnDocument::After).run()?;
    println!("published: {published:?}");

    for article in articles.find(doc! { "state": "draft" }).sort(doc! { "title": 1 }).run()? {
        println!("draft: {}", article?.title);
    }

    // A lending cursor reads each document in place without copying it, including the title below.
    let mut rows = articles.find(doc! { "tags": "storage" }).projection(doc! { "title": 1, "views": 1 }).cursor()?;
    while rows.advance()? {
        let headline: Headline<'_> = rows.deserialize_current()?;
        println!("{}: seen {} times", headline.title, headline.views);
    }

    // The same collection as `Document`, to show what serde stored.
    let documents = articles.with_type::<Document>();
    for id in ids {
        println!("{}", documents.find_by_id(id)?.unwrap_or_default());
    }

    // A document that is not a valid `Article` is returned as an error; later documents can still be read.
    documents.update_one(doc! { "tags": "tea" }, doc! { "$set": { "views": "many" } }).run()?;
    let misfits = articles.find(doc! {}).run()?.filter_map(Result::err);
    for misfit in misfits {
        assert_eq!(misfit.kind(), ErrorKind::Conversion);
        println!("{misfit}");
    }
    Ok(())
}
