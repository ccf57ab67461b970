//! Tests of properties that only this backend has, on the cluster in `SLATE_TIKV`: see `slate-tikv-cluster/README.md`. The conformance suite tests
//! the contract.

mod busy_nodes;
mod slow_nodes;
mod transfers;

use std::{
    iter,
    sync::Arc,
    time::{Duration, Instant},
};

use tikv_client::{TimestampExt as _, transaction::Mutation};

use super::{Address, Options, TikvStore, layout::Area, proto, random, read, regions::Region, safepoint, value::CHUNK};
use crate::{
    Bounds, Cursor, Durability, Edge, Error, Guard, Keyspace, PointReader, Store, Transaction, TransactionExt, View,
};

const A: Keyspace = Keyspace(1);
const DEFINITIONS: Keyspace = Keyspace(0);
const NOW: Duration = Duration::ZERO;

/// Returns the address of an empty database; `None` without a cluster. With TLS if `SLATE_TIKV_TLS` names a folder with certificates.
fn address() -> Option<Address> {
    address_of("test")
}

/// Returns the address of an empty database whose name begins with `name`.
fn address_of(name: &str) -> Option<Address> {
    let driver = std::env::var("SLATE_TIKV").ok()?;
    let tls = std::env::var("SLATE_TIKV_TLS").map_or_else(
        |_| String::new(),
        |folder| format!("?ca={folder}/ca.pem&cert={folder}/client.pem&key={folder}/client.key"),
    );
    Some(Address::parse(&format!("tikv://{driver}/{name}-{:x}{tls}", random())).unwrap())
}

fn open() -> Option<TikvStore> {
    Some(TikvStore::open(&address()?, &Options::default()).unwrap())
}

fn put_all(store: &TikvStore, entries: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
    let mut transaction = store.begin(NOW).unwrap();
    entries.into_iter().for_each(|(key, value)| transaction.put(A, &key, &value).unwrap());
    transaction.commit(Durability::Sync).unwrap();
}

/// Returns the number of stored keys in an area of a keyspace.
fn stored(store: &TikvStore, area: Area, keyspace: Keyspace) -> usize {
    let (cluster, at) = (Arc::clone(&store.cluster), store.snapshot().unwrap().at);
    let range = cluster.layout.all(area, keyspace);
    store.cluster.runtime.wait(read::keys(cluster, at, read::Unread::all(range), 10_000)).unwrap().keys.len()
}

#[test]
fn a_transaction_over_the_limit_of_keys_is_refused_and_stays_usable() {
    let Some(store) = open() else { return };
    let mut transaction = store.begin(NOW).unwrap();
    let keys: Vec<[u8; 4]> = (0..40_000_u32).map(u32::to_be_bytes).collect();
    let writes: Vec<(&[u8], Option<&[u8]>)> = keys.iter().map(|key| (&key[..], Some(&b"v"[..]))).collect();
    let Err(Error::TooLarge(excess)) = transaction.write(A, &writes) else { panic!("it was accepted") };
    assert_eq!(excess.what, "transaction");
    transaction.write(A, &writes[..1_000]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(store.snapshot().unwrap().count(A, Bounds::ALL, |_| true).unwrap(), Some(1_000));
}

#[test]
fn the_chunks_of_a_large_value_are_deleted_with_it() {
    let Some(store) = open() else { return };
    let large = vec![7; 3 * CHUNK + 1];
    put_all(&store, [(b"k".to_vec(), large.clone())]);
    assert_eq!(stored(&store, Area::Chunks, A), 4);
    // A cursor lends the value. A transaction also reads it, and so knows the chunks that it replaces.
    let mut cursor = store.snapshot().unwrap().cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::Last).unwrap() && cursor.current() == Some((b"k", &large)));
    let mut transaction = store.begin(NOW).unwrap();
    assert_eq!(transaction.view().get(A, b"k", <[u8]>::len).unwrap(), Some(large.len()));
    transaction.put(A, b"k", &large[..2 * CHUNK]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(stored(&store, Area::Chunks, A), 2);
    store.drop_keyspace(A, NOW).unwrap();
    assert_eq!((stored(&store, Area::Chunks, A), stored(&store, Area::Entries, A)), (0, 0));
}

