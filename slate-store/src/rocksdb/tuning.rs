//! What RocksDB is told of how to lay things out, and why. What is not said here is as RocksDB has it.

use std::thread;

use ::rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Error as RocksError, LogLevel, Options as RocksOptions,
};

use super::options::Options;

/// A block is what is read, checked and compressed at once. 16 KiB, as RocksDB's tuning guide has it
/// (<https://github.com/facebook/rocksdb/wiki/Setup-Options-and-Basic-Tuning>): documents compress better together, and
/// the indexes of the files are a quarter of what they are with the default of 4 KiB.
const BLOCK: usize = 16 << 10;

/// Bits of filter for each key: 1 in 100 of the files that lack a key are read for it all the same.
const FILTER_BITS: f64 = 10.0;

/// So many files are kept open at most. RocksDB's default, all of them, comes to an end at the limit of 1,024 that most
/// systems set for a process, with a database of some 60 GB.
const OPEN_FILES: i32 = 512;

/// The room that a file takes in which RocksDB tells what it did in the background.
const INFO_LOG: usize = 4 << 20;

pub(super) struct Tuning {
    pub(super) database: RocksOptions,
    pub(super) cache: Cache,
}

/// What the crate has no function for. A commit's writes come in the order of their keys, and so do keys that are looked up
/// together: within a keyspace, whose number four bytes are, the buffers look for each from where the one before it was. (Of
/// commits that RocksDB writes at the same time, only for those that are looked up.)
const BY_NAME: &str = "memtable_insert_with_hint_prefix_extractor=fixed:4;memtable_batch_lookup_optimization=true";

impl Tuning {
    pub(super) fn of(options: &Options) -> Result<Self, RocksError> {
        let cache = Cache::new_lru_cache(options.cache_bytes);
        let mut database = RocksOptions::default().get_options_from_string(BY_NAME)?;
        database.set_block_based_table_factory(&blocks(&cache));

        // LZ4 on every level: documents take a half to a third of their room, and unpacking a block takes a few
        // microseconds, less than reading what it saves. Zstandard would save another fifth on the last level at several times
        // the cost for each read of it, and is one more C library in the build.
        database.set_compression_type(DBCompressionType::Lz4);

        database.set_write_buffer_size(options.write_buffer_bytes);
        // Reads ask the buffers for keys that mostly are not there: a filter answers most of them, some ten bits a key as in the
        // files, where documents of 300 bytes have two entries each. Every write touches it: one of three times the
        // size, which the nearer caches do not hold, makes loading take a twelfth longer.
        database.set_memtable_prefix_bloom_ratio(0.007);
        database.set_memtable_whole_key_filtering(true);

        // After a power cut: everything up to the first record that is not whole, and nothing behind it.
        database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // Files go to the device as they are written, not all at once when they are done: commits wait for the same device.
        database.set_bytes_per_sync(1 << 20);

        database.set_max_background_jobs(background_jobs());
        database.set_max_open_files(OPEN_FILES);
        database.set_log_level(LogLevel::Warn);
        database.set_max_log_file_size(INFO_LOG);
        database.set_keep_log_file_num(2);
        Ok(Self { database, cache })
    }
}

fn blocks(cache: &Cache) -> BlockBasedOptions {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_size(BLOCK);
    blocks.set_block_cache(cache);
    // A filter of whole keys: single keys are looked up often, by `_id` above all, and mostly lie in one file of several.
    // There is no filter of prefixes: every file has keys of every keyspace.
    blocks.set_bloom_filter(FILTER_BITS, false);
    blocks.set_whole_key_filtering(true);
    // Filters and indexes count against the cache: what a database takes is what it was given.
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks
}

/// Threads for what RocksDB does in the background: the processors, but two at least, so that the buffers are written out
/// while files are merged.
fn background_jobs() -> i32 {
    let processors = thread::available_parallelism().map_or(2, usize::from);
    i32::try_from(processors.clamp(2, 8)).unwrap_or(2)
}
