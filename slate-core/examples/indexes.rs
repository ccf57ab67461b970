//! Shows how indexes change the plans of queries.
//!
//! ```sh
//! cargo run --example indexes
//! ```

use bson::{Document, doc};
use slate_core::{Collection, Database, ErrorKind, ExplainVerbosity, Index};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open("memory:")?;
    let orders = db.collection::<Document>("orders");
    let documents: Vec<Document> = (0..5_000)
        .map(|n: i32| {
            let state = if n % 50 == 0 { "open" } else { "done" };
            doc! { "_id": n, "customer": n % 200, "state": state, "total": (n * 37) % 1_000, "tags": ["a", if n % 3 == 0 { "b" } else { "c" }] }
        })
        .collect();
    orders.insert_many(&documents).run()?;

    println!("Without an index, the whole collection is read:\n");
    explain_queries(&orders)?;

    // Equality fields first, then the sort field: the index finds the documents and provides their order.
    orders.create_index(Index::on(doc! { "customer": 1, "total": -1 })).run()?;
    // Contains only open orders, so it is small. Serves queries for open orders.
    orders.create_index(Index::on(doc! { "total": 1 }).only(doc! { "state": "open" }).named("open_by_total")).run()?;
    // Arrays are indexed by each of their elements.
    orders.create_index(Index::on(doc! { "tags": 1 })).run()?;

    println!("\nWith indexes:\n");
    explain_queries(&orders)?;

    orders.create_index(Index::on(doc! { "reference": 1 }).unique().sparse()).run()?;
    orders.insert_one(&doc! { "_id": "x", "reference": 7 })?;
    let refused = orders.insert_one(&doc! { "_id": "y", "reference": 7 });
    if let Some(error) = refused.err().filter(|error| error.kind() == ErrorKind::DuplicateKey) {
        println!("\nrefused: {error}\n");
    }

    for index in orders.list_indexes()? {
        println!(
            "{}: {}{}",
            index.name,
            Document::try_from(&*index.keys)?,
            if index.multikey { ", over arrays" } else { "" }
        );
    }
    Ok(())
}

fn explain_queries(orders: &Collection<Document>) -> slate_core::Result<()> {
    let queries = [
        ("of one customer, dearest first", orders.find(doc! { "customer": 17 }).sort(doc! { "total": -1 }).limit(5)),
        ("the totals alone", orders.find(doc! { "customer": 17 }).projection(doc! { "total": 1, "_id": 0 })),
        ("open and cheap", orders.find(doc! { "state": "open", "total": { "$lt": 100 } })),
        ("either of two", orders.find(doc! { "$or": [{ "customer": 3 }, { "tags": "b", "customer": 5 }] })),
    ];
    for (what, query) in queries {
        println!("{what}: {} documents", query.clone().run()?.count());
        println!("{}\n", query.explain(ExplainVerbosity::QueryPlanner)?);
    }
    println!(
        "the distinct customers:\n{}\n",
        orders.find(doc! {}).distinct("customer").explain(ExplainVerbosity::QueryPlanner)?
    );
    println!(
        "the number of orders with tag b:\n{}",
        orders.find(doc! { "tags": "b" }).count().explain(ExplainVerbosity::QueryPlanner)?
    );
    Ok(())
}