#[test]
fn a_scan_reads_pages_of_bounded_bytes_at_one_timestamp() {
    let Some(store) = open() else { return };
    put_all(&store, (0..6_000_u32).map(|n| (n.to_be_bytes().to_vec(), vec![1; 100])));
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    put_all(&store, (0..6_000_u32).step_by(2).map(|n| (n.to_be_bytes().to_vec(), vec![2; 100])));
    let spent = store.cluster.round_trips();
    let mut seen = 1;
    while cursor.step_forward().unwrap() {
        assert_eq!(cursor.current().unwrap().1, [1; 100]);
        seen += 1;
    }
    let pages = store.cluster.round_trips() - spent + 1;
    assert!(seen == 6_000 && pages <= 5, "{seen} entries in {pages} pages");
    // Values of almost a mebibyte: a page of as many entries as the first would be longer than a client accepts by default.
    let (first, large) = (b"large".to_vec(), vec![9; CHUNK - 10]);
    for part in 0..3_u8 {
        put_all(&store, (0..8_u8).map(|n| ([&first[..], &[part, n]].concat(), large.clone())));
    }
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, Bounds { start: Some(&first), end: None }).unwrap();
    assert!(cursor.seek(Edge::Last).unwrap());
    for _ in 1..24 {
        assert!(cursor.current().unwrap().1 == large && cursor.step_back().unwrap());
    }
    assert!(!cursor.step_back().unwrap());
    let keys: Vec<Vec<u8>> = (0..8_u8).map(|n| [&first[..], &[1, n]].concat()).collect();
    let mut points = view.point_reader().unwrap();
    points.load(&keys.iter().map(|key| (A, &key[..])).collect::<Vec<_>>()).unwrap();
    assert!((0..8).all(|at| points.loaded(at) == Some(&large)));
}

#[test]
fn the_next_page_is_requested_before_a_page_is_used_up() {
    let Some(store) = open() else { return };
    put_all(&store, (0..3_000_u32).map(|n| (n.to_be_bytes().to_vec(), vec![1; 100])));
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    let pages = || view.round_trips().unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    let mut requested = vec![pages()];
    while cursor.step_forward().unwrap() {
        requested.push(pages());
    }
    // The first page has 64 entries, the second one 256, the third one 1,024. After the first page none is requested ahead.
    let at = |entry: usize| requested[entry];
    assert_eq!((at(0), at(63)), (1, 1));
    assert_eq!((at(64), at(64 + 255)), (3, 3), "the third page travels from the first entry of the second one on");
    assert_eq!((at(320), at(320 + 1_023)), (4, 4), "the fourth one");
    assert_eq!((at(1_344), at(2_999)), (4, 4), "it is the last one");
}

/// Fails if the client changes the text of its error for messages that are too long: then the same request would be repeated.
#[test]
fn pages_that_are_longer_than_a_message_are_read_in_parts() {
    let Some(address) = address() else { return };
    let store = TikvStore::open(&address, &Options::default()).unwrap();
    let (long, count) = (vec![9; CHUNK - 10], 6_000);
    // Pages of short entries grow to thousands of entries. The next such page contains the long entries.
    put_all(&store, (0..count).map(|n: u32| (n.to_be_bytes().to_vec(), vec![1; 100])));
    for part in 0..2 {
        put_all(&store, (0..8).map(|n| ((count + part * 8 + n).to_be_bytes().to_vec(), long.clone())));
    }
    let options = Options { max_message: 4 << 20, patience: Duration::from_secs(10), ..Options::default() };
    let view = TikvStore::open(&address, &options).unwrap().snapshot().unwrap();
    let mut seen = 0;
    let broken = view.scan(A, Bounds::ALL, |key, value| {
        assert_eq!(key, u32::to_be_bytes(seen));
        assert_eq!(value.len(), if seen < count { 100 } else { long.len() });
        seen += 1;
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!((broken.unwrap(), seen), (None, count + 16));
    // A first page of long entries.
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::Last).unwrap());
    for _ in 1..16 {
        assert!(cursor.current().unwrap().1 == long && cursor.step_back().unwrap());
    }
}

