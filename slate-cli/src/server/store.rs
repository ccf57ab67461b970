//! How a server opens its database.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueHint};
use slate_core::{Access, Config, Database, DatabaseBuilder, Verification};

use crate::{failure::Result, message::message, session::Session};

/// Settings of the database, with the names that they have in `Config`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct StoreOptions {
    /// The size of the page cache of a store on disk: 256MiB
    #[arg(long, value_name = "SIZE", value_parser = cache)]
    pub(super) cache: Option<usize>,
    /// The memory in which one query may hold rows before it uses temporary files: 64MiB
    #[arg(long, value_name = "SIZE", value_parser = memory_limit)]
    pub(super) memory_limit: Option<usize>,
    /// When all pages of a redb file are compared with their checksums: on_request, or when_opened, too
    #[arg(long, value_name = "WHEN", value_parser = verification)]
    pub(super) verification: Option<Verification>,
    /// The folder for temporary files
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(super) temp_directory: Option<PathBuf>,
    /// Report calls that take longer, with their plans, on standard error: 100ms
    #[arg(long, visible_alias = "slow", value_name = "TIME", value_parser = threshold)]
    pub(super) slow_query_threshold: Option<Duration>,
}

impl StoreOptions {
    /// Opens the database at a URL.
    ///
    /// # Errors
    /// Fails if it cannot be opened or created.
    pub(super) fn open(&self, session: &Session, url: &str, access: Access) -> Result<Database> {
        // Names every field, so that a new option that is not used is a compile error.
        let Self { cache, memory_limit, verification, temp_directory, slow_query_threshold } = self.clone();
        let mut config = Config::new(url);
        config.cache = cache;
        config.memory_limit = memory_limit;
        config.verification = verification;
        config.temp_directory = temp_directory;
        config.slow_query_threshold = slow_query_threshold;
        let mut builder = DatabaseBuilder::from(&config);
        if slow_query_threshold.is_some() {
            builder = builder.on_slow_query(|slow| message!("{:.3} slow: {slow}", jiff::Timestamp::now()));
        }
        session.open_synced(builder, url, access)
    }
}

fn cache(text: &str) -> std::result::Result<usize, String> {
    setting("cache", text, |config| config.cache)
}

fn memory_limit(text: &str) -> std::result::Result<usize, String> {
    setting("memory_limit", text, |config| config.memory_limit)
}

fn verification(text: &str) -> std::result::Result<Verification, String> {
    setting("verification", text, |config| config.verification)
}

fn threshold(text: &str) -> std::result::Result<Duration, String> {
    setting("slow_query_threshold", text, |config| config.slow_query_threshold)
}

/// Parses a setting in the notation of the library's `Config`.
fn setting<T>(key: &str, text: &str, value: impl FnOnce(&Config) -> Option<T>) -> std::result::Result<T, String> {
    let config = bson::deserialize_from_document::<Config>(bson::doc! { "url": "memory:", key: text });
    let config = config.map_err(|error| error.to_string())?;
    value(&config).ok_or_else(|| "expected a value".into())
}
