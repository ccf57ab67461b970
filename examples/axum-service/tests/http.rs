//! The requests of the service, on every store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use axum::http::{StatusCode, header};
use axum_service::Settings;
use common::{Client, Service, product, settings, urls_on_disk};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use slate_core::{
    Access, Database,
    bson::{Document, doc},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Runs a test on a new database of each store.
async fn on_every_store<F: Future<Output = ()>>(test: impl Fn(Service) -> F) {
    let folder = tempfile::tempdir().unwrap();
    for url in std::iter::once("memory:".to_owned()).chain(urls_on_disk(folder.path())) {
        println!("{url}");
        test(Service::start(&url, folder.path()).await).await;
    }
}

/// Creates a product; returns its path and its version.
async fn created(client: &mut Client, product: &Value) -> (String, String) {
    let reply = client.post("/products", product).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
    (reply.header(header::LOCATION).to_owned(), reply.header(header::ETAG).to_owned())
}

#[tokio::test]
async fn a_product_is_created_read_changed_and_deleted() {
    on_every_store(|service| async move {
        let mut client = service.client().await;
        let (path, version) = created(&mut client, &product("tea", 5, 2.5)).await;
        let read = client.get(&path).await;
        assert_eq!((read.status, read.header(header::ETAG)), (StatusCode::OK, &*version));
        assert_eq!(read.json()["sku"], "tea");
        assert_eq!(path, format!("/products/{}", read.json()["_id"]["$oid"].as_str().unwrap()));

        let changed = client.send("PATCH", &path, Some(&version), &json!({ "price": 3.0 })).await.unwrap();
        assert_eq!(changed.status, StatusCode::OK);
        assert_eq!((&changed.json()["price"], &changed.json()["stock"]), (&json!(3.0), &json!(5)));
        let newer = changed.header(header::ETAG).to_owned();
        assert_ne!(newer, version);

        // Another client that has read the first version.
        for method in ["PATCH", "DELETE"] {
            let late = client.send(method, &path, Some(&version), &json!({ "price": 1.0 })).await.unwrap();
            assert_eq!(late.status, StatusCode::PRECONDITION_FAILED, "{method}");
            let blind = client.send(method, &path, None, &json!({ "price": 1.0 })).await.unwrap();
            assert_eq!(blind.status, StatusCode::PRECONDITION_REQUIRED, "{method}");
        }
        assert_eq!(client.get(&path).await.json()["price"], 3.0);

        let deleted = client.send("DELETE", &path, Some(&newer), &Value::Null).await.unwrap();
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
        let again = client.send("DELETE", &path, Some(&newer), &Value::Null).await.unwrap();
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        assert_eq!(client.get("/products/unknown").await.status, StatusCode::NOT_FOUND);
        service.stop().await;
    })
    .await;
}

/// A page that applies the events of a stream to its rows.
struct Page {
    body: hyper::body::Incoming,
    text: String,
    rows: Vec<Value>,
}

impl Page {
    /// Reads events until the products are these, with these numbers in stock.
    async fn shows(&mut self, products: &[(&str, i64)]) {
        let shown = |row: &Value| (row["sku"].as_str().unwrap().to_owned(), row["stock"].as_i64().unwrap());
        while self.rows.iter().map(shown).ne(products.iter().map(|(sku, stock)| ((*sku).to_owned(), *stock))) {
            let chunk = self.body.frame().await.unwrap().unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                if event.starts_with(':') {
                    // A comment that keeps the connection open.
                    self.text = rest.to_owned();
                    continue;
                }
                let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                let data: Value = serde_json::from_str(line("data: ")).unwrap();
                let at = |name: &str| usize::try_from(data[name].as_u64().unwrap()).unwrap();
                match line("event: ") {
                    "added" => self.rows.insert(at("position"), data["product"].clone()),
                    "changed" => self.rows[at("position")] = data["product"].clone(),
                    "moved" => {
                        self.rows.remove(at("from"));
                        self.rows.insert(at("to"), data["product"].clone());
                    }
                    "removed" => drop(self.rows.remove(at("position"))),
                    other => panic!("{other}"),
                }
                self.text = rest.to_owned();
            }
        }
    }
}

