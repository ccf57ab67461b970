//! The one place that knows backends by name.

use std::{path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use slate_query::Code;
use slate_store::memory::MemoryStore;

use super::{Engine, backend::Backend};
use crate::{Error, Result, spill::Memory};

/// What a backend is opened with.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenOptions {
    pub(crate) cache_bytes: Option<usize>,
    pub(crate) access: Access,
    pub(crate) memory: Memory,
}

/// What an open database may be used for, and whether it may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read and write; the database is created where there is none.
    #[default]
    CreateOrOpen,
    /// Read and write what is there already.
    Open,
    /// Read only what is there already.
    ReadOnly,
}

/// Opens a URL: `memory:`, `memory:PATH` of a copy, `redb:PATH` or `rocksdb:PATH`.
pub(crate) fn open(url: &str, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(Backend::open(MemoryStore::default(), options.memory.clone())?)),
        Some(("memory", copy)) => {
            Ok(Arc::new(Backend::open(MemoryStore::restore(Path::new(copy))?, options.memory.clone())?))
        }
        Some((scheme @ ("redb" | "rocksdb"), "")) => {
            Err(Error::invalid(Code::BAD_VALUE, format!("{url} names no path: {scheme}:PATH")))
        }
        Some(("redb", path)) => redb(Path::new(path), options),
        Some(("rocksdb", path)) => rocksdb(Path::new(path), options),
        Some((scheme, _)) => Err(Error::invalid(
            Code::BAD_VALUE,
            format!("there is no store of the name {scheme:?}; there are: memory:, redb:PATH, rocksdb:PATH"),
        )),
        None => Err(Error::invalid(
            Code::BAD_VALUE,
            format!("a database's URL is memory:, redb:PATH or rocksdb:PATH, and {url:?} has no scheme"),
        )),
    }
}

#[cfg(feature = "redb")]
fn redb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    use slate_store::redb;

    let access = match options.access {
        Access::CreateOrOpen => redb::Access::CreateOrOpen,
        Access::Open => redb::Access::OpenExisting,
        Access::ReadOnly => redb::Access::ReadOnly,
    };
    let mut settings = redb::Options::default().access(access);
    if let Some(cache_bytes) = options.cache_bytes {
        settings = settings.cache_bytes(cache_bytes);
    }
    Ok(Arc::new(Backend::open(redb::RedbStore::open(path, &settings)?, options.memory.clone())?))
}

#[cfg(not(feature = "redb"))]
fn redb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn Engine>> {
    Err(Error::unsupported_by_name("redb: (this build has no feature 'redb')"))
}

#[cfg(feature = "rocksdb")]
fn rocksdb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Engine>> {
    use slate_store::rocksdb;

    let access = match options.access {
        Access::CreateOrOpen => rocksdb::Access::CreateOrOpen,
        Access::Open => rocksdb::Access::OpenExisting,
        Access::ReadOnly => rocksdb::Access::ReadOnly,
    };
    let mut settings = rocksdb::Options::default().access(access);
    if let Some(cache_bytes) = options.cache_bytes {
        settings = settings.cache_bytes(cache_bytes);
    }
    Ok(Arc::new(Backend::open(rocksdb::RocksStore::open(path, &settings)?, options.memory.clone())?))
}

#[cfg(not(feature = "rocksdb"))]
fn rocksdb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn Engine>> {
    Err(Error::unsupported_by_name("rocksdb: (this build has no feature 'rocksdb')"))
}
