//! Commits of which a node writes a part late, or of which the rest is never sent.

use std::future::{Future, poll_fn};

use super::*;

/// Two parts of a commit, each a request of its own. The nodes of the tests write the second one late: `slate-tikv-cluster/README.md`.
const PARTS: [&[u8]; 2] = [b"first", b"second slow-in-prewrite"];

fn value(byte: u8) -> Vec<u8> {
    vec![byte; 20 << 10]
}

/// Without renewal the locks would expire after three seconds, and the reader would undo the commit.
#[test]
fn a_commit_that_takes_longer_than_its_locks_stand_is_made_beside_a_reader() {
    let Some(address) = address() else { return };
    // Long enough that the late part is not sent again.
    let patient = Options::default().request_timeout(Duration::from_secs(20));
    let (store, reader) =
        (TikvStore::open(&address, &patient).unwrap(), TikvStore::open(&address, &Options::default()).unwrap());
    let mut transaction = store.begin(NOW).unwrap();
    PARTS.iter().for_each(|key| transaction.put(A, key, &value(1)).unwrap());
    std::thread::scope(|scope| {
        let committing = scope.spawn(|| transaction.commit(Durability::Sync));
        let mut reads = 0;
        while !committing.is_finished() {
            // Each read waits for the lock, or finds no key before the lock exists.
            let view = reader.snapshot().unwrap();
            let found = PARTS.map(|key| view.get(A, key, |_| ()).unwrap().is_some());
            assert_eq!(found[0], found[1], "a part of a commit");
            reads += 1;
        }
        let committed = committing.join().unwrap().expect("its locks are renewed");
        println!("{reads} reads beside the commit");
        assert!(reader.snapshot().unwrap().version() >= committed);
    });
    let view = reader.snapshot().unwrap();
    assert!(PARTS.iter().all(|key| view.get(A, key, |found| found == value(1)).unwrap() == Some(true)));
}

#[test]
fn a_commit_whose_process_ends_half_way_is_undone_by_the_next_writer() {
    let Some(address) = address() else { return };
    let (ended, store) = (
        TikvStore::open(&address, &Options::default()).unwrap(),
        TikvStore::open(&address, &Options::default()).unwrap(),
    );
    let cluster = Arc::clone(&ended.cluster);
    let began = ended.cluster.runtime.wait(async move {
        let mut begun = cluster.begin(NOW).await?;
        let began = begun.start_timestamp().version();
        let [first, second] = PARTS.map(|key| cluster.layout.entry(A, key));
        let puts = [first.clone(), second].map(|key| Mutation::Put(key.into(), value(1)));
        begun.batch_mutate(puts).await.unwrap();
        let is_locked = async {
            loop {
                let now = cluster.client.current_timestamp().await.unwrap();
                let range = first.clone()..super::super::after(first.clone());
                let locks = cluster.client.scan_locks(&now, range, u32::MAX).await.unwrap();
                if locks.iter().any(|lock| lock.lock_version == began) {
                    break;
                }
            }
        };
        // The rest of the commit is never sent.
        let (mut commit, mut is_locked) = (Box::pin(begun.commit()), Box::pin(is_locked));
        poll_fn(|context| {
            assert!(commit.as_mut().poll(context).is_pending(), "the second part is late");
            is_locked.as_mut().poll(context)
        })
        .await;
        drop(commit);
        Ok(began)
    });
    let began = began.unwrap();
    drop(ended);
    let (start, mut refused) = (Instant::now(), 0);
    let committed = loop {
        let mut transaction = store.begin(NOW).unwrap();
        PARTS.iter().for_each(|key| transaction.put(A, key, &value(2)).unwrap());
        match transaction.commit(Durability::Sync) {
            Ok(committed) => break committed,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        refused += 1;
        assert!(refused < 5, "the locks stay");
    };
    println!("written after {:?}, refused {refused} times before", start.elapsed());
    assert!(committed.0 > began);
    let view = store.snapshot().unwrap();
    assert!(PARTS.iter().all(|key| view.get(A, key, |found| found == value(2)).unwrap() == Some(true)));
}
