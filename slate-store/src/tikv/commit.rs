//! Commits a transaction: its writes and guards become mutations of one transaction of the client.
//!
//! ```text
//!                 keyspace 0                        other keyspaces
//! write           the key, and all its stripes      the key
//! shared guard    one stripe                        a lock of the key
//! exclusive guard all stripes                       the key, with the value that it has
//! ```
//!
//! The chunks of large values are committed earlier, each on its own: a commit of many large values can exceed the largest entry of Raft's log.
//! They are not read until a key refers to them, and that key is committed after them ([`store_before`]).
//!
//! The cluster refuses a mutation of a key that was committed after the transaction's snapshot; `stripes` describes stripes. A lock leaves a record
//! in TiKV, so two guards of one key outside keyspace 0 conflict, whatever their kind.
//!
//! # One phase or two
//!
//! Mutations that are in one region, and in one request of the client (16 KiB), are committed by the request that writes them. All others take two phases:
//!
//! ```text
//! one phase    writes ─▶ committed                                        1 round trip
//! two phases   writes ─▶ timestamp ─▶ first key ─▶ committed ┄ the others   3 round trips
//! ```
//!
//! The client chooses. What keeps a commit in one phase correct:
//!
//! - *Snapshots.* The region chooses the timestamp: a later one than that of every read that it has answered, so a snapshot never changes after a
//!   read. A transaction that begins after the commit has returned has a later timestamp. So a guard that was read before another
//!   transaction's commit conflicts with it, whatever the number of phases of either.
//! - *A lost answer.* The client repeats unanswered writes, though the first attempt may have committed. TiKV then returns that commit, or a
//!   conflict. A conflict with this transaction itself means success ([`own_commit`](error::own_commit)). A conflict with another one proves
//!   nothing, because that one may have written since. So the transaction is rolled back before the conflict is reported; nodes refuse to
//!   roll back a committed one. If that fails, the outcome is unknown.
//! - *A node that is busy or aborts* may have made the commit that it refuses to confirm: see [`committer`](super::committer).
//! - *A region that splits in between.* The writes are repeated in two phases, and find the commit in the same way.
//! - *A node that does not commit in one phase* leaves locks. They are removed, the transaction is retried as after a conflict, and this process
//!   requests no more commits in one phase.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, PoisonError},
};

use tikv_client::transaction::Mutation;

use super::{
    after, chunks,
    cluster::Cluster,
    error::{self, CommitFailure},
    layout::{ChunksAt, Layout},
    read::{self, Direction, Page},
    snapshot::TikvSnapshot,
    stripes::{STRIPES, Taken},
    transaction::TikvTransaction,
    value::{self, CHUNK, Chunks, Stored},
};
use crate::{Bounds, Change, Context, Error, Guard, Keyspace, Result, TooLarge, Version, View, Write};

/// A key that a transaction guards.
pub(super) struct Guarded {
    pub(super) keyspace: Keyspace,
    pub(super) key: Box<[u8]>,
    pub(super) guard: Guard,
}

/// The keyspace of definitions, whose keys every writer guards.
const DEFINITIONS: Keyspace = Keyspace(0);

/// Number of keys read at a time to delete a range, and the maximum number of mutations of a transaction that deletes one.
const DELETED_PAGE: u32 = 1024;
const MAX_DELETED: usize = 32_768;

/// What a commit does to stored keys; `None` deletes.
type Mutations = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

