//! The async API on tokio: calls, a stream, a timeout, concurrent transactions.
//!
//! ```sh
//! cargo run --example async_tasks --features async
//! ```

use std::time::Duration;

use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use slate_core::{Index, aio::Database};
use tokio::time::timeout;

#[derive(Serialize, Deserialize)]
struct Reading {
    sensor: u32,
    second: u32,
    celsius: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open("memory:").await?;
    let readings = db.collection::<Reading>("readings");
    readings.create_index(Index::on(doc! { "sensor": 1, "second": -1 })).run().await?;

    // Concurrent tasks. Each batch of readings and the sensor's count are one transaction. Its closure is blocking code
    // on a blocking thread, and runs again after a conflict with another task.
    let sensors: Vec<_> = (0..4)
        .map(|sensor| {
            tokio::spawn(db.transact(move |tx| {
                let batch: Vec<Reading> =
                    (0..500).map(|second| Reading { sensor, second, celsius: 20.0 + f64::from(second % 7) }).collect();
                tx.collection("readings").insert_many(&batch).run()?;
                let sensors = tx.collection::<Document>("sensors");
                sensors.update_one(doc! { "_id": sensor }, doc! { "$inc": { "readings": 500 } }).upsert().run()
            }))
        })
        .collect();
    for sensor in sensors {
        sensor.await??;
    }

    // A stream reads the next batch while this task processes the current one. It occupies no thread.
    let mut hot =
        readings.find(doc! { "sensor": 2, "celsius": { "$gt": 25.5 } }).sort(doc! { "second": -1 }).run().await?;
    let mut seen = 0;
    while let Some(reading) = hot.next().await {
        let reading = reading?;
        if seen < 3 {
            println!("second {}: {} °C", reading.second, reading.celsius);
        }
        seen += 1;
    }
    println!("{seen} hot readings of sensor 2");

    // Drops a write that takes too long. It is applied completely or not at all.
    let cooler = readings.update_many(doc! {}, doc! { "$inc": { "celsius": -1.0 } }).run();
    match timeout(Duration::from_millis(1), cooler).await {
        Ok(done) => println!("{} readings corrected in time", done?.modified),
        Err(_) => println!("timed out: either no reading or every reading is corrected"),
    }

    // A transaction with an async closure, for decisions that need to await something else.
    let old = db
        .transact_async(async |tx| {
            let old = tx.collection::<Reading>("readings").delete_many(doc! { "second": { "$lt": 100 } }).await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<_, slate_core::Error>(old)
        })
        .await?;
    println!("{old} old readings deleted, {} left", readings.count_documents(doc! {}).run().await?);

    // Code without an async form, or loops of many small calls: blocking code in one hop to another thread.
    let warmest = db
        .run_blocking(|db| {
            let mut rows =
                db.collection::<Reading>("readings").find(doc! {}).projection(doc! { "celsius": 1 }).cursor()?;
            let mut warmest = f64::MIN;
            while rows.advance()? {
                warmest =
                    rows.current().and_then(|row| row.get_f64("celsius").ok()).map_or(warmest, |c| warmest.max(c));
            }
            Ok(warmest)
        })
        .await?;
    println!("the warmest: {warmest} °C");
    db.close().await?;
    Ok(())
}
