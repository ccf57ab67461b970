//! Kills the service, a separate process, under the load of many clients, and starts it again. Every acknowledged change must
//! exist, and every transaction as a whole or not at all.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{StatusCode, header};
use common::{Client, product, urls_on_disk};
use serde_json::{Value, json};
use slate_core::Database;

const CLIENTS: usize = 24;
const KILLS: usize = 3;
/// Minimum time under load before the service is killed. It is longer, up to [`LOAD_LIMIT`], until clients have received
/// [`LEAST_ANSWERS`].
const LOAD: Duration = Duration::from_millis(700);
const LOAD_LIMIT: Duration = Duration::from_secs(20);
const LEAST_ANSWERS: usize = 6 * CLIENTS;
const STOCK: i64 = 1_000_000;

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(url: &str, folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_axum-service"))
            .env("SHOP_LISTEN", "127.0.0.1:0")
            .env("SHOP_BACKUPS", folder)
            .env("SHOP_DATABASE_URL", url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(',').next()).unwrap();
        Self { address: address.parse().unwrap(), child }
    }

    /// Ends it as `kill -9` does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, and returns whether the service ended without an error.
    fn terminate(mut self) -> bool {
        let sent = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status().unwrap();
        sent.success() && self.child.wait().unwrap().success()
    }
}

/// The changes that the service has acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Products, with the last acknowledged value of `n` and the one that was requested last.
    products: HashMap<String, (i64, i64)>,
    orders: Vec<Value>,
}

/// Repeatedly inserts a product, changes it, and places an order, until the service has ended.
async fn load(address: SocketAddr, name: String, answers: Arc<AtomicUsize>) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let Ok(mut client) = Client::connect(address).await else { return acknowledged };
    for n in 0.. {
        let sku = format!("{name} {n}");
        let mut new = product(&sku, 1, 1.0);
        new["n"] = json!(0);
        let Ok(reply) = client.send("POST", "/products", None, &new).await else { break };
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        acknowledged.products.insert(sku.clone(), (0, 1));

        let (path, version) = (reply.header(header::LOCATION), reply.header(header::ETAG));
        let Ok(reply) = client.send("PATCH", path, Some(version), &json!({ "n": 1 })).await else { break };
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        acknowledged.products.insert(sku, (1, 1));

        let order = json!({ "sku": "shared", "amount": 1 + n % 3 });
        let Ok(reply) = client.send("POST", "/orders", None, &order).await else { break };
        match reply.status {
            StatusCode::CREATED => acknowledged.orders.push(reply.json()),
            // All clients change one stock, so an order can conflict until its time is over. It is then not acknowledged.
            other => assert_eq!(other, StatusCode::SERVICE_UNAVAILABLE, "{reply:?}"),
        }
        answers.fetch_add(3, Ordering::Relaxed);
    }
    acknowledged
}

/// Kills the service under load, and adds the changes that it has acknowledged.
async fn load_and_kill(process: Process, round: usize, acknowledged: &mut Acknowledged) {
    let address = process.address;
    let answers = Arc::new(AtomicUsize::new(0));
    let client = |client| tokio::spawn(load(address, format!("{round} {client}"), Arc::clone(&answers)));
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let start = Instant::now();
    while start.elapsed() < LOAD || answers.load(Ordering::Relaxed) < LEAST_ANSWERS && start.elapsed() < LOAD_LIMIT {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process.kill();
    for client in clients {
        let Acknowledged { products, orders } = client.await.unwrap();
        acknowledged.products.extend(products);
        acknowledged.orders.extend(orders);
    }
}

/// Checks that the service returns every change that it has acknowledged.
async fn check(address: SocketAddr, acknowledged: &Acknowledged) {
    let mut client = Client::connect(address).await.unwrap();
    let stored = client.search(&json!({})).await.lines();
    let stored: BTreeMap<&str, &Value> =
        stored.iter().map(|product| (product["sku"].as_str().unwrap(), product)).collect();
    for (sku, (least, most)) in &acknowledged.products {
        let n = stored.get(&**sku).unwrap_or_else(|| panic!("{sku} is lost"))["n"].as_i64().unwrap();
        assert!((*least..=*most).contains(&n), "{sku}: {n}, acknowledged {least}");
    }

    let sales = client.get("/sales").await.lines();
    let sold = sales.first().map_or(0, |sales| sales["sold"].as_i64().unwrap());
    assert_eq!(stored["shared"]["stock"].as_i64().unwrap(), STOCK - sold, "an order without its goods, or the reverse");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_survives_kills() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls_on_disk(folder.path()) {
        let mut process = Process::start(&url, folder.path());
        let shared =
            Client::connect(process.address).await.unwrap().post("/products", &product("shared", STOCK, 1.0)).await;
        assert_eq!(shared.status, StatusCode::CREATED);

        let mut acknowledged = Acknowledged::default();
        for round in 0..KILLS {
            load_and_kill(process, round, &mut acknowledged).await;
            process = Process::start(&url, folder.path());
            check(process.address, &acknowledged).await;
        }
        println!("{url}: {} products, {} orders", acknowledged.products.len(), acknowledged.orders.len());
        assert!(acknowledged.products.len() > CLIENTS && acknowledged.orders.len() > CLIENTS);
        assert!(process.terminate());

        let db = Database::open(&url).unwrap();
        assert!(db.verify().run().unwrap().is_sound());
        let orders = db.collection::<slate_core::bson::Document>("orders");
        for order in &acknowledged.orders {
            let id = slate_core::bson::Bson::try_from(order["_id"].clone()).unwrap();
            assert!(orders.find_by_id(id).unwrap().is_some(), "{order} is lost");
        }
    }
}
