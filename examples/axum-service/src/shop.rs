use std::{path::PathBuf, sync::Arc};

use bson::{RawDocumentBuf, doc};
use slate_core::{
    CancelToken, ChangeLog, CollectionOptions, Index, Migrations, Transaction, Validator,
    aio::{Collection, Database},
};

use crate::{Settings, orders::Order};

pub(crate) const PRODUCTS: &str = "products";
pub(crate) const ORDERS: &str = "orders";

/// Maximum size of the log of changes, in bytes. A page whose next change is no longer in it receives all its rows
/// again.
const LOG_BYTES: u64 = 16 << 20;

/// The database of the shop. Cheap to clone: every request has a clone.
#[derive(Clone, Debug)]
pub struct Shop {
    pub(crate) db: Database,
    pub(crate) backups: Arc<PathBuf>,
    /// Cancels responses that have no end, when the service stops.
    pub(crate) stopping: CancelToken,
}

impl Shop {
    /// Opens the database, which is created if it does not exist, and executes the missing migrations.
    ///
    /// # Errors
    /// Fails if the database cannot be opened, or was written by a later version of this program.
    pub async fn open(settings: &Settings) -> slate_core::Result<Self> {
        let db = Database::open_config(&settings.database).await?;
        db.migrate(&migrations()).await?;
        // Live queries read the log.
        db.enable_changes(ChangeLog::new().bytes(LOG_BYTES)).await?;
        Ok(Self { db, backups: Arc::new(settings.backups.clone()), stopping: CancelToken::new() })
    }

    /// Returns the collection of products, as raw documents.
    pub(crate) fn products(&self) -> Collection<RawDocumentBuf> {
        self.db.collection(PRODUCTS)
    }

    pub(crate) fn orders(&self) -> Collection<Order> {
        self.db.collection(ORDERS)
    }
}

/// Returns the migrations of all versions of this program. New steps must be appended.
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
