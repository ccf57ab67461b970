//! A shop as an HTTP service with axum, on any of Slate's stores.
//!
//! ```sh
//! cargo run -p axum-service                                          # reads examples/axum-service/service.toml
//! SHOP_DATABASE_URL=redb:./shop.slate cargo run -p axum-service -- my.toml
//! cargo run -p axum-service -- --mongodb 127.0.0.1:27017             # also shows the database to mongosh and web pages, read-only
//! ```
//!
//! | request | does |
//! |---|---|
//! | `POST /products` | inserts a product; 409 if its `sku` is already stored |
//! | `GET /products?filter=…&sort=…&fields=…&limit=…` | streams the products that match a filter, one per line |
//! | `GET /products/{id}` | returns one product; its version is in the header `ETag` |
//! | `PATCH /products/{id}` | sets fields, if the product has the version in the header `If-Match`; 412 if it has another |
//! | `DELETE /products/{id}` | deletes the product, under the same condition |
//! | `POST /orders` | takes goods from the stock and inserts an order, in one transaction; 409 if the stock is too low |
//! | `GET /sales` | streams orders and goods sold of each product |
//! | `GET /live` | a page that shows the products with the least stock, and changes when they do |
//! | `GET /live/products` | the rows of that page and their changes, as server-sent events |
//! | `POST /backups` | writes a backup beside running requests |
//! | `GET /health`, `GET /metrics` | for a supervisor and for Prometheus |
//!
//! Documents and filters are extended JSON.

mod failure;
mod json;
mod lines;
mod live;
mod operating;
mod orders;
mod products;
mod serve;
mod settings;
mod shop;

pub use serve::{serve, show_database};
pub use settings::Settings;
pub use shop::Shop;
