//! Commits while nodes are busy: before or after they have executed the commit, or while they undo it.

use super::*;

/// Writes two values, so long that they are committed in two phases, each written and undone by a request of its own. The nodes of the tests are
/// busy, or fail, once for some keys: see `slate-tikv-cluster/README.md`.
fn two_phases(store: &TikvStore, first: &[u8], second: &[u8]) -> super::super::TikvTransaction {
    let mut transaction = store.begin(NOW).unwrap();
    for key in [first, second] {
        transaction.put(A, key, &vec![1; 20 << 10]).unwrap();
    }
    transaction
}

#[test]
fn a_commit_is_not_torn_by_a_node_that_made_it_and_reports_a_failure() {
    let Some(store) = open() else { return };
    for (first, second) in
        [(&b"busy-after-commit"[..], &b"second of busy"[..]), (b"abort-after-commit", b"second of abort")]
    {
        let transaction = two_phases(&store, first, second);
        std::thread::scope(|scope| {
            let committing = scope.spawn(|| transaction.commit(Durability::Sync));
            // Does not read the second key yet, because that would complete the commit.
            let view = loop {
                let (has_ended, view) = (committing.is_finished(), store.snapshot().unwrap());
                if view.get(A, first, |_| ()).unwrap().is_some() {
                    break view;
                }
                assert!(!has_ended, "the first key is committed");
            };
            let committed = committing.join().unwrap();
            assert!(view.get(A, second, |_| ()).unwrap().is_some(), "both keys have one timestamp");
            assert!(matches!(committed, Err(Error::OutcomeUnknown(_))), "{committed:?}");
        });
    }
}

#[test]
fn a_commit_that_a_busy_node_has_not_written_is_undone_and_can_be_repeated() {
    let Some(store) = open() else { return };
    // First the second key is not written, then the first one, which decides.
    for (busy, other) in [(&b"second busy-in-prewrite"[..], &b"first"[..]), (b"busy-in-prewrite", b"second")] {
        let error = two_phases(&store, busy, other).commit(Durability::Sync).unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let (start, view) = (Instant::now(), store.snapshot().unwrap());
        assert!([busy, other].iter().all(|key| view.get(A, key, |_| ()).unwrap().is_none()));
        put_all(&store, [(other.to_vec(), b"next".to_vec())]);
        assert!(start.elapsed() < Duration::from_secs(2), "locks would expire after three seconds");
        let mut remove = store.begin(NOW).unwrap();
        remove.delete(A, other).unwrap();
        remove.commit(Durability::Sync).unwrap();
    }
}

#[test]
fn a_large_value_that_busy_nodes_do_not_store_can_be_written_again() {
    // Each commit of this database meets a busy node once: the keys begin with its name.
    let Some(address) = address_of("busy-in-prewrite") else { return };
    let store = TikvStore::open(&address, &Options::default()).unwrap();
    let mut transaction = store.begin(NOW).unwrap();
    transaction.put(A, b"k", &vec![7; CHUNK + 1]).unwrap();
    let error = transaction.commit(Durability::Sync).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!((stored(&store, Area::Chunks, A), stored(&store, Area::Entries, A)), (0, 0));
}

#[test]
fn a_conflict_stays_one_if_a_busy_node_undoes_it_later() {
    let Some(store) = open() else { return };
    let (mut loser, mut winner) = (store.begin(NOW).unwrap(), store.begin(NOW).unwrap());
    for key in [&b"busy-in-rollback"[..], b"contested"] {
        loser.put(A, key, b"lost").unwrap();
    }
    winner.put(A, b"contested", b"won").unwrap();
    winner.commit(Durability::Sync).unwrap();
    let error = loser.commit(Durability::Sync).unwrap_err();
    assert!(matches!(error, Error::Conflict(_)) && error.is_retryable(), "{error}");
}

/// The commits of chunks and of the safepoint, which are not those of a caller's transaction.
#[test]
fn a_commit_of_the_store_itself_that_fails_leaves_no_locks() {
    let Some(store) = open() else { return };
    let (cluster, key) = (Arc::clone(&store.cluster), store.cluster.layout.entry(A, b"busy-after-prewrite"));
    let (end, value) = (super::super::after(key.clone()), vec![1; 20 << 10]);
    let other = store.cluster.layout.entry(A, b"other");
    let failed = store.cluster.runtime.wait(async move {
        let mut begun = cluster.begin(NOW).await?;
        let puts = [key.clone(), other].map(|key| Mutation::Put(key.into(), value.clone()));
        let failed = cluster.commit(&mut begun, puts.into(), Vec::new()).await.unwrap_err();
        let now = cluster.client.current_timestamp().await.unwrap();
        let mut locks = cluster.client.scan_locks(&now, key..end, u32::MAX).await.unwrap();
        // The node of the tests returns the locks of the whole region, those of other tests among them.
        locks.retain(|lock| lock.lock_version == begun.start_timestamp().version());
        assert_eq!(locks.len(), 0, "{locks:?}");
        Ok(failed)
    });
    let failed = failed.unwrap();
    assert!(failed.is_certain && failed.error.is_retryable(), "{}", failed.error);
}
