use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use slate_store::{
    Access, Bounds, Cursor, Durability, Edge, Error, Keyspace, Result, Store, Transaction, TransactionExt, View,
    rocksdb::{Options, RocksStore},
};

pub(crate) const A: Keyspace = Keyspace(1);
pub(crate) const B: Keyspace = Keyspace(2);
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Opens a database that no store of this test has open. A process that another test spawns has copies of all open files
/// until it executes its program, and with them the lock of a database that was just closed.
pub(crate) fn open(path: &Path) -> RocksStore {
    let start = Instant::now();
    loop {
        match RocksStore::open(path, &Options::default()) {
            Err(Error::Locked(_)) if start.elapsed() < LONG => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

pub(crate) fn open_error(path: &Path, access: Access) -> Error {
    RocksStore::open(path, &Options::default().access(access)).err().unwrap()
}

/// Creates and closes a database with one entry.
pub(crate) fn made(folder: &Path) -> PathBuf {
    let path = folder.join("db");
    put(&open(&path), b"a", b"1", Durability::Sync).unwrap();
    path
}

pub(crate) fn begin(store: &RocksStore) -> impl Transaction + use<> {
    store.begin(LONG).unwrap()
}

pub(crate) fn put(store: &RocksStore, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
    let mut transaction = store.begin(LONG)?;
    transaction.put(A, key, value)?;
    transaction.commit(durability).map(drop)
}

pub(crate) fn keys(store: &RocksStore) -> Vec<Vec<u8>> {
    keys_of(store, A).unwrap()
}

pub(crate) fn keys_of(store: &RocksStore, keyspace: Keyspace) -> Result<Vec<Vec<u8>>> {
    let mut cursor = store.snapshot()?.cursor(keyspace, Bounds::ALL)?;
    let (mut keys, mut more) = (Vec::new(), cursor.seek(Edge::First)?);
    while more {
        keys.push(cursor.current().unwrap().0.to_vec());
        more = cursor.step_forward()?;
    }
    Ok(keys)
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

/// Copies the directory in its current state, as a crash of the process would leave it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}
