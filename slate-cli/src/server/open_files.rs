//! The limit of this process's open files. Each connection is an open file.

use crate::message::message;

/// Maximum number of connections of a server without `--max-connections`.
pub(super) const DEFAULT_CONNECTIONS: usize = 10_000;

/// Files beside those of connections: the database, which has up to 512 open on RocksDB, its temporary files, connections that are being
/// refused, those of the runtime and the standard streams.
const OTHERS: usize = 1024;

/// Raises this process's limit, up to the system's maximum, and warns if it is too low for this many connections.
pub(super) fn prepare(connections: usize) {
    let needed = connections.saturating_add(OTHERS);
    if let Some(limit) = raise(needed).filter(|limit| *limit < needed) {
        message!(
            "warning: the limit of open files (ulimit -n) is {limit}, and {connections} connections (--max-connections) need {needed}: \
             further clients wait until others disconnect"
        );
    }
}

/// Raises the limit if it is below `needed`, and returns it; `None` if there is no limit.
#[cfg(unix)]
fn raise(needed: usize) -> Option<usize> {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let files = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let mut limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if files(current) >= needed {
        return Some(files(current));
    }
    // A system can refuse to remove the limit although it reports no maximum, so the limit is then set to `needed`.
    limit.current = limit.maximum.or(u64::try_from(needed).ok());
    // A failure leaves the limit as it is.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.map(files)
}

#[cfg(not(unix))]
fn raise(_needed: usize) -> Option<usize> {
    None
}