#[test]
fn a_commit_that_conflicts_leaves_no_locks() {
    let Some(store) = open() else { return };
    for _ in 0..5 {
        let (mut loser, mut winner) = (store.begin(NOW).unwrap(), store.begin(NOW).unwrap());
        (0..200_u8).for_each(|key| loser.put(A, &[key], b"lost").unwrap());
        winner.put(A, &[100], b"won").unwrap();
        winner.commit(Durability::Sync).unwrap();
        let error = loser.commit(Durability::Sync).unwrap_err();
        assert_eq!(error.key(), Some((A, &[100][..])), "{error}");
        let start = Instant::now();
        put_all(&store, (0..200_u8).map(|key| (vec![key], b"next".to_vec())));
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "the locks of a small commit would expire after three seconds"
        );
    }
}

#[test]
fn empty_regions_are_passed_many_at_a_time() {
    const REGIONS: u32 = 100;
    let Some(store) = open() else { return };
    put_all(&store, [(b"\xff".to_vec(), b"beyond".to_vec())]);
    let first = |n: u32| store.cluster.layout.entry(A, &n.to_be_bytes());
    // The cluster has one region without borders. Requests follow the cached regions.
    for n in 0..REGIONS {
        let start = if n == 0 { Vec::new() } else { first(n) };
        store.cluster.regions.cache(Region {
            id: u64::from(n),
            epoch: proto::Epoch::default(),
            leader: proto::Peer::default(),
            start,
            end: (n + 1 < REGIONS).then(|| first(n + 1)),
        });
    }
    let view = store.snapshot().unwrap();
    let spent = |call: &mut dyn FnMut()| {
        let before = store.cluster.round_trips();
        call();
        store.cluster.round_trips() - before
    };
    // Parts of 1, 2, 4, 8 regions, five of 16, and the other five.
    let within = Bounds { start: None, end: Some(&[0xff]) };
    let mut cursor = view.cursor(A, within).unwrap();
    assert_eq!(spent(&mut || assert!(!cursor.seek(Edge::First).unwrap())), 10);
    assert_eq!(spent(&mut || assert!(!cursor.seek(Edge::Last).unwrap())), 10);
    let looked = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let end = Arc::clone(&looked);
    let ended = view.ended_by(Arc::new(move || match end.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 | 1 => Ok(()),
        _ => Err(Error::Interrupted(Box::new("by the caller".into()))),
    }));
    let mut cursor = ended.cursor(A, within).unwrap();
    assert_eq!(spent(&mut || assert!(matches!(cursor.seek(Edge::First), Err(Error::Interrupted(_))))), 3);
    assert!(matches!(cursor.seek(Edge::Last), Err(Error::Interrupted(_))) && cursor.current().is_none());
    let mut looks = Vec::new();
    let count = |looks: &mut Vec<u64>, most: usize| {
        view.count(A, within, |counted| {
            looks.push(counted);
            looks.len() < most
        })
    };
    assert_eq!(spent(&mut || assert_eq!(count(&mut looks, 100).unwrap(), Some(0))), 10);
    assert_eq!(looks, [0; 9], "the caller can end the count between the parts");
    looks.clear();
    assert_eq!(spent(&mut || assert_eq!(count(&mut looks, 3).unwrap(), None)), 3);
    // After a page with entries, the next one reads one region again. These entries are in the first and the 51st region.
    put_all(&store, [0, 50].map(|n: u32| ([&n.to_be_bytes()[..], b"key"].concat(), b"v".to_vec())));
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, within).unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    assert!(cursor.step_forward().unwrap() && cursor.current().unwrap().0[3] == 50);
    assert!(!cursor.step_forward().unwrap());
    // 1 region; 1, 2, 4, 8, 16, 16, and 16 with the other entry; 1, 2, 4, 8, 16, and the last five.
    assert_eq!(spent(&mut || assert_eq!(view.count(A, within, |_| true).unwrap(), Some(2))), 14);
    assert_eq!(view.count(A, Bounds::ALL, |_| true).unwrap(), Some(3));
}