pub(super) fn commit(transaction: TikvTransaction) -> Result<Version> {
    let TikvTransaction { snapshot, mut begun, writes, guards, seen } = transaction;
    let base = snapshot.version();
    if writes.set.is_empty() && guards.is_empty() {
        return Ok(base);
    }
    let cluster = &snapshot.cluster;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let mut made = Made::new(&cluster.layout, snapshot.at);
    writes.set.each(|keyspace, change| {
        check_dropped(cluster, keyspace, base)?;
        match change {
            Change::DeleteRange(bounds) => made.delete_range(&snapshot, keyspace, bounds)?,
            Change::Writes(writes) => {
                let replaced =
                    |key: &[u8]| if seen.is_empty() { None } else { seen.get(&(keyspace, key.into())).copied() };
                made.write(keyspace, writes, replaced);
            }
        }
        Ok(())
    })?;
    drop(seen);
    let mut taken = None;
    let mut locks = Vec::new();
    for Guarded { keyspace, key, guard } in &guards {
        check_dropped(cluster, *keyspace, base)?;
        match (*keyspace == DEFINITIONS, guard) {
            (true, Guard::Shared) => {
                let stripe = taken.get_or_insert_with(|| cluster.stripes.take(snapshot.at)).number;
                made.mutations.insert(cluster.layout.stripe(*keyspace, key, stripe), Some(value::inline(b"")));
            }
            (true, Guard::Exclusive) => made.all_stripes(*keyspace, key),
            (false, Guard::Shared) => locks.push(cluster.layout.entry(*keyspace, key)),
            (false, Guard::Exclusive) => made.repeat(&snapshot, *keyspace, key)?,
        }
    }
    locks.retain(|key| !made.mutations.contains_key(key));
    let chunks: Vec<Vec<u8>> = made.chunks.iter().map(|(key, _)| key.clone()).collect();
    let (large, pointers) = (std::mem::take(&mut made.chunks), std::mem::take(&mut made.pointers));
    // Garbage collection also removes the records of later deletes and guards, which reveal conflicts. It waits for the commits that begin here.
    let ready = snapshot.checked(|| match large.is_empty() {
        true => Ok(()),
        false => cluster.runtime.wait(store_before(Arc::clone(cluster), large, pointers)),
    });
    if let Err(failed) = ready {
        if !chunks.is_empty() {
            // Chunks that cannot be removed now are deleted with their keyspace.
            let _ = cluster.runtime.wait(chunks::remove(Arc::clone(cluster), chunks));
        }
        return Err(failed);
    }
    let mutations: Vec<Mutation> = made.mutations.into_iter().map(|(key, value)| mutation(key, value)).collect();
    let (wrote, own) = (!writes.set.is_empty(), Arc::clone(cluster));
    let committed = cluster.runtime.wait(async move { Ok(own.commit(&mut begun, mutations, locks).await) });
    match committed.map_err(error::lost_commit)? {
        Ok(at) => {
            if let Some(taken) = &mut taken {
                taken.written = at;
            }
            Ok(at.filter(|_| wrote).map_or(base, Version))
        }
        Err(failure) => Err(fail(cluster, failure, chunks, taken)),
    }
}

/// Stores chunks so that every snapshot that shows one of the keys `pointers`, which refer to them, also shows the chunks.
///
/// The transaction of these keys has an older timestamp than the chunks. A node that commits in one phase chooses a timestamp after those of the
/// reads that it has answered. That of the chunks need not be among them, so the keys are read after the chunks were stored.
async fn store_before(
    cluster: Arc<Cluster>,
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    mut pointers: Vec<Vec<u8>>,
) -> Result<()> {
    chunks::store(Arc::clone(&cluster), chunks).await?;
    let now = cluster.now().await?;
    pointers.sort_unstable();
    pointers.dedup();
    cluster.count(1, read::requests_of(&cluster, &pointers));
    read::many(cluster, now, pointers).await.map(drop)
}

fn mutation(key: Vec<u8>, value: Option<Vec<u8>>) -> Mutation {
    match value {
        Some(value) => Mutation::Put(key.into(), value),
        None => Mutation::Delete(key.into()),
    }
}

/// Returns the error of a commit. Removes the chunks that were stored for it, if it was certainly not made.
fn fail(cluster: &Arc<Cluster>, failure: CommitFailure, stored: Vec<Vec<u8>>, mut taken: Option<Taken<'_>>) -> Error {
    if let Some((key, at)) = &failure.conflict
        && let Some(stripe) = cluster.layout.read_stripe(key)
    {
        cluster.stripes.written(stripe, *at);
    }
    if failure.is_certain {
        if !stored.is_empty() {
            // Chunks that cannot be removed now are deleted with their keyspace.
            let _ = cluster.runtime.wait(chunks::remove(Arc::clone(cluster), stored));
        }
    } else if let Some(taken) = &mut taken {
        // The outcome is unknown: the stripe may have been written or still be written, so it counts as written now.
        let own = Arc::clone(cluster);
        taken.written = cluster.runtime.wait(async move { own.now().await }).ok();
    }
    failure.error
}