#[tokio::test]
async fn a_page_is_told_of_the_products_with_the_least_stock() {
    on_every_store(|service| async move {
        let (mut client, mut connection) = (service.client().await, service.client().await);
        let (tea, _) = created(&mut client, &product("tea", 5, 2.5)).await;
        assert!(connection.get("/live").await.body.starts_with(b"<!doctype html>"));
        let body = connection.open("/live/products").await;
        let mut page = Page { body, text: String::new(), rows: Vec::new() };
        page.shows(&[("tea", 5)]).await;
        created(&mut client, &product("ink", 2, 1.0)).await;
        page.shows(&[("ink", 2), ("tea", 5)]).await;
        client.post("/orders", &json!({ "sku": "tea", "amount": 4 })).await;
        page.shows(&[("tea", 1), ("ink", 2)]).await;
        let version = client.get(&tea).await.header(header::ETAG).to_owned();
        client.send("DELETE", &tea, Some(&version), &Value::Null).await.unwrap();
        page.shows(&[("ink", 2)]).await;
        // The service does not wait for the page.
        service.stop().await;
        assert!(page.body.frame().await.is_none_or(|end| end.is_err()));
    })
    .await;
}

#[tokio::test]
async fn wrong_requests_are_refused_and_say_why() {
    on_every_store(|service| async move {
        let mut client = service.client().await;
        let (path, version) = created(&mut client, &product("tea", 5, 2.5)).await;
        created(&mut client, &product("ink", 5, 2.5)).await;

        let duplicate = client.post("/products", &product("tea", 1, 1.0)).await;
        assert_eq!((duplicate.status, &duplicate.json()["index"]), (StatusCode::CONFLICT, &json!("sku_1")));
        let taken = client.send("PATCH", &path, Some(&version), &json!({ "sku": "ink" })).await.unwrap();
        assert_eq!(taken.status, StatusCode::CONFLICT);

        let invalid = [
            json!({ "sku": "x" }), // no stock
            json!({ "sku": "x", "stock": -1 }),
            json!({ "sku": "x", "stock": 1, "version": 7 }),
            json!({ "sku": { "$oid": "no" }, "stock": 1 }),
            json!([1]),
        ];
        for body in invalid {
            let reply = client.post("/products", &body).await;
            assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{body}");
            assert!(reply.json()["error"].is_string());
        }
        let operator = client.search(&json!({ "filter": { "price": { "$about": 3 } } })).await;
        assert_eq!((operator.status, &operator.json()["path"]), (StatusCode::BAD_REQUEST, &json!("price")));
        assert_eq!(client.get("/products?filter=%7B").await.status, StatusCode::BAD_REQUEST);
        assert_eq!(client.get("/products?filtre=%7B%7D").await.status, StatusCode::BAD_REQUEST);
        let update = client.send("PATCH", &path, Some(&version), &json!({ "$where": 1 })).await.unwrap();
        assert_eq!(update.status, StatusCode::BAD_REQUEST);
        assert_eq!(client.get(&path).await.header(header::ETAG), version);
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_search_streams_what_matches_in_order() {
    on_every_store(|service| async move {
        let mut client = service.client().await;
        for n in 0..150 {
            let mut product = product(&format!("sku {n}"), n, f64::from(u8::try_from(n % 50).unwrap()));
            product["added"] = json!({ "$date": "2024-02-29T12:00:00Z" });
            product["text"] = json!("ü\n\"".repeat(100));
            created(&mut client, &product).await;
        }
        let all = client.search(&json!({})).await;
        assert_eq!(all.header(header::CONTENT_TYPE), "application/x-ndjson");
        assert_eq!(all.lines().len(), 150);
        assert_eq!(all.lines()[0]["text"], "ü\n\"".repeat(100));
        assert_eq!(all.lines()[0]["added"], json!({ "$date": "2024-02-29T12:00:00Z" }));

        let filter = json!({ "price": { "$gte": 48 }, "added": { "$lt": { "$date": "2025-01-01T00:00:00Z" } } });
        let fields = json!({ "_id": 0, "sku": 1 });
        let some = json!({ "filter": filter, "sort": { "price": -1, "stock": 1 }, "fields": fields, "limit": 3 });
        let some = client.search(&some).await.lines();
        assert_eq!(some, [json!({ "sku": "sku 49" }), json!({ "sku": "sku 99" }), json!({ "sku": "sku 149" })]);
        assert!(client.search(&json!({ "filter": { "sku": "none" } })).await.body.is_empty());
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_order_and_its_stock_are_one_transaction() {
    on_every_store(|service| async move {
        let mut client = service.client().await;
        let (path, _) = created(&mut client, &product("tea", 5, 2.5)).await;
        let order = |amount: i64, sku: &str| json!({ "sku": sku, "amount": amount });
        assert_eq!(client.post("/orders", &order(3, "tea")).await.status, StatusCode::CREATED);
        assert_eq!(client.post("/orders", &order(3, "tea")).await.status, StatusCode::CONFLICT);
        assert_eq!(client.post("/orders", &order(1, "ink")).await.status, StatusCode::NOT_FOUND);
        assert_eq!(client.post("/orders", &order(0, "tea")).await.status, StatusCode::BAD_REQUEST);
        assert_eq!(client.post("/orders", &json!({ "sku": "tea" })).await.status, StatusCode::BAD_REQUEST);
        assert_eq!(client.get(&path).await.json()["stock"], 2);
        assert_eq!(client.get("/sales").await.lines(), [json!({ "_id": "tea", "orders": 1, "sold": 3 })]);

        // Twenty clients order at once; the stock has two.
        let address = service.address;
        let clients: Vec<_> = (0..20)
            .map(|_| {
                tokio::spawn(async move {
                    let order = json!({ "sku": "tea", "amount": 1 });
                    Client::connect(address).await.unwrap().post("/orders", &order).await.status
                })
            })
            .collect();
        let mut sold = 0;
        for client in clients {
            match client.await.unwrap() {
                StatusCode::CREATED => sold += 1,
                other => assert_eq!(other, StatusCode::CONFLICT),
            }
        }
        assert_eq!(sold, 2);
        assert_eq!(client.get(&path).await.json()["stock"], 0);
        assert_eq!(client.get("/sales").await.lines(), [json!({ "_id": "tea", "orders": 3, "sold": 5 })]);
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn health_metrics_and_backups() {
    on_every_store(|service| async move {
        let mut client = service.client().await;
        let inserts = async |client: &mut Client| {
            let metrics = client.get("/metrics").await;
            let metrics = std::str::from_utf8(&metrics.body).unwrap().to_owned();
            ["slate_operation_failures_total", "slate_operations_total"].map(|name| {
                let name = format!("{name}{{operation=\"insert\"}} ");
                metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse::<u64>().unwrap()
            })
        };
        let [failures, calls] = inserts(&mut client).await;
        created(&mut client, &product("tea", 5, 2.5)).await;
        client.post("/products", &product("tea", 5, 2.5)).await;
        assert_eq!(inserts(&mut client).await, [failures + 1, calls + 2]);
        let health = client.get("/health").await;
        assert_eq!((health.status, &health.json()["status"]), (StatusCode::OK, &json!("ok")));

        let backup = client.post("/backups", &Value::Null).await;
        assert_eq!(backup.status, StatusCode::CREATED);
        let path = backup.json()["backup"].as_str().unwrap().to_owned();
        let url = format!("{}:{path}", health.json()["store"].as_str().unwrap());
        let copy = Database::builder(&url).access(Access::ReadOnly).open();
        let copy = if url.starts_with("memory:") { Database::open(&url) } else { copy };
        assert_eq!(copy.unwrap().collection::<Document>("products").count_documents(Document::new()).run().unwrap(), 1);
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn running_requests_end_before_the_service_does() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls_on_disk(folder.path()) {
        let service = Service::start(&url, folder.path()).await;
        let address = service.address;
        let clients: Vec<_> = (0..8)
            .map(|client| {
                tokio::spawn(async move {
                    let mut connection = Client::connect(address).await.unwrap();
                    let mut acknowledged = 0;
                    loop {
                        let product = product(&format!("{client} {acknowledged}"), 1, 1.0);
                        match connection.send("POST", "/products", None, &product).await {
                            Ok(reply) => assert_eq!(reply.status, StatusCode::CREATED),
                            Err(_) => return acknowledged,
                        }
                        acknowledged += 1;
                    }
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        service.stop().await;
        let mut acknowledged = 0;
        for client in clients {
            acknowledged += client.await.unwrap();
        }
        assert!(acknowledged > 0);

        let service = Service::start(&url, folder.path()).await;
        assert_eq!(service.client().await.search(&json!({})).await.lines().len(), acknowledged);
        service.stop().await;
    }
}

#[test]
fn variables_replace_settings() {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/service.toml"));
    let settings = Settings::load(file).unwrap();
    let listen = |name: &str| (name == "SHOP_LISTEN").then(|| "[::1]:80".to_owned());
    assert_eq!(settings.clone().replaced_by(listen).listen, "[::1]:80");
    let url = |name: &str| (name == "SHOP_DATABASE_URL").then(|| "redb:x".to_owned());
    let replaced = settings.clone().replaced_by(url);
    assert_eq!((&*replaced.database.url, replaced.listen == settings.listen), ("redb:x", true));
    assert!(Settings::load(Path::new("missing.toml")).unwrap_err().to_string().starts_with("missing.toml: "));
}

/// Sends a command in MongoDB's protocol and returns the reply.
async fn mongodb(stream: &mut TcpStream, command: Document) -> Document {
    let mut body = Vec::new();
    command.to_writer(&mut body).unwrap();
    let length = i32::try_from(16 + 4 + 1 + body.len()).unwrap();
    let mut message: Vec<u8> = [length, 1, 0, 2013, 0].into_iter().flat_map(i32::to_le_bytes).collect();
    message.push(0);
    message.extend(body);
    stream.write_all(&message).await.unwrap();
    let mut reply = vec![0; usize::try_from(stream.read_i32_le().await.unwrap()).unwrap() - 4];
    stream.read_exact(&mut reply).await.unwrap();
    Document::from_reader(&reply[17..]).unwrap()
}

#[tokio::test]
async fn clients_of_mongodb_look_into_the_running_service() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings("memory:", folder.path());
    let shop = axum_service::Shop::open(&settings).await.unwrap();
    let (http, shown) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (address, to_mongodb) = (http.local_addr().unwrap(), shown.local_addr().unwrap());
    tokio::spawn(axum_service::show_database(shown, shop.clone()));
    tokio::spawn(axum_service::serve(http, shop, std::future::pending()));
    created(&mut Client::connect(address).await.unwrap(), &product("tea", 5, 2.5)).await;

    let mut stream = TcpStream::connect(to_mongodb).await.unwrap();
    let found = mongodb(&mut stream, doc! { "find": "products", "filter": { "sku": "tea" }, "$db": "test" }).await;
    let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(batch[0].as_document().unwrap().get_str("sku").unwrap(), "tea");
    let refused = mongodb(&mut stream, doc! { "insert": "products", "documents": [{}], "$db": "test" }).await;
    assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{refused}");
}
