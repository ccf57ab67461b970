//! Transactions: all or nothing over several collections, tried again on a conflict; snapshots beside them.
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

/// What can go wrong that is no fault of the database.
#[derive(Debug, PartialEq)]
enum Transfer {
    Done,
    NotEnough,
}

/// Several collections, one commit. Run again from its beginning where another writer came first.
fn transfer(tx: &Transaction, from: &str, to: &str, amount: i64) -> Result<Transfer> {
    let accounts = tx.collection::<Account>("accounts");
    // A condition and a change in one: nobody can come between.
    let enough = doc! { "_id": from, "balance": { "$gte": amount } };
    if accounts.update_one(enough, doc! { "$inc": { "balance": -amount } }).run()?.matched == 0 {
        return Ok(Transfer::NotEnough);
    }
    accounts.update_one(doc! { "_id": to }, doc! { "$inc": { "balance": amount } }).upsert().run()?;
    tx.collection::<Document>("ledger").insert_one(&doc! { "from": from, "to": to, "amount": amount })?;
    Ok(Transfer::Done)
}

fn total(db: &Database) -> Result<i64> {
    // Reads through one snapshot belong together, whatever is committed meanwhile.
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

    // Writers at once: those that meet are tried again, and no amount is lost.
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
    println!("in all: {}, transfers: {}", total(&db)?, db.collection::<Document>("ledger").count(doc! {})?);
    assert_eq!(total(&db)?, 300);

    // An error rolls everything back.
    let refused = db.transact(|tx| {
        transfer(tx, "Ada", "Bob", 1)?;
        tx.collection::<Account>("accounts").insert_one(&Account { owner: "Bob".into(), balance: 0 })
    });
    println!("rolled back: {}", refused.err().filter(|error| error.kind() == ErrorKind::DuplicateKey).is_some());

    // By hand: a transaction that is dropped is rolled back, and a conflict is the caller's to handle.
    let tx = db.begin()?;
    let done = transfer(&tx, "Eve", "Ada", 1_000_000)?;
    println!("by hand: {done:?}");
    tx.rollback();

    // Serializable: what was read may not have changed either. Here, that at least one account stays open.
    let careful = TransactionOptions::new().isolation(Isolation::Serializable).deadline(Duration::from_secs(2));
    db.transact_with(&careful, |tx| {
        let accounts = tx.collection::<Account>("accounts");
        if accounts.count(doc! {})? > 1 {
            accounts.delete_one(doc! { "_id": "Eve" }).run()?;
        }
        Ok(())
    })?;
    println!("accounts left: {:?}", accounts.distinct("_id", doc! {})?);
    Ok(())
}
