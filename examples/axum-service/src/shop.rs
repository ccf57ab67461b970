use std::{path::PathBuf, sync::Arc};

use bson::{RawDocumentBuf, doc};
use slate_core::{
    CancelToken, ChangeLog, CollectionOptions, Index, Migrations, Transaction, Validator,
    aio::{Collection, Database},
};

use crate::{Settings, orders::Order};

pub(crate) const PRODUCTS: &str = "products";
pub(crate) const ORDERS: &str = "orders";

/// The bytes of the log of changes. A page that falls behind it gets its rows again.
const LOG_BYTES: u64 = 16 << 20;

/// The database of the shop. Cheap to clone: every request has one.
#[derive(Clone, Debug)]
pub struct Shop {
    pub(crate) db: Database,
    pub(crate) backups: Arc<PathBuf>,
    /// Ends the responses that would not end by themselves.
    pub(crate) stopping: CancelToken,
}

impl Shop {
    /// Opens the database, creates it if it does not exist, and executes the migrations that it lacks.
    ///
    /// # Errors
    /// If the database cannot be opened, or was written by a later version of this program.
    pub async fn open(settings: &Settings) -> slate_core::Result<Self> {
        let db = Database::open_config(&settings.database).await?;
        db.migrate(&migrations()).await?;
        // Live queries read it.
        db.enable_changes(ChangeLog::new().bytes(LOG_BYTES)).await?;
        Ok(Self { db, backups: Arc::new(settings.backups.clone()), stopping: CancelToken::new() })
    }

    /// Returns the products, as stored.
    pub(crate) fn products(&self) -> Collection<RawDocumentBuf> {
        self.db.collection(PRODUCTS)
    }

    pub(crate) fn orders(&self) -> Collection<Order> {
        self.db.collection(ORDERS)
    }
}

/// What each version of this program adds. Steps are only ever appended.
fn migrations() -> Migrations {
    Migrations::new().step("products have a schema and a unique sku", products).step("orders by product", |tx| {
        tx.collection::<Order>(ORDERS).create_index(Index::on(doc! { "sku": 1 })).run().map(drop)
    })
}

fn products(tx: &Transaction) -> slate_core::Result<()> {
    let schema = doc! {
        "required": ["sku", "stock", "version"],
        "properties": {
            "sku": { "bsonType": "string", "minLength": 1 },
            "stock": { "bsonType": ["int", "long"], "minimum": 0 },
            "price": { "bsonType": "number", "minimum": 0 },
        },
    };
    let products = tx.collection::<RawDocumentBuf>(PRODUCTS);
    products.create_with(&CollectionOptions::new().validator(&Validator::new(doc! { "$jsonSchema": schema })))?;
    products.create_index(Index::on(doc! { "sku": 1 }).unique()).run().map(drop)
}