#[test]
fn garbage_collection_leaves_what_a_backup_reads() {
    let Some(store) = open() else { return };
    let cluster = Arc::clone(&store.cluster);
    let (read, removed, later) = store
        .cluster
        .runtime
        .wait(async move {
            let ago = |now, minutes: u64| safepoint::before(now, Duration::from_secs(60 * minutes));
            let now = cluster.now().await?;
            // The placement driver accepts no safepoint below that of the collector, which other tests have moved.
            let lowest = safepoint::lowest(&cluster, b"br", 60, ago(now, 30)).await?;
            let read = lowest.max(ago(now, 30));
            safepoint::lowest(&cluster, b"br", 60, read).await?;
            let collect = || safepoint::collect(Arc::clone(&cluster), Duration::from_secs(10 * 60), NOW);
            let removed = collect().await?;
            // 0 seconds remove the safepoint.
            safepoint::lowest(&cluster, b"br", 0, read).await?;
            Ok((read, removed, collect().await?))
        })
        .unwrap();
    assert_eq!(removed.0, read);
    assert!(later.0 > read, "{later:?}");
}

#[test]
fn a_busy_node_gets_no_reads_of_the_latest_commit_during_its_back_off() {
    let Some(store) = open() else { return };
    let (busy, other) = (&b"busy-in-latest"[..], &b"other"[..]);
    put_all(&store, [busy, other].map(|key| (key.to_vec(), b"v".to_vec())));
    let latest = |key| store.latest(&[(A, key)]).unwrap();
    assert_eq!(latest(other), Some(vec![Some(b"v".to_vec())]));
    assert_eq!(latest(busy), None);
    let regions = &store.cluster.regions;
    let (region, _) = regions.cached(&store.cluster.layout.entry(A, busy)).expect("the node still leads it");
    assert!(regions.nodes.is_backing_off(region.leader.store));
    assert_eq!(latest(other), None);
}

#[test]
fn of_a_range_in_two_regions_each_is_read_once() {
    let Some(store) = open() else { return };
    put_all(&store, (0..10_u8).map(|key| (vec![key], vec![key])));
    let (regions, first) = (Arc::clone(&store.cluster.regions), store.cluster.layout.entry(A, &[0]));
    // A border that exists only in the cache, in the cluster's only region.
    let region = store.cluster.runtime.wait(async move { Ok(regions.of(&first).await.unwrap()) }).unwrap();
    let border = store.cluster.layout.entry(A, &[5]);
    store.cluster.regions.cache(Region { end: Some(border.clone()), ..region.clone() });
    store.cluster.regions.cache(Region { start: border, ..region });
    let view = store.snapshot().unwrap();
    let before = store.cluster.round_trips();
    let ahead = view.scan_ahead(A, Bounds::ALL).unwrap().unwrap().wait().unwrap();
    let keys: Vec<u8> = ahead.iter().map(|(key, _)| key[0]).collect();
    assert_eq!((keys, store.cluster.round_trips() - before), ((0..10).collect(), 2));
    let deleted = least(|| {
        put_all(&store, (0..10_u8).map(|key| (vec![key], vec![key])));
        let mut transaction = store.begin(NOW).unwrap();
        transaction.delete_range(A, Bounds::ALL).unwrap();
        let before = store.cluster.round_trips();
        transaction.commit(Durability::Sync).unwrap();
        store.cluster.round_trips() - before
    });
    assert_eq!(deleted, 2 + 1, "the commit is the third one");
    assert_eq!(store.snapshot().unwrap().count(A, Bounds::ALL, |_| true).unwrap(), Some(0));
}

