//! Serves a database's metrics to Prometheus, without an HTTP framework.
//!
//! ```sh
//! cargo run --example metrics                     # does some work and prints the metrics
//! cargo run --example metrics -- 127.0.0.1:9464   # serves them at http://127.0.0.1:9464/metrics
//! ```
//!
//! A service calls `Metrics::prometheus` in the handler of its own HTTP framework.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    time::Duration,
};

use bson::doc;
use slate_core::{Database, Prometheus};

fn text(db: &Database) -> slate_core::Result<String> {
    Ok(db.metrics().prometheus().size(db.size()?).to_string())
}

/// Answers each request with the metrics.
fn serve(db: &Database, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(address)?;
    println!("http://{}/metrics", listener.local_addr()?);
    for stream in listener.incoming() {
        let mut stream = stream?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        // The request's lines up to the empty one. A client that sends nothing gets no answer.
        let mut lines = BufReader::new(&stream).lines();
        if !lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
            continue;
        }
        let body = text(db)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            Prometheus::CONTENT_TYPE,
            body.len()
        );
        // The client may be gone.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
    Ok(())
}

fn work(db: &Database) -> slate_core::Result<()> {
    let users = db.collection("users");
    users.insert_many(&(0..1_000).map(|n| doc! { "_id": n, "age": n % 90 }).collect::<Vec<_>>()).run()?;
    for n in 0..100 {
        users.find_by_id(n)?;
        users.find(doc! { "age": n }).collect()?;
    }
    users.delete_many(doc! { "age": { "$lt": 18 } }).run()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open("memory:")?;
    work(&db)?;
    match std::env::args().nth(1) {
        Some(address) => serve(&db, &address),
        None => {
            print!("{}", text(&db)?);
            Ok(())
        }
    }
}
