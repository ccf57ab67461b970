use ::rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

/// Calls `read`, and returns its result and the bytes of the blocks that this thread read from files meanwhile. RocksDB counts per thread, so other
/// queries of the process are not included.
pub(super) fn with_bytes_read<R>(read: impl FnOnce() -> R) -> (R, Option<u64>) {
    let context = PerfContext::default();
    set_perf_stats(PerfStatsLevel::EnableCount);
    let before = context.metric(PerfMetric::BlockReadByte);
    let result = read();
    let after = context.metric(PerfMetric::BlockReadByte);
    set_perf_stats(PerfStatsLevel::Disable);
    (result, Some(after.saturating_sub(before)))
}
