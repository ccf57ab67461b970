//! Three servers on one cluster, of which one after the other is killed while all write and indexes are built and dropped.
//!
//! For a minute: `SLATE_KILL_SECONDS=60 slate-tikv-cluster/cluster.sh with cargo test --workspace --all-features --test serve -- are_killed`

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use bson::{Bson, Document, doc};

use super::{Server, send};

const SERVERS: usize = 3;

/// The seconds that the servers are killed for, unless `SLATE_KILL_SECONDS` says more.
const SECONDS: u64 = 10;

/// How long a call is repeated at the end. Locks of a process that was killed are in the way for up to twenty seconds.
const PATIENCE: Duration = Duration::from_secs(90);

struct Slot {
    url: String,
    running: Mutex<(Server, String)>,
}

impl Slot {
    fn start(url: &str) -> Self {
        Self { url: url.into(), running: Mutex::new(serve(url)) }
    }

    fn uri(&self) -> String {
        self.running.lock().unwrap().1.clone()
    }

    /// Kills the server, and starts another one in its place.
    fn restart(&self) {
        let mut running = self.running.lock().unwrap();
        running.0.child.kill().unwrap();
        running.0.child.wait().unwrap();
        *running = serve(&self.url);
    }

    /// Executes a command. Returns the reply if the server acknowledges it.
    fn run(&self, command: Document) -> Option<Document> {
        let reply = send(&self.uri(), "test", command).ok()?;
        (reply.get_f64("ok").ok() == Some(1.0) && !reply.contains_key("writeErrors")).then_some(reply)
    }

