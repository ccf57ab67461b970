//! The chunks of large values: stored before the transaction that refers to them, removed if it fails.

use std::{sync::Arc, time::Duration};

use tikv_client::transaction::Mutation;
use tokio::task::JoinSet;

use super::{
    cluster::{Cluster, LONGEST_PAUSE},
    error,
};
use crate::{Context, Error, Result};

/// Maximum number of chunks that are stored concurrently.
const TOGETHER: usize = 4;

/// Maximum number of attempts to store a chunk. Storing it twice is harmless: the key gets the same value.
const ATTEMPTS: u32 = 5;

/// Stores chunks, each in a transaction of its own.
pub(super) async fn store(cluster: Arc<Cluster>, chunks: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
    let (mut chunks, mut tasks) = (chunks.into_iter(), JoinSet::new());
    loop {
        while tasks.len() < TOGETHER
            && let Some((key, value)) = chunks.next()
        {
            tasks.spawn(store_one(Arc::clone(&cluster), key, value));
        }
        let Some(stored) = tasks.join_next().await else { return Ok(()) };
        stored.map_err(error::unanswered)??;
    }
}

async fn store_one(cluster: Arc<Cluster>, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match commit(&cluster, vec![Mutation::Put(key.clone().into(), value.clone())]).await {
            Ok(()) => return Ok(()),
            Err(_) if attempt < ATTEMPTS => tokio::time::sleep(LONGEST_PAUSE).await,
            Err(failed) => return Err(failure(failed, "a part of a large value was not stored")),
        }
    }
}

/// Deletes chunks.
pub(super) async fn remove(cluster: Arc<Cluster>, keys: Vec<Vec<u8>>) -> Result<()> {
    let deletes = keys.into_iter().map(|key| Mutation::Delete(key.into())).collect();
    commit(&cluster, deletes).await.map_err(|failed| failure(failed, "the parts of a value were not removed"))
}

/// Maps the error of storing or removing chunks. Their transaction was certainly not committed, so it can be retried if `cause` can.
fn failure(cause: Error, what: &'static str) -> Error {
    match cause.is_retryable() {
        true => cause,
        false => Error::Io(Box::new(Context::new(what).because(cause))),
    }
}

async fn commit(cluster: &Cluster, mutations: Vec<Mutation>) -> Result<()> {
    let mut transaction = cluster.begin(Duration::ZERO).await?;
    cluster.commit(&mut transaction, mutations, Vec::new()).await.map(drop).map_err(|failed| failed.error)
}
