use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use bson::{DateTime, Document, RawDocumentBuf, doc, oid::ObjectId};
use serde::{Deserialize, Serialize};

use crate::{
    Shop,
    failure::Failure,
    json::{Json, Stored},
    lines::Lines,
    shop::{ORDERS, PRODUCTS},
};

/// An order, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    #[serde(rename = "_id")]
    id: ObjectId,
    sku: String,
    amount: i64,
    at: DateTime,
}

/// The body of `POST /orders`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    sku: String,
    amount: i64,
}

/// `POST /orders`: takes goods from the stock and inserts the order, in one transaction.
pub(crate) async fn create(State(shop): State<Shop>, Json(request): Json) -> Result<Response, Failure> {
    let request = bson::deserialize_from_document(request);
    let Request { sku, amount } = request.map_err(|error| Failure::Invalid(error.to_string()))?;
    if amount < 1 {
        return Err(Failure::Invalid("amount: expected at least 1".into()));
    }
    let order = Order { id: ObjectId::new(), sku, amount, at: DateTime::now() };
    let id = order.id;
    shop.db.transact(move |tx| place(tx, &order)).await?;
    let stored = shop.orders().with_type().find_by_id(id).await?.ok_or(Failure::NotFound)?;
    Ok((StatusCode::CREATED, Stored(stored)).into_response())
}

/// Executes an order in a transaction, which is repeated after a conflict and rolled back after an error.
fn place(tx: &slate_core::Transaction, order: &Order) -> Result<(), Failure> {
    let products = tx.collection::<Document>(PRODUCTS);
    let available = doc! { "sku": &order.sku, "stock": { "$gte": order.amount } };
    let taken = doc! { "$inc": { "stock": -order.amount, "version": 1_i64 } };
    if products.update_one(available, taken).run()?.matched == 0 {
        let product = products.find_one(doc! { "sku": &order.sku }).run()?;
        return Err(if product.is_some() { Failure::OutOfStock } else { Failure::NotFound });
    }
    tx.collection(ORDERS).insert_one(order)?;
    Ok(())
}

/// `GET /sales`: orders and goods sold of each product.
pub(crate) async fn sales(State(shop): State<Shop>) -> Result<Lines, Failure> {
    let sales = shop.orders().aggregate([
        doc! { "$group": { "_id": "$sku", "orders": { "$sum": 1 }, "sold": { "$sum": "$amount" } } },
        doc! { "$sort": { "_id": 1 } },
    ]);
    Ok(Lines(sales.with_type::<RawDocumentBuf>().await?))
}
