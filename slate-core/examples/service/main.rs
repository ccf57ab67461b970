//! A service with a database configuration in its settings. To change the store, edit one line of `service.toml`.
//!
//! ```sh
//! cargo run --example service                                      # reads slate-core/examples/service/service.toml
//! cargo run --example service -- my.toml
//! ```

use std::{error::Error, path::PathBuf, time::SystemTime};

use bson::{DateTime, doc, oid::ObjectId};
use serde::{Deserialize, Serialize};
use slate_core::{Collection, Config, Database, Index};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    listen: String,
    database: Config,
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    #[serde(rename = "_id")]
    id: ObjectId,
    customer: String,
    total: i64,
    placed: DateTime,
}

/// The service does not depend on a particular store.
struct Orders {
    orders: Collection<Order>,
}

impl Orders {
    fn open(db: &Database) -> slate_core::Result<Self> {
        let orders = db.collection("orders");
        // Does nothing if the index exists.
        orders.create_index(Index::on(doc! { "customer": 1, "placed": -1 })).run()?;
        Ok(Self { orders })
    }

    fn place(&self, customer: &str, total: i64) -> slate_core::Result<ObjectId> {
        let id = ObjectId::new();
        let order = Order { id, customer: customer.into(), total, placed: SystemTime::now().into() };
        self.orders.insert_one(&order)?;
        Ok(id)
    }

    fn latest(&self, customer: &str, count: u64) -> slate_core::Result<Vec<Order>> {
        self.orders.find(doc! { "customer": customer }).sort(doc! { "placed": -1 }).limit(count).run()?.collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let beside_this = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/service/service.toml"));
    let path = std::env::args_os().nth(1).map_or_else(beside_this, PathBuf::from);
    let settings: Settings =
        toml::from_str(&std::fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;

    let db = Database::open_config(&settings.database)?;
    let orders = Orders::open(&db)?;
    println!("would listen on {}, orders are in {} ({})", settings.listen, settings.database.url, db.store());

    orders.place("Ada", 1200)?;
    orders.place("Ada", 990)?;
    for order in orders.latest("Ada", 5)? {
        println!("{}: {} for {}", order.placed, order.id, order.total);
    }
    Ok(())
}