    fn run_until_it_succeeds(&self, command: &Document) -> Document {
        let start = Instant::now();
        loop {
            if let Some(reply) = self.run(command.clone()) {
                return reply;
            }
            assert!(start.elapsed() < PATIENCE, "{command} fails: {:?}", send(&self.uri(), "test", command.clone()));
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn count(&self, query: Document, hint: Document) -> i32 {
        self.run_until_it_succeeds(&doc! { "count": "items", "query": query, "hint": hint }).get_i32("n").unwrap()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = running.0.child.kill();
        let _ = running.0.child.wait();
    }
}

fn serve(url: &str) -> (Server, String) {
    let mut server = Server::start(env!("CARGO_BIN_EXE_slate"), &["serve", url, "--port", "0"]);
    let uri = server.line();
    (server, uri)
}

fn random(below: usize) -> usize {
    use std::hash::{BuildHasher, Hasher, RandomState};

    usize::try_from(RandomState::new().build_hasher().finish() % u64::try_from(below).unwrap()).unwrap()
}

/// What is known of a document: its value of `a`, or that it does not exist. Nothing after a write without an acknowledgement.
type Known = BTreeMap<i32, Option<Option<Bson>>>;

/// Inserts, updates and deletes documents of its own.
fn write(slot: &Slot, first: i32, acknowledged: &AtomicUsize, done: &AtomicBool) -> Known {
    let mut known = Known::new();
    for n in 0.. {
        if done.load(SeqCst) {
            break;
        }
        let id = first + n;
        let mut apply = |id: i32, command: Document, a: Option<Bson>| {
            let reply = slot.run(command);
            let is_made = reply.is_some_and(|reply| reply.get_i32("n").ok() == Some(1));
            acknowledged.fetch_add(usize::from(is_made), SeqCst);
            known.insert(id, is_made.then_some(a));
            is_made
        };
        let inserted = apply(
            id,
            doc! { "insert": "items", "documents": [{ "_id": id, "a": n % 7, "u": id }] },
            Some(Bson::Int32(n % 7)),
        );
        if inserted && n % 3 == 0 {
            let a = Bson::Array(vec![Bson::Int32(n % 7), Bson::Int32(100 + n % 5)]);
            let update = doc! { "q": { "_id": id }, "u": { "$set": { "a": a.clone() } } };
            apply(id, doc! { "update": "items", "updates": [update] }, Some(a));
        }
        if inserted && n % 5 == 0 {
            apply(id, doc! { "delete": "items", "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, None);
        }
        if !inserted {
            thread::sleep(Duration::from_millis(50));
        }
    }
    known
}

fn create(name: &str) -> Document {
    let index = match name {
        "a" => doc! { "key": { "a": 1 }, "name": "a" },
        _ => doc! { "key": { "u": 1 }, "name": "u", "unique": true },
    };
    doc! { "createIndexes": "items", "indexes": [index] }
}

#[test]
fn indexes_are_complete_on_a_cluster_whose_servers_are_killed() {
    let Ok(driver) = std::env::var("SLATE_TIKV") else { return };
    let seconds = std::env::var("SLATE_KILL_SECONDS").map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let url = format!("tikv://{driver}/killed-{}", std::process::id());
    let slots: [Slot; SERVERS] = std::array::from_fn(|_| Slot::start(&url));
    let (acknowledged, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let [mut kills, mut changes] = [0, 0];
    let mut known = Known::new();
    thread::scope(|scope| {
        let (slots, acknowledged, done) = (&slots, &acknowledged, &done);
        let writers: Vec<_> = (0..SERVERS)
            .map(|number| {
                let first = i32::try_from(number).unwrap() * 1_000_000;
                scope.spawn(move || write(&slots[number], first, acknowledged, done))
            })
            .collect();
        let builder = scope.spawn(|| {
            let mut made = 0;
            while !done.load(SeqCst) {
                // Of an index that was half built another server builds the rest.
                for command in ["a", "u"]
                    .map(create)
                    .into_iter()
                    .chain(["a", "u"].map(|name| doc! { "dropIndexes": "items", "index": name }))
                {
                    made += usize::from(slots[random(SERVERS)].run(command).is_some());
                }
            }
            made
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            thread::sleep(Duration::from_millis(500 + u64::try_from(random(1_500)).unwrap()));
            slots[random(SERVERS)].restart();
            kills += 1;
        }
        done.store(true, SeqCst);
        changes = builder.join().unwrap();
        writers.into_iter().for_each(|writer| known.extend(writer.join().unwrap()));
    });
    let acknowledged = acknowledged.into_inner();
    println!("{kills} kills, {acknowledged} acknowledged writes, {changes} indexes created or dropped");
    assert!(kills > 1 && acknowledged > 30 && changes > 0);
    for name in ["a", "u"] {
        slots[random(SERVERS)].run_until_it_succeeds(&create(name));
    }
    for slot in &slots {
        let report = slot.run_until_it_succeeds(&doc! { "validate": "items", "full": true });
        assert_eq!(report.get_bool("valid").ok(), Some(true), "{report}");
        let documents = slot.count(doc! {}, doc! { "$natural": 1 });
        assert_eq!(slot.count(doc! { "u": { "$gte": 0 } }, doc! { "u": 1 }), documents);
        let large = || doc! { "a": { "$gte": 100 } };
        assert_eq!(slot.count(large(), doc! { "a": 1 }), slot.count(large(), doc! { "$natural": 1 }));
        // What was acknowledged is there.
        let all = slot.run_until_it_succeeds(&doc! { "find": "items", "batchSize": 1_000_000 });
        let batch = all.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let found: BTreeMap<i32, Bson> = batch
            .iter()
            .map(|document| document.as_document().unwrap())
            .map(|document| (document.get_i32("_id").unwrap(), document.get("a").unwrap().clone()))
            .collect();
        for (id, a) in known.iter().filter_map(|(id, known)| known.as_ref().map(|a| (id, a))) {
            assert_eq!(found.get(id), a.as_ref(), "_id {id}");
        }
        let written: BTreeSet<&i32> = known.keys().collect();
        assert!(found.keys().all(|id| written.contains(id)));
    }
}
