//! Opens stores by URL; the only module that names the backends.

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use slate_query::Code;
use slate_store::{Access, Recovery, Sharing, Store, Verification, memory::MemoryStore};

use super::{backend::Backend, engine::Engine};
use crate::{Error, ErrorKind, Result, metrics::SlowQueries, spill::Memory};

/// Options for opening a database.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenOptions {
    pub(crate) cache_bytes: Option<usize>,
    pub(crate) access: Access,
    pub(crate) recovery: Recovery,
    pub(crate) sharing: Sharing,
    pub(crate) verification: Verification,
    pub(crate) memory: Memory,
    pub(crate) slow_queries: SlowQueries,
}

/// Opens a database on any store.
pub(crate) fn with_store(store: impl Store, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    let backend: Arc<dyn Engine> = Backend::open(store, options)?;
    Ok(backend)
}

/// The first and the longest pause between two attempts to open a database that another handle has open.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Opens a URL as [`open`] does. Tries again until `timeout` has passed if another handle has the database open.
pub(crate) fn open_within(timeout: Duration, url: &str, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let opened = open(url, options);
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() || !opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::Locked) {
            return opened;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Opens a URL: `memory:`, `memory:PATH` of a backup, `redb:PATH`, `rocksdb:PATH` or `tikv://HOST:PORT/DATABASE`.
fn open(url: &str, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    match url.split_once(':') {
        Some((scheme @ ("memory" | "rocksdb"), _)) if options.sharing == Sharing::WithReaders => {
            let message = format!(
                "a database of {scheme}: cannot be shared with other processes; redb: can, and others can read a backup"
            );
            Err(Error::new(ErrorKind::Unsupported, Code::NOT_IMPLEMENTED, message))
        }
        Some(("tikv", _)) => tikv(url, options),
        Some((scheme @ ("memory" | "redb" | "rocksdb"), path)) if path.starts_with("//") => {
            Err(with_slashes(url, scheme, path.trim_start_matches('/')))
        }
        Some(("memory", "")) => with_store(MemoryStore::default(), options),
        Some(("memory", copy)) => with_store(MemoryStore::restore(Path::new(copy))?, options),
        Some((scheme @ ("redb" | "rocksdb"), "")) => {
            Err(Error::invalid(Code::BAD_VALUE, format!("{url} has no path; expected {scheme}:PATH")))
        }
        Some(("redb", path)) => redb(Path::new(path), options),
        Some(("rocksdb", path)) => rocksdb(Path::new(path), options),
        Some((scheme, _)) => Err(unknown(&format!("unknown store {scheme:?}"))),
        None => Err(unknown(&format!("{url:?} has no scheme"))),
    }
}

/// Returns the error for a URL with `//` of a store on this machine. Its path would begin at the root of the file system.
fn with_slashes(url: &str, scheme: &str, path: &str) -> Error {
    let message = match path {
        "" => format!("{url} is no URL of a store; expected {scheme}:"),
        _ => format!("{url} is no URL of a store; the path follows the colon: {scheme}:{path}, or {scheme}:/{path}"),
    };
    Error::invalid(Code::BAD_VALUE, message)
}

/// The URLs of the stores that features add, the features, and whether this build has them.
const OPTIONAL: [(&str, &str, bool); 3] = [
    ("redb:PATH", "redb", cfg!(feature = "redb")),
    ("rocksdb:PATH", "rocksdb", cfg!(feature = "rocksdb")),
    ("tikv://HOST:PORT/DATABASE", "tikv", cfg!(feature = "tikv")),
];

/// Returns the error for a URL that names no store; it lists the stores of this build and how to add the others.
fn unknown(what: &str) -> Error {
    let mut message = format!("{what}; this build has the stores memory:");
    for (url, ..) in OPTIONAL.iter().filter(|(_, _, is_built)| *is_built) {
        message.push_str(&format!(", {url}"));
    }
    for (url, feature, _) in OPTIONAL.iter().filter(|(_, _, is_built)| !is_built) {
        message.push_str(&format!("; the feature `{feature}` of slate-core adds {url}"));
    }
    Error::invalid(Code::BAD_VALUE, message)
}

/// Returns the error for a store that this build does not have.
#[cfg(not(all(feature = "redb", feature = "rocksdb", feature = "tikv")))]
fn not_built(store: &str) -> Error {
    let message = format!("this build has no store {store}:; the feature `{store}` of slate-core adds it");
    Error::new(ErrorKind::Unsupported, Code::NOT_IMPLEMENTED, message)
}

/// The cache memory of a store on disk, in bytes.
#[cfg(any(feature = "redb", feature = "rocksdb"))]
struct CacheShares {
    /// For the pages or blocks that the store's library caches.
    pages: usize,
    /// For the point cache of single values.
    values: usize,
}

#[cfg(any(feature = "redb", feature = "rocksdb"))]
impl CacheShares {
    /// The cache memory if the options do not set it, in bytes.
    const DEFAULT: usize = 256 << 20;

    /// Gives an eighth of the memory to the point cache.
    fn of(options: &OpenOptions) -> Self {
        let all = options.cache_bytes.unwrap_or(Self::DEFAULT);
        Self { pages: all - all / 8, values: all / 8 }
    }
}

#[cfg(feature = "redb")]
fn redb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    use slate_store::{Cached, redb};

    let OpenOptions { access, recovery, sharing, verification, .. } = *options;
    let settings = redb::Options::default().access(access).recovery(recovery).sharing(sharing);
    let cache = CacheShares::of(options);
    let settings = settings.verification(verification).cache_bytes(cache.pages);
    let store = Cached::new(redb::RedbStore::open(path, &settings)?, cache.values);
    with_store(store, options)
}

#[cfg(not(feature = "redb"))]
fn redb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn Engine>> {
    Err(not_built("redb"))
}

#[cfg(feature = "rocksdb")]
fn rocksdb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    use slate_store::{Cached, rocksdb};

    let settings = rocksdb::Options::default().access(options.access);
    let cache = CacheShares::of(options);
    let settings = settings.cache_bytes(cache.pages);
    let store = Cached::new(rocksdb::RocksStore::open(path, &settings)?, cache.values);
    with_store(store, options)
}

#[cfg(not(feature = "rocksdb"))]
fn rocksdb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn Engine>> {
    Err(not_built("rocksdb"))
}

#[cfg(feature = "tikv")]
fn tikv(url: &str, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    use slate_store::tikv::{Address, Options, TikvStore};

    if options.access == Access::ReadOnly {
        let message = "a database of tikv: cannot be opened read-only";
        return Err(Error::new(ErrorKind::Unsupported, Code::NOT_IMPLEMENTED, message));
    }
    let address = Address::parse(url).map_err(|error| Error::invalid(Code::BAD_VALUE, error.to_string()))?;
    with_store(TikvStore::open(&address, &Options::default())?, options)
}

#[cfg(not(feature = "tikv"))]
fn tikv(_: &str, _: &OpenOptions) -> Result<Arc<dyn Engine>> {
    Err(not_built("tikv"))
}
