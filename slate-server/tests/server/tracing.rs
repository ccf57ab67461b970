//! The spans of connections and commands.

use bson::doc;
use slate_core::{Database, aio};
use slate_server::Server;
use tokio::{net::TcpListener, runtime::Builder};

use crate::{
    capture::{Kind, capture},
    client::Client,
};

#[test]
fn connections_and_commands_have_spans() {
    let database = Database::open("memory:").unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Server::new(aio::Database::from(database));
    let shutdown = server.shutdown();
    let client = std::thread::spawn(move || {
        let mut client = Client::at(&address);
        client.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
        client.refused(doc! { "find": "c", "filter": { "$no": 1 } }, 2);
        let peer = client.stream.local_addr().unwrap().to_string();
        drop(client);
        shutdown.now();
        peer
    });
    // The server runs in this thread, and so do short commands.
    let (served, captured) = capture(|| runtime.block_on(server.serve(listener)));
    served.unwrap();
    let peer = client.join().unwrap();
    let of_server: Vec<_> = captured.iter().filter(|span| span.target == "slate::server").collect();
    let [connection, insert, find] = of_server.as_slice() else { panic!("{of_server:?}") };
    assert_eq!((connection.kind, connection.name, connection.field("peer")), (Kind::Span, "connection", Some(&*peer)));
    for (span, command, code) in [(insert, "insert", None), (find, "find", Some("2"))] {
        assert_eq!((span.name, span.parent, span.is_closed), ("command", Some(connection.id), true));
        assert_eq!((span.field("command"), span.field("database")), (Some(command), Some("shop")));
        assert_eq!((span.field("code"), span.field("error").is_some()), (code, code.is_some()));
        assert!(span.field("duration_us").unwrap().parse::<u64>().is_ok());
    }
    let write = captured.iter().find(|span| span.field("operation") == Some("insert")).unwrap();
    assert_eq!(write.parent, Some(insert.id), "a call of the library is part of its command");
}
