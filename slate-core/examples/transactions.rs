//! Transactions over several collections with retries after conflicts, and snapshots.
//!
//! ```sh
//! cargo run --example transactions
//! ```

use std::{thread, time::Duration};

use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use slate_core::{Database, ErrorKind, Isolation, Result, Transaction, TransactionOptions};

#[derive(Serialize, Deserialize)]
struct Account {
    #[serde(rename = "_id")]
    owner: String,
    balance: i64,
}

/// Errors of the application, in addition to those of the database.
#[derive(Debug, PartialEq)]
enum Transfer {
    Done,
    NotEnough,
}

/// One commit for several collections. The closure runs again after a conflict with another writer.
fn transfer(tx: &Transaction, from: &str, to: &str, amount: i64) -> Result<Transfer> {
    let accounts = tx.collection::<Account>("accounts");
    // One call checks a condition and changes the document atomically.
    let enough = doc! { "_id": from, "balance": { "$gte": amount } };
    if accounts.update_one(enough, doc! { "$inc": { "balance": -amount } }).run()?.matched == 0 {
        return Ok(Transfer::NotEnough);
    }
    accounts.update_one(doc! { "_id": to }, doc! { "$inc": { "balance": amount } }).upsert().run()?;
    tx.collection::<Document>("ledger").insert_one(&doc! { "from": from, "to": to, "amount": amount })?;
    Ok(Transfer::Done)
}

fn total(db: &Database) -> Result<i64> {
    // All reads of one snapshot see the same commit, independent of later commits.
    let snapshot = db.snapshot()?;
    snapshot.collection::<Account>("accounts").find(doc! {}).run()?.map(|account| Ok(account?.balance)).sum()
}

fn main() -> Result<()> {
    let db = Database::open("memory:")?;
    let accounts = db.collection::<Account>("accounts");
    let owners = ["Ada", "Bob", "Eve"];
    for owner in owners {
        accounts.insert_one(&Account { owner: owner.into(), balance: 100 })?;
    }

    // Concurrent writers: conflicting transactions are retried, and no amount is lost.
    thread::scope(|scope| {
        let pairs = owners.iter().zip(owners.iter().cycle().skip(1));
        let threads: Vec<_> = pairs
            .map(|(from, to)| {
                let db = &db;
                scope.spawn(move || {
                    for amount in 1..=20 {
                        db.transact(|tx| transfer(tx, from, to, amount))?;
                    }
                    Ok::<(), slate_core::Error>(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    println!(
        "in all: {}, transfers: {}",
        total(&db)?,
        db.collection::<Document>("ledger").count_documents(doc! {}).run()?
    );
    assert_eq!(total(&db)?, 300);

    // An error rolls back the transaction.
    let refused = db.transact(|tx| {
        transfer(tx, "Ada", "Bob", 1)?;
        tx.collection::<Account>("accounts").insert_one(&Account { owner: "Bob".into(), balance: 0 })
    });
    println!("rolled back: {}", refused.err().filter(|error| error.kind() == ErrorKind::DuplicateKey).is_some());

    // Without `transact`: dropping a transaction rolls it back, and the caller handles conflicts.
    let tx = db.begin()?;
    let done = transfer(&tx, "Eve", "Ada", 1_000_000)?;
    println!("by hand: {done:?}");
    tx.rollback();

    // Serializable: documents that were read must also be unchanged at the commit. Here, at least one account stays
    // open.
    let careful = TransactionOptions::new().isolation(Isolation::Serializable).deadline(Duration::from_secs(2));
    db.transact_with(&careful, |tx| -> slate_core::Result<()> {
        let accounts = tx.collection::<Account>("accounts");
        if accounts.count_documents(doc! {}).run()? > 1 {
            accounts.delete_one(doc! { "_id": "Eve" }).run()?;
        }
        Ok(())
    })?;
    println!("accounts left: {:?}", accounts.distinct("_id", doc! {}).run()?);
    Ok(())
}
