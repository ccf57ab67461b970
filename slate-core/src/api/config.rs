use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Access, Database, DatabaseBuilder, Durability, Recovery, Result, Sharing, Verification, units};

/// The location and the settings of a database, as part of a service's configuration.
///
/// Only `url` is required. An error names the unknown key, or the key whose value is invalid.
///
/// | key | values | default | see |
/// |---|---|---|---|
/// | `url` | `"memory:"`, `"redb:PATH"`, … | | [`Database::open`] |
/// | `access` | `"create_or_open"`, `"open"`, `"read_only"` | `"create_or_open"` | [`DatabaseBuilder::access`] |
/// | `durability` | `"sync"`, `"deferred"` | `"sync"` | [`DatabaseBuilder::durability`] |
/// | `recovery` | `"with_each_commit"`, `"when_opened"` | `"with_each_commit"` | [`DatabaseBuilder::recovery`] |
/// | `sharing` | `"exclusive"`, `"with_readers"` | `"exclusive"` | [`DatabaseBuilder::sharing`] |
/// | `verification` | `"on_request"`, `"when_opened"` | `"on_request"` | [`DatabaseBuilder::verification`] |
/// | `cache` | a size | `"256MiB"` | [`DatabaseBuilder::cache`] |
/// | `lock_timeout` | a time | `"5s"` | [`DatabaseBuilder::lock_timeout`] |
/// | `open_timeout` | a time | none: it does not wait | [`DatabaseBuilder::open_timeout`] |
/// | `memory_limit` | a size | `"64MiB"` | [`DatabaseBuilder::memory_limit`] |
/// | `slow_query_threshold` | a time | no call is slow | [`DatabaseBuilder::slow_query_threshold`] |
/// | `temp_directory` | a path | the operating system's | [`DatabaseBuilder::temp_directory`] |
///
/// A size is a number of bytes, or has a unit: `"256MiB"` (B, KiB, MiB, GiB, TiB; kB, MB, GB, TB). A time has a unit:
/// `"5s"` (ns, us, ms, s, m, h).
///
/// ```
/// use serde::Deserialize;
/// use slate_core::{Config, Database};
///
/// #[derive(Deserialize)]
/// struct Settings {
///     listen: String,
///     database: Config,
/// }
///
/// let settings: Settings = toml::from_str(
///     r#"
///     listen = "127.0.0.1:8080"
///
///     [database]
///     url = "memory:"
///     durability = "deferred"
///     cache = "256MiB"
///     "#,
/// )?;
/// let db = Database::open_config(&settings.database)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The URL of the store; see [`Database::open`].
    pub url: String,
    /// Whether the database may be created, or written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// When a commit returns.
    #[serde(default, with = "durability", skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// When a redb database prepares its recovery after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Which other processes may have a redb database open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// When all pages of a redb database are compared with their checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The cache memory of a store on disk, in bytes.
    #[serde(default, with = "units::bytes", skip_serializing_if = "Option::is_none")]
    pub cache: Option<usize>,
    /// For how long a write or a transaction is retried after conflicts.
    #[serde(default, with = "units::duration", skip_serializing_if = "Option::is_none")]
    pub lock_timeout: Option<Duration>,
    /// How long opening waits while another handle has the database open.
    #[serde(default, with = "units::duration", skip_serializing_if = "Option::is_none")]
    pub open_timeout: Option<Duration>,
    /// Maximum bytes of rows that one query or write holds in memory.
    #[serde(default, with = "units::bytes", skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<usize>,
    /// The time from which a call is reported as slow.
    #[serde(default, with = "units::duration", skip_serializing_if = "Option::is_none")]
    pub slow_query_threshold: Option<Duration>,
    /// The folder for temporary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_directory: Option<PathBuf>,
}

impl Config {
    /// Creates the configuration of a database at this URL, with default settings.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            access: None,
            durability: None,
            recovery: None,
            sharing: None,
            verification: None,
            cache: None,
            lock_timeout: None,
            open_timeout: None,
            memory_limit: None,
            slow_query_threshold: None,
            temp_directory: None,
        }
    }
}

/// Starts a builder from the settings of a file. Further calls on the builder change single settings.
impl From<&Config> for DatabaseBuilder {
    fn from(config: &Config) -> Self {
        // Names every field, so that a new field that is not used is a compile error.
        let Config {
            url,
            access,
            durability,
            recovery,
            sharing,
            verification,
            cache,
            lock_timeout,
            open_timeout,
            memory_limit,
            slow_query_threshold,
            temp_directory,
        } = config;
        let mut builder = Database::builder(url);
        if let Some(access) = access {
            builder = builder.access(*access);
        }
        if let Some(durability) = durability {
            builder = builder.durability(*durability);
        }
        if let Some(recovery) = recovery {
            builder = builder.recovery(*recovery);
        }
        if let Some(sharing) = sharing {
            builder = builder.sharing(*sharing);
        }
        if let Some(verification) = verification {
            builder = builder.verification(*verification);
        }
        if let Some(cache) = cache {
            builder = builder.cache(*cache);
        }
        if let Some(lock_timeout) = lock_timeout {
            builder = builder.lock_timeout(*lock_timeout);
        }
        if let Some(open_timeout) = open_timeout {
            builder = builder.open_timeout(*open_timeout);
        }
        if let Some(memory_limit) = memory_limit {
            builder = builder.memory_limit(*memory_limit);
        }
        if let Some(threshold) = slow_query_threshold {
            builder = builder.slow_query_threshold(*threshold);
        }
        if let Some(temp_directory) = temp_directory {
            builder = builder.temp_directory(temp_directory);
        }
        builder
    }
}

impl Database {
    /// Opens a database with these settings. To change them in code: `DatabaseBuilder::from(&config)`.
    ///
    /// # Errors
    /// Fails as [`DatabaseBuilder::open`] does.
    pub fn open_config(config: &Config) -> Result<Self> {
        DatabaseBuilder::from(config).open()
    }
}

/// Serde support for `Durability`, whose crate does not depend on serde.
mod durability {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Durability;

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "Durability", rename_all = "snake_case")]
    enum Name {
        Sync,
        Deferred,
    }

    #[derive(Serialize, Deserialize)]
    struct Named(#[serde(with = "Name")] Durability);

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Durability>, D::Error> {
        Named::deserialize(deserializer).map(|Named(durability)| Some(durability))
    }

    pub(super) fn serialize<S: Serializer>(durability: &Option<Durability>, serializer: S) -> Result<S::Ok, S::Error> {
        durability.map(Named).serialize(serializer)
    }
}