/// Returns the least of three counts. A node that splits a region, because of other tests, is not ready for some milliseconds: commits are sent again.
fn least(count: impl FnMut() -> u64) -> u64 {
    iter::repeat_with(count).take(3).min().unwrap_or_default()
}

#[test]
fn a_small_commit_takes_one_round_trip_and_a_large_one_three() {
    let Some(store) = open() else { return };
    let spent = |bytes: usize| {
        let mut transaction = store.begin(NOW).unwrap();
        transaction.put(A, b"first", &vec![1; bytes]).unwrap();
        transaction.put(A, b"second", &vec![1; bytes]).unwrap();
        let before = store.cluster.round_trips();
        let committed = transaction.commit(Durability::Sync).unwrap();
        let spent = store.cluster.round_trips() - before;
        assert!(store.snapshot().unwrap().version() >= committed);
        spent
    };
    // The first commit also looks up the region and its node.
    spent(10);
    assert_eq!((least(|| spent(10)), least(|| spent(10 << 10))), (1, 3));
}

#[test]
fn a_store_is_used_on_the_threads_of_another_runtime() {
    let Some(store) = open() else { return };
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.block_on(async {
        put_all(&store, [(b"k".to_vec(), b"v".to_vec())]);
        assert_eq!(store.snapshot().unwrap().get(A, b"k", <[u8]>::to_vec).unwrap(), Some(b"v".to_vec()));
        drop(store);
    });
}

#[test]
fn a_snapshot_that_garbage_collection_has_passed_says_so() {
    let Some(address) = address() else { return };
    let options = Options::default().unchecked_age(Duration::ZERO);
    let (store, other) = (TikvStore::open(&address, &options).unwrap(), TikvStore::open(&address, &options).unwrap());
    put_all(&store, [(b"k".to_vec(), b"old".to_vec())]);
    let old = store.snapshot().unwrap();
    let mut cursor = old.cursor(A, Bounds::ALL).unwrap();
    let mut writer = store.begin(NOW).unwrap();
    writer.put(A, b"other", b"written late").unwrap();
    put_all(&store, [(b"k".to_vec(), b"new".to_vec())]);
    assert_eq!(old.get(A, b"k", <[u8]>::to_vec).unwrap(), Some(b"old".to_vec()));
    // The safepoint is that of the whole cluster, in which other tests run. Another database moves it.
    let neighbour = TikvStore::open(&self::address().unwrap(), &options).unwrap();
    let safepoint = super::safepoint::publish(&neighbour.cluster, neighbour.snapshot().unwrap().at);
    neighbour.cluster.runtime.wait(safepoint).unwrap();
    let error = old.get(A, b"k", <[u8]>::to_vec).unwrap_err();
    assert!(matches!(error, Error::Expired(_)) && !error.is_retryable(), "{error}");
    assert!(matches!(cursor.seek(Edge::First), Err(Error::Expired(_))) && cursor.current().is_none());
    assert!(matches!(old.count(A, Bounds::ALL, |_| true), Err(Error::Expired(_))));
    assert!(matches!(writer.commit(Durability::Sync), Err(Error::Expired(_))), "it could miss a conflict");
    assert_eq!(store.snapshot().unwrap().get(A, b"k", <[u8]>::to_vec).unwrap(), Some(b"new".to_vec()));
    let hasty = TikvStore::open(&address, &Options::default()).unwrap();
    assert!(matches!(hasty.collect_garbage(Duration::from_secs(59)), Err(Error::Unsupported(_))));
    let collect = |grace| {
        let collected = super::safepoint::collect(Arc::clone(&other.cluster), Duration::from_secs(3_600), grace);
        other.cluster.runtime.wait(collected).unwrap()
    };
    assert!(collect(NOW) < old.version(), "an earlier safepoint moves nothing back");
    let (start, grace) = (Instant::now(), Duration::from_millis(200));
    collect(grace);
    assert!(start.elapsed() >= grace, "commits that have not found the safepoint go on until then");
    let longest = other.cluster.longest_commit();
    assert!(longest > Duration::from_secs(120) && longest < Duration::from_secs(600), "{longest:?}");
    assert!(matches!(old.get(A, b"k", <[u8]>::to_vec), Err(Error::Expired(_))));
}

