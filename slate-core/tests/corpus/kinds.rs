//! The second set of files of version 0.1: the kinds of indexes and collections that the first one lacks. The first one stays as it is.

use std::time::Duration;

use bson::{Bson, DateTime, Document, doc};
use slate_core::{ChangeLog, Collection, CollectionOptions, Database, Index, View};

/// A time after which no file of the corpus is read any more.
fn far_future() -> Bson {
    Bson::DateTime(DateTime::from_millis(32_503_680_000_000))
}

fn document(n: i32) -> Document {
    let part = match n % 4 {
        0 => doc! { "x": n, "y": [n, n + 1] },
        1 => doc! { "x": format!("{n}"), "z": { "deep": n } },
        2 => doc! { "x": Bson::Null, "y": [{ "z": n }, []] },
        _ => doc! {},
    };
    let name = match n % 5 {
        0 | 1 => "Ä",
        2 => "a",
        _ => "B",
    };
    doc! { "_id": n, "shop": n % 3, "part": part, "name": name, "due": far_future() }
}

pub(super) fn write(db: &Database) {
    // Its events are still there when a later version reads them.
    let century = Duration::from_secs(100 * 365 * 86_400);
    db.enable_changes(ChangeLog::new().age(century)).unwrap();
    let options = CollectionOptions::new().keep_images();
    db.collection::<Document>("parts").create_with(&options).unwrap();
    let parts: Collection<Document> = db.collection("parts");
    let indexes = [
        Index::on(doc! { "$**": 1 }).named("all"),
        Index::on(doc! { "part.$**": -1 }).named("below"),
        Index::on(doc! { "$**": 1 }).named("projected").wildcard_projection(doc! { "part.y": 1, "name": 1 }),
        Index::on(doc! { "shop": 1, "part.$**": 1, "name": -1 }).named("compound"),
        Index::on(doc! { "due": 1 }).named("expiring").expire_after(Duration::from_secs(60)),
        Index::on(doc! { "part.$**": 1 }).named("collated").collation(doc! { "locale": "de", "strength": 1 }),
    ];
    for index in indexes {
        parts.create_index(index).run().unwrap();
    }
    parts.insert_many(&(0..60).map(document).collect::<Vec<_>>()).run().unwrap();
    parts.update_one(doc! { "_id": 3 }, doc! { "$set": { "part.new": 1 } }).run().unwrap();
    parts.replace_one(doc! { "_id": 7 }, &doc! { "shop": 2, "name": "c" }).run().unwrap();
    parts.delete_one(doc! { "_id": 8 }).run().unwrap();
    let view = |name: &str, on: &str, stage: Document| {
        let options = CollectionOptions::new().view(&View::new(on, [stage]));
        db.collection::<Document>(name).create_with(&options).unwrap();
    };
    view("first shop", "parts", doc! { "$match": { "shop": 1 } });
    view("names", "first shop", doc! { "$group": { "_id": "$name", "n": { "$sum": 1 } } });
    let collated = View::new("parts", [doc! { "$match": { "name": "A" } }]);
    let options = CollectionOptions::new().view(&collated).collation(doc! { "locale": "en", "strength": 1 });
    db.collection::<Document>("collated view").create_with(&options).unwrap();
}

/// Returns the commands whose replies are recorded.
pub(super) fn commands() -> Vec<Document> {
    let by =
        |index: &str, filter: Document| doc! { "find": "parts", "filter": filter, "hint": index, "sort": { "_id": 1 } };
    let mut commands = vec![
        doc! { "find": "parts", "sort": { "_id": 1 } },
        by("expiring", doc! { "due": far_future() }),
        by("projected", doc! { "name": "B" }),
        by("compound", doc! { "shop": 2, "part.y.z": { "$gt": 5 } }),
        by("compound", doc! { "shop": 0 }),
        doc! { "find": "parts", "filter": { "part.x": "1" }, "hint": "collated", "collation": { "locale": "de", "strength": 1 } },
        doc! { "find": "first shop", "sort": { "_id": -1 } },
        doc! { "find": "names", "sort": { "_id": 1 } },
        doc! { "find": "collated view", "sort": { "_id": 1 } },
        doc! { "listCollections": 1, "filter": { "type": "view" } },
    ];
    for n in 0..20 {
        commands.push(by("all", doc! { "part.y": n }));
        commands.push(by("below", doc! { "part.x": n }));
        commands.push(by("below", doc! { "part.z.deep": { "$lt": n } }));
    }
    commands
}
