//! The cluster time: the logical clock of the library, in which commits are logged. It never goes back, and it advances with each write and
//! with the times that clients have heard elsewhere.

use std::time::{SystemTime, UNIX_EPOCH};

use bson::{Binary, RawDocumentBuf, Timestamp, cstr, rawdoc, spec::BinarySubtype};
use slate_core::aio::Database;

/// The largest number of seconds by which a client may advance the clock: MongoDB's limit of a year.
const MAX_DRIFT: u64 = 31_536_000;

/// Advances the clock to a time that a client sends, unless that is far in the future.
pub(crate) fn hear(database: &Database, time: Timestamp) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    if u64::from(time.time) <= now + MAX_DRIFT {
        database.advance_time(time);
    }
}

/// Appends the times that every reply of a member of a replica set has.
pub(crate) fn append_to(database: &Database, reply: &mut RawDocumentBuf) {
    let now = database.last_time();
    let hash = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 20] };
    let signature = rawdoc! { "hash": hash, "keyId": 0_i64 };
    reply.append(cstr!("$clusterTime"), rawdoc! { "clusterTime": now, "signature": signature });
    reply.append(cstr!("operationTime"), now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_believes_the_near_future() {
        let database = Database::from(slate_core::Database::open("memory:").unwrap());
        let now = database.next_time();
        let soon = Timestamp { time: now.time + 1000, increment: 3 };
        hear(&database, soon);
        hear(&database, Timestamp { time: u32::MAX, increment: 1 });
        let next = database.next_time();
        assert!(soon < next && next.time < u32::MAX, "{next:?}");
    }
}