/// Fails if this process has dropped the keyspace since the transaction began. A drop by another process changes the definition of the collection,
/// which the transaction guards.
fn check_dropped(cluster: &Cluster, keyspace: Keyspace, base: Version) -> Result<()> {
    if cluster.dropped().get(&keyspace).is_none_or(|dropped| *dropped <= base) {
        return Ok(());
    }
    Err(Error::Conflict(Box::new(Context::new("the keyspace was dropped"))))
}

/// The mutations of a commit, while they are collected.
struct Made<'l> {
    layout: &'l Layout,
    began: u64,
    /// The number of large values.
    values: u32,
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    /// The keys that refer to large values.
    pointers: Vec<Vec<u8>>,
    mutations: Mutations,
}

impl<'l> Made<'l> {
    fn new(layout: &'l Layout, began: u64) -> Self {
        Self { layout, began, values: 0, chunks: Vec::new(), pointers: Vec::new(), mutations: Mutations::new() }
    }

    /// Adds writes. `replaced` returns the chunks of a key's value in the snapshot; `None` if the transaction has not read them.
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>], replaced: impl Fn(&[u8]) -> Option<Chunks>) {
        for (key, value) in writes {
            if let Some(chunks) = replaced(key) {
                self.delete_chunks(keyspace, chunks);
            }
            let at = self.layout.entry(keyspace, key);
            let stored = value.map(|value| match value.len() {
                0..=CHUNK => value::inline(value),
                _ => {
                    self.pointers.push(at.clone());
                    self.chunks(keyspace, value)
                }
            });
            self.mutations.insert(at, stored);
            if keyspace == DEFINITIONS {
                self.all_stripes(keyspace, key);
            }
        }
    }

    /// Adds the chunks of a large value. Returns what is stored in its place.
    fn chunks(&mut self, keyspace: Keyspace, value: &[u8]) -> Vec<u8> {
        let at = ChunksAt { began: self.began, number: self.values };
        self.values += 1;
        let mut count = 0;
        for chunk in value.chunks(CHUNK) {
            self.chunks.push((self.layout.chunk(keyspace, at, count), value::inline(chunk)));
            count += 1;
        }
        Chunks { at, count }.write()
    }

    fn delete_chunks(&mut self, keyspace: Keyspace, chunks: Chunks) {
        for chunk in 0..chunks.count {
            self.mutations.insert(self.layout.chunk(keyspace, chunks.at, chunk), None);
        }
    }

    fn all_stripes(&mut self, keyspace: Keyspace, key: &[u8]) {
        for stripe in 0..STRIPES {
            self.mutations.insert(self.layout.stripe(keyspace, key, stripe), Some(value::inline(b"")));
        }
    }

    /// Deletes the keys of a range that the snapshot shows.
    fn delete_range(&mut self, snapshot: &TikvSnapshot, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        let Some((mut start, end)) = self.layout.range(keyspace, bounds) else { return Ok(()) };
        loop {
            snapshot.count_trips(1);
            let page = read::page(
                Arc::clone(&snapshot.cluster),
                snapshot.at,
                (start, end.clone()),
                Direction::Up,
                DELETED_PAGE,
                None,
            );
            let Page { entries, has_more, end: continued, .. } =
                snapshot.page(|| snapshot.cluster.runtime.wait(page))?;
            for (key, stored) in &entries {
                if let Stored::Chunks(chunks) = stored {
                    self.delete_chunks(keyspace, *chunks);
                }
                self.mutations.insert(key.clone(), None);
                if self.mutations.len() > MAX_DELETED {
                    let (size, limit) = (self.mutations.len(), MAX_DELETED);
                    return Err(Error::TooLarge(Box::new(TooLarge { what: "deleted range (in keys)", size, limit })));
                }
            }
            let Some((last, _)) = entries.into_iter().next_back().filter(|_| has_more) else { return Ok(()) };
            start = continued.unwrap_or_else(|| after(last));
        }
    }

    /// Writes the snapshot's value of a key again, or deletes the key again if it is missing: this conflicts with others and changes nothing. Does
    /// nothing if the transaction writes the key.
    fn repeat(&mut self, snapshot: &TikvSnapshot, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        let at = self.layout.entry(keyspace, key);
        if let Entry::Vacant(vacant) = self.mutations.entry(at) {
            let value = snapshot.read_many(vec![vacant.key().clone()])?.remove(vacant.key());
            vacant.insert(value);
        }
        Ok(())
    }
}
