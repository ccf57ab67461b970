//! Reads beside a cache that is much smaller than the data.

use slate_store::{
    Durability, PointReader, Store, Transaction, TransactionExt, View,
    rocksdb::{Options, RocksStore},
};

use super::tools::{A, LONG};

/// Enough for a file whose filter is larger than a shard of the cache.
const KEYS: u64 = 1_200_000;
const BATCH: u64 = 20_000;
const CACHE: usize = 4 << 20;

/// What a read of one key may take from files: the block of the key, and those of a filter and of an index in each level.
const MOST_PER_KEY: u64 = 128 << 10;

#[test]
fn a_read_of_a_key_reads_a_few_blocks_and_not_whole_filters() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(&folder.path().join("db"), &Options::default().cache_bytes(CACHE)).unwrap();
    for first in (0..KEYS / BATCH).map(|batch| batch * BATCH) {
        let mut transaction = store.begin(LONG).unwrap();
        for key in first..first + BATCH {
            transaction.put(A, &key.to_be_bytes(), b"value").unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }
    store.compact(LONG).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut reader = snapshot.point_reader().unwrap();
    let ((), bytes) = snapshot.with_bytes_read(|| {
        for read in 0..1_000 {
            let key = (read * 7_919 % KEYS).to_be_bytes();
            reader.load(&[(A, &key)]).unwrap();
            assert!(reader.loaded(0).is_some());
        }
    });
    let each = bytes.unwrap() / 1_000;
    println!("{each} bytes for each key");
    assert!(each <= MOST_PER_KEY, "{each} bytes for each key");
}
