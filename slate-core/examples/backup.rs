//! Makes a backup during writes, reads it, verifies and compacts the database.
//!
//! ```sh
//! cargo run --example backup
//! ```

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use bson::{Document, doc};
use slate_core::{Access, Database, ErrorKind, Index};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = |name: &str| format!("redb:{}", folder.path().join(name).display());
    let db = Database::open(&url("shop.slate"))?;
    let orders = db.collection::<Document>("orders");
    orders.create_index(Index::on(doc! { "total": 1 })).run()?;
    orders.insert_many(&(0..20_000).map(|n| doc! { "_id": n, "total": n % 97 }).collect::<Vec<_>>()).run()?;

    // The copy contains one commit, independent of concurrent writes.
    let copy = folder.path().join("copy.slate");
    let done = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !done.load(Ordering::Relaxed) {
                db.collection::<Document>("later").insert_one(&doc! { "n": written })?;
                written += 1;
            }
            Ok::<i32, slate_core::Error>(written)
        });
        let backed_up = db.backup(&copy);
        done.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        backed_up.map(|()| written)
    })?;
    println!("written meanwhile: {written}");

    // The copy opens with the same URL scheme. Opening it read-only leaves it unchanged.
    let restored = Database::builder(&url("copy.slate")).access(Access::ReadOnly).open()?;
    for collection in restored.list_collections()? {
        let documents = restored.collection::<Document>(&collection.name).count_documents(doc! {}).run()?;
        println!("in the copy: {}, {documents} documents, {} indexes", collection.name, collection.indexes.len());
    }
    let report = restored.verify().run()?;
    println!(
        "verified: {} documents, {} index entries, sound: {}",
        report.documents,
        report.entries,
        report.is_sound()
    );

    // A backup never overwrites a file.
    assert_eq!(db.backup(&copy).map_err(|error| error.kind()), Err(ErrorKind::Exists));

    let before = db.size()?.on_disk;
    orders.drop()?;
    db.compact()?;
    println!("on disk: {before:?} bytes, compacted after a drop: {:?}", db.size()?.on_disk);
    db.close()?;
    Ok(())
}
