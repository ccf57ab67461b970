//! RocksDB's options and the reasons for them. All other options have RocksDB's defaults.

use std::thread;

use ::rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Error as RocksError, LogLevel,
    Options as RocksOptions, WriteBufferManager,
};

use super::options::Options;

/// The size in bytes of a block, the unit of reading, checking and compression. RocksDB's tuning guide recommends 16 KiB
/// (<https://github.com/facebook/rocksdb/wiki/Setup-Options-and-Basic-Tuning>): documents compress better together, and
/// the index of a file has a quarter of the size that it has with the default of 4 KiB.
const BLOCK: usize = 16 << 10;

/// The size of the bloom filters, in bits per key: about 1 % false positives.
const FILTER_BITS: f64 = 10.0;

/// Maximum number of open files. RocksDB's default, all files, can exceed the usual limit of 1,024 per process.
const OPEN_FILES: i32 = 512;

/// The maximum size in bytes of an information log of RocksDB.
const INFO_LOG: usize = 4 << 20;

pub(super) struct Tuning {
    pub(super) database: RocksOptions,
    pub(super) cache: Cache,
}

/// Options for which the bindings have no function. Commits write keys in ascending order, and loads often read them in this order. Within a
/// keyspace (a prefix of four bytes), the write buffers search for each key from the position of the previous one.
///
/// An iterator that reads a file in order reads ahead, twice as much each time. The limit is 1 MiB instead of RocksDB's 256 KiB,
/// because each read waits for the device. Each file that an iterator reads in order takes a buffer of up to this size.
const BY_NAME: &str = "memtable_insert_with_hint_prefix_extractor=fixed:4;memtable_batch_lookup_optimization=true;\
    block_based_table_factory={max_auto_readahead_size=1048576}";

impl Tuning {
    pub(super) fn of(options: &Options) -> Result<Self, RocksError> {
        let cache = Cache::new_lru_cache(options.cache_bytes);
        let mut database = RocksOptions::default();
        database.set_block_based_table_factory(&blocks(&cache));
        let mut database = database.get_options_from_string(BY_NAME)?;

        // LZ4 on every level: it compresses documents well, and decompressing a block is faster than reading the saved
        // bytes. Zstandard compresses better, but reads would be several times slower, and it is another C library in
        // the build.
        database.set_compression_type(DBCompressionType::Lz4);

        database.set_write_buffer_size(options.write_buffer());
        // Counts the write buffers as part of the cache, so that the cache size bounds the memory.
        let buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(2 * options.write_buffer(), false, cache.clone());
        database.set_write_buffer_manager(&buffers);
        // Most keys that are read are not in the write buffers, and a filter avoids searching for them. This size is about ten
        // bits per key for documents of 300 bytes with two entries each. A larger filter slows writes down, because it does
        // not fit in the processor's inner caches.
        database.set_memtable_prefix_bloom_ratio(0.007);
        database.set_memtable_whole_key_filtering(true);

        // After a power failure, recovers all commits before the first incomplete record of the log.
        database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // Syncs files gradually while they are written, because a single sync at the end would delay commits on the same device.
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
    // Filters whole keys, because lookups of single keys are frequent and most files do not contain the key. Filters of
    // prefixes would not help: every file has keys of every keyspace.
    blocks.set_bloom_filter(FILTER_BITS, false);
    blocks.set_whole_key_filtering(true);
    // Filters and indexes are in the cache, so that the cache size bounds the memory. They are divided into blocks: the whole filter of a large
    // file has megabytes. It would not fit into one of the shards of a small cache (1.6 MB each in a cache of 105 MB), and would be read again for
    // each key.
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_partition_filters(true);
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_metadata_block_size(BLOCK);
    blocks.set_pin_top_level_index_and_filter(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks
}

/// Returns the number of background jobs: the number of processors, but at most eight, and at least two, so that write buffers are flushed while
/// files are merged.
fn background_jobs() -> i32 {
    let processors = thread::available_parallelism().map_or(2, usize::from);
    i32::try_from(processors.clamp(2, 8)).unwrap_or(2)
}
