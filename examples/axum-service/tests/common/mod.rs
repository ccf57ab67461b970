#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test program uses some of it")]

use std::{net::SocketAddr, path::Path};

use axum::http::{HeaderMap, StatusCode, header};
use axum_service::{Settings, Shop, serve};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use slate_core::{Config, Durability};
use tokio::{net::TcpListener, sync::oneshot};

/// One connection to the service.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        std::str::from_utf8(&self.body).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    /// Sends a request and reads the whole response. Fails if the service ends before the end of the body.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        version: Option<&str>,
        body: &Value,
    ) -> Result<Reply, hyper::Error> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "shop");
        if let Some(version) = version {
            request = request.header(header::IF_MATCH, version);
        }
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(body)).unwrap()).await?;
        let (head, body) = response.into_parts();
        Ok(Reply { status: head.status, headers: head.headers, body: body.collect().await?.to_bytes() })
    }

    /// Sends a `GET` request whose response does not end, and returns the body.
    pub(crate) async fn open(&mut self, path: &str) -> hyper::body::Incoming {
        let request = Request::builder().uri(path).header(header::HOST, "shop").body(Full::default()).unwrap();
        self.sender.ready().await.unwrap();
        self.sender.send_request(request).await.unwrap().into_body()
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send("GET", path, None, &Value::Null).await.unwrap()
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, None, body).await.unwrap()
    }

    /// Searches for products by the parameters `filter`, `sort`, `fields` and `limit` of an object.
    pub(crate) async fn search(&mut self, parameters: &Value) -> Reply {
        self.get(&format!("/products?{}", query(parameters))).await
    }
}

/// Returns the query of a URL. Objects become their JSON.
pub(crate) fn query(parameters: &Value) -> String {
    let parameters = parameters.as_object().unwrap().iter();
    let pairs: Vec<_> =
        parameters.map(|(name, value)| format!("{name}={}", percent_encoded(&value.to_string()))).collect();
    pairs.join("&")
}

fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Returns the settings of a service at a free port.
pub(crate) fn settings(url: &str, backups: &Path) -> Settings {
    let settings: Settings = toml::from_str("listen = '127.0.0.1:0'\nbackups = '.'\ndatabase.url = ''").unwrap();
    let mut database = Config::new(url);
    database.durability = Some(Durability::Deferred);
    Settings { backups: backups.to_owned(), database, ..settings }
}

/// The service, in this process.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start(url: &str, backups: &Path) -> Self {
        let settings = settings(url, backups);
        let shop = Shop::open(&settings).await.unwrap();
        let listener = TcpListener::bind(&settings.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap() };
            serve(listener, shop, stopped).await.unwrap();
        });
        Self { address, stop, served }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await.unwrap()
    }

    /// Stops the service and waits until the database is closed.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// Returns the URL of a new database for each store with files in this build.
pub(crate) fn urls_on_disk(folder: &Path) -> Vec<String> {
    let mut stores = Vec::new();
    if cfg!(feature = "redb") {
        stores.push("redb");
    }
    if cfg!(feature = "rocksdb") {
        stores.push("rocksdb");
    }
    stores.iter().map(|store| format!("{store}:{}", folder.join(store).display())).collect()
}

pub(crate) fn product(sku: &str, stock: i64, price: f64) -> Value {
    json!({ "sku": sku, "stock": stock, "price": price })
}
