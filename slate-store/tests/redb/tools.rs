use std::{
    path::Path,
    time::{Duration, Instant},
};

use slate_store::{
    Access, Bounds, Cursor, Durability, Edge, Error, Keyspace, Result, Store, Transaction, TransactionExt, View,
    redb::{Options, RedbStore},
};

pub(crate) const A: Keyspace = Keyspace(1);
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Opens a database that no store of this test has open. A process that another test spawns has copies of all open files
/// until it executes its program, and with them the lock of a database that was just closed.
pub(crate) fn open(path: &Path) -> RedbStore {
    let start = Instant::now();
    loop {
        match RedbStore::open(path, &Options::default()) {
            Err(Error::Locked(_)) if start.elapsed() < LONG => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

pub(crate) fn open_error(path: &Path, access: Access) -> Error {
    RedbStore::open(path, &Options::default().access(access)).err().unwrap()
}

pub(crate) fn begin(store: &RedbStore) -> impl Transaction + use<> {
    store.begin(LONG).unwrap()
}

pub(crate) fn put(store: &RedbStore, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
    let mut transaction = store.begin(LONG)?;
    transaction.put(A, key, value)?;
    transaction.commit(durability).map(drop)
}

pub(crate) fn keys(store: &RedbStore) -> Vec<Vec<u8>> {
    let mut cursor = store.snapshot().unwrap().cursor(A, Bounds::ALL).unwrap();
    let (mut keys, mut more) = (Vec::new(), cursor.seek(Edge::First).unwrap());
    while more {
        keys.push(cursor.current().unwrap().0.to_vec());
        more = cursor.step_forward().unwrap();
    }
    keys
}