/// Two processes are two stores: they share nothing but the cluster.
#[test]
fn a_change_of_a_definition_excludes_the_writers_of_other_processes() {
    let Some(address) = address() else { return };
    let [one, two] = [(); 2].map(|()| TikvStore::open(&address, &Options::default()).unwrap());
    let writer = |store: &TikvStore, key: &[u8]| {
        let mut writer = store.begin(NOW).unwrap();
        writer.guard(DEFINITIONS, b"definition", Guard::Shared).unwrap();
        writer.put(A, key, b"").unwrap();
        writer
    };
    let definer = |store: &TikvStore| {
        let mut definer = store.begin(NOW).unwrap();
        definer.put(DEFINITIONS, b"definition", b"new").unwrap();
        definer
    };
    // The definition first: a writer of an older snapshot conflicts.
    let (late, change) = (writer(&one, b"late"), definer(&two));
    change.commit(Durability::Sync).unwrap();
    assert!(late.commit(Durability::Sync).unwrap_err().is_retryable());
    // The writer first: the change is repeated, and sees what was written.
    let (early, change) = (writer(&one, b"early"), definer(&two));
    early.commit(Durability::Sync).unwrap();
    assert!(change.commit(Durability::Sync).unwrap_err().is_retryable());
    assert!(two.snapshot().unwrap().get(A, b"early", |_| ()).unwrap().is_some());
    // Writers do not exclude each other. If both processes use the same stripe, the repeated writer takes another one.
    let writers: Vec<_> = (0..6_u8).map(|n| writer(if n % 2 == 0 { &one } else { &two }, &[n])).collect();
    let refused = writers.into_iter().filter_map(|writer| writer.commit(Durability::Sync).err()).count();
    assert!(refused <= 3, "{refused} of 6 writers conflicted");
    for n in 0..20_u8 {
        let (first, second) = (writer(&one, &[n]), writer(&two, &[100 + n]));
        let results = [first.commit(Durability::Sync), second.commit(Durability::Sync)];
        assert!(results.iter().any(Result::is_ok));
    }
}

