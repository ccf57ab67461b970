//! Measures how soon a waiting change stream returns an event: by `watch`, by `aio`, and by an awaiting `getMore` over TCP.
//!
//! ```sh
//! cargo run --profile bench -p slate-server --example wake_up
//! cargo run --profile bench -p slate-server --example wake_up 20000    # events for each line
//! ```
//!
//! A thread inserts a document each millisecond, another one waits for the events. A time is from the return of the insert to the return
//! of the wait; it is 0 if the wait returns first.

use std::{
    error::Error,
    io::{Read, Write},
    net::TcpStream,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use bson::{Document, RawDocumentBuf, rawdoc};
use slate_core::{ChangeLog, Database, aio};
use slate_server::TestServer;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NO_STAGES: [Document; 0] = [];

/// Events before the measured ones.
const WARM_UP: usize = 100;

fn main() -> Outcome<()> {
    let events = std::env::args().nth(1).map_or(Ok(2_000), |events| events.parse())?;
    println!("{:<8} {:<28} {:>10} {:>10} {:>10} {:>10}", "store", "stream", "median", "99 %", "longest", "insert");
    for store in ["memory", "redb"] {
        let ways: [(&str, Follow); 3] = [
            ("watch, on a thread", watched),
            ("aio, a task of tokio", awaited),
            ("getMore over TCP, one client", over_tcp),
        ];
        for (name, follow) in ways {
            let folder = tempfile::tempdir()?;
            let url = match store {
                "redb" => format!("redb:{}", folder.path().join("db.slate").display()),
                store => format!("{store}:"),
            };
            let db = Database::builder(&url).durability(slate_core::Durability::Deferred).open()?;
            db.enable_changes(ChangeLog::new())?;
            let (mut times, mut inserts) = measure(&db, follow, events)?;
            times.sort_unstable();
            inserts.sort_unstable();
            let show = |times: &[Duration], hundredths: usize| {
                let time = times.get((times.len().saturating_sub(1)) * hundredths / 100).copied().unwrap_or_default();
                format!("{:.1} µs", time.as_secs_f64() * 1e6)
            };
            let (median, most, longest) = (show(&times, 50), show(&times, 99), show(&times, 100));
            println!("{store:<8} {name:<28} {median:>10} {most:>10} {longest:>10} {:>10}", show(&inserts, 50));
        }
    }
    Ok(())
}

/// Follows the collection `users` of the database `test`. Sends an instant when it has begun, and then when each event has come, until
/// nobody receives them.
type Follow = fn(Database, Sender<Instant>) -> Outcome<()>;

/// Returns the times from the return of an insert to that of the wait, and those of the inserts.
fn measure(db: &Database, follow: Follow, events: usize) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    let (sender, receiver): (_, Receiver<Instant>) = channel();
    let users = db.collection::<RawDocumentBuf>("users");
    users.create()?;
    let followed = db.clone();
    let follower = thread::spawn(move || follow(followed, sender));
    receiver.recv()?;
    let (mut times, mut inserts) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + events {
        // The stream waits again.
        thread::sleep(Duration::from_millis(1));
        let begun = Instant::now();
        users.insert_one(&rawdoc! { "name": "Ada", "number": i64::try_from(number)? })?;
        let written = Instant::now();
        let seen = receiver.recv()?;
        if number >= WARM_UP {
            times.push(seen.saturating_duration_since(written));
            inserts.push(written - begun);
        }
    }
    drop(receiver);
    // One more event, which ends the follower.
    users.insert_one(&rawdoc! {})?;
    follower.join().map_err(|_| "the follower has panicked")??;
    Ok((times, inserts))
}

fn watched(db: Database, seen: Sender<Instant>) -> Outcome<()> {
    let stream = db.collection::<RawDocumentBuf>("users").watch(NO_STAGES).run()?;
    seen.send(Instant::now())?;
    for event in stream {
        event?;
        if seen.send(Instant::now()).is_err() {
            break;
        }
    }
    Ok(())
}

fn awaited(db: Database, seen: Sender<Instant>) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    runtime.block_on(async {
        let users = aio::Database::from(db).collection::<RawDocumentBuf>("users");
        let mut stream = users.watch(NO_STAGES).await?;
        seen.send(Instant::now())?;
        while let Some(event) = stream.next().await {
            event?;
            if seen.send(Instant::now()).is_err() {
                break;
            }
        }
        Ok(())
    })
}

fn over_tcp(db: Database, seen: Sender<Instant>) -> Outcome<()> {
    let server = TestServer::of(db)?;
    let address = server.uri().trim_start_matches("mongodb://").trim_end_matches('/');
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    let watch = rawdoc! { "aggregate": "users", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "test" };
    let opened = run(&mut connection, &watch)?;
    let id = opened.get_document("cursor")?.get_i64("id")?;
    let more = rawdoc! { "getMore": id, "collection": "users", "maxTimeMS": 10_000, "$db": "test" };
    seen.send(Instant::now())?;
    loop {
        let batch = run(&mut connection, &more)?;
        let events = batch.get_document("cursor")?.get_array("nextBatch")?.into_iter().count();
        for _ in 0..events {
            if seen.send(Instant::now()).is_err() {
                return Ok(());
            }
        }
    }
}

/// Sends a command, and receives its reply.
fn run(connection: &mut TcpStream, command: &RawDocumentBuf) -> Outcome<RawDocumentBuf> {
    const OP_MSG: i32 = 2013;
    // The lengths, the number of the request and of what it replies to, the operation; then flags and the kind of the only section.
    const HEAD: usize = 21;
    let length = i32::try_from(HEAD + command.as_bytes().len())?;
    let head = [length, 1, 0, OP_MSG, 0].map(i32::to_le_bytes).concat();
    connection.write_all(&[&*head, &[0], command.as_bytes()].concat())?;
    let mut head = [0; HEAD];
    connection.read_exact(&mut head)?;
    let length = head.first_chunk().map_or(0, |length| i32::from_le_bytes(*length));
    let mut body = vec![0; usize::try_from(length)?.checked_sub(HEAD).ok_or("a reply is too short")?];
    connection.read_exact(&mut body)?;
    Ok(RawDocumentBuf::from_bytes(body)?)
}