/// Returns a value in bytes from Linux's report of this process's memory.
fn memory(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Returns the peak memory of the process during a call, in bytes.
fn peak_of(call: impl FnOnce()) -> usize {
    // Writing 5 resets the peak to the current value.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    call();
    memory("VmHWM")
}

/// `slate-tikv-cluster/cluster.sh with cargo test --workspace --all-features --lib -- --ignored --nocapture memory_of_commits`
#[test]
#[ignore = "measures the memory of the process, so no other test may run beside it"]
fn memory_of_commits_near_the_limit_is_bounded() {
    let Some(store) = open() else { return };
    let cases = [(1_000_u32, 100), (8_000, 100), (16_000, 100), (32_000, 100), (1_000, 65_000), (63, CHUNK)];
    let before = memory("VmRSS");
    for (keyspace, (keys, bytes)) in (1..).zip(cases) {
        let value = vec![7; bytes];
        let peak = peak_of(|| {
            let mut transaction = store.begin(NOW).unwrap();
            (0..keys).for_each(|key| transaction.put(Keyspace(keyspace), &key.to_be_bytes(), &value).unwrap());
            transaction.commit(Durability::Sync).unwrap();
        });
        let peak = peak.saturating_sub(before);
        println!("{keys} keys of {bytes} bytes: {} MiB", peak >> 20);
        assert!(peak < 2 << 30, "{keys} keys of {bytes} bytes: {peak} bytes");
        // The rest of the commit follows in the background.
        std::thread::sleep(Duration::from_secs(5));
    }
}

/// The number of regions of the cluster, as the placement driver reports it over HTTP.
fn regions() -> usize {
    use std::io::{Read, Write};

    let mut stream = std::net::TcpStream::connect(std::env::var("SLATE_TIKV").unwrap()).unwrap();
    write!(stream, "GET /pd/api/v1/stats/region HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let count = answer.split("\"count\":").nth(1).unwrap();
    count.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// `SPLIT=250 slate-tikv-cluster/cluster.sh with cargo test --workspace --all-features --lib -- --ignored --nocapture scans_over_many`
#[test]
#[ignore = "takes a minute, and a cluster whose regions split early"]
fn scans_over_many_regions_are_complete() {
    const KEYS: u32 = 60_000;
    let Some(store) = open() else { return };
    for first in (0..KEYS).step_by(1_000) {
        put_all(&store, (first..first + 1_000).map(|n| (n.to_be_bytes().to_vec(), vec![1; 100])));
    }
    // The nodes check every ten seconds which regions to split.
    let deadline = Instant::now() + Duration::from_secs(90);
    while regions() < 200 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
    }
    println!("{} regions", regions());
    let measure = |what: &str, call: &dyn Fn(&super::TikvSnapshot)| {
        let view = store.snapshot().unwrap();
        let (start, before) = (Instant::now(), store.cluster.round_trips());
        let held = memory("VmRSS");
        let peak = peak_of(|| call(&view)).saturating_sub(held);
        let spent = store.cluster.round_trips() - before;
        println!("{what}: {:?}, {spent} round trips, {} MiB", start.elapsed(), peak >> 20);
    };
    let range = |first: u32, keys: u32| (first.to_be_bytes(), (first + keys).to_be_bytes());
    let scan = |view: &super::TikvSnapshot, first: u32, keys: u32, edge: Edge<'_>| {
        let (from, to) = range(first, keys);
        let mut cursor = view.cursor(A, Bounds { start: Some(&from), end: Some(&to) }).unwrap();
        let (mut more, mut seen) = (cursor.seek(edge).unwrap(), 0);
        while more {
            let at = if matches!(edge, Edge::First) { first + seen } else { first + keys - 1 - seen };
            assert_eq!(cursor.current().unwrap().0, at.to_be_bytes());
            seen += 1;
            more = if matches!(edge, Edge::First) { cursor.step_forward() } else { cursor.step_back() }.unwrap();
        }
        assert_eq!(seen, keys);
    };
    measure("all keys, up", &|view| scan(view, 0, KEYS, Edge::First));
    measure("all keys, down", &|view| scan(view, 0, KEYS, Edge::Last));
    measure("1,000 keys of a range", &|view| scan(view, KEYS / 2, 1_000, Edge::First));
    measure("count", &|view| {
        assert_eq!(view.count(A, Bounds::ALL, |_| true).unwrap(), Some(u64::from(KEYS)));
    });
    measure("256 keys from everywhere", &|view| {
        let keys: Vec<[u8; 4]> = (0..256).map(|n| (n * (KEYS / 256)).to_be_bytes()).collect();
        let mut points = view.point_reader().unwrap();
        points.load(&keys.iter().map(|key| (A, &key[..])).collect::<Vec<_>>()).unwrap();
        assert!((0..256).all(|at| points.loaded(at).is_some()));
    });
    measure("the first key of all", &|view| {
        let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
        assert!(cursor.seek(Edge::First).unwrap());
    });
}
