//! The cluster time: the logical clock of the library, in which commits are logged. It never goes back. Each write advances it, and so do later
//! times that clients have received from other servers.

use std::time::{SystemTime, UNIX_EPOCH};

use bson::{RawDocumentBuf, Timestamp};
use slate_core::aio::Database;

/// Maximum number of seconds by which a client may advance the clock: a day. A clock set to the local time of another zone is at most 14 hours
/// ahead. MongoDB accepts a year, for times that one of its servers has signed; here times are not signed.
const MAX_DRIFT: u64 = 86_400;

/// Advances the clock to a time that a client sends. Ignores a time that is too far in the future.
pub(crate) fn hear(database: &Database, time: Timestamp) {
    if time <= database.last_time() {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    if u64::from(time.time) <= now + MAX_DRIFT {
        database.advance_time(time);
    }
}

/// The field `$clusterTime` up to its timestamp, with the lengths of its documents.
const BEFORE_CLUSTER_TIME: &[u8] = b"\x03$clusterTime\0\x58\0\0\0\x11clusterTime\0";

/// The rest of the field `$clusterTime`, and `operationTime` up to its timestamp. The signature is that of a server without keys.
const BEFORE_OPERATION_TIME: &[u8] = b"\x03signature\0\x33\0\0\0\x05hash\0\x14\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x12keyId\0\0\0\0\0\0\0\0\0\0\0\x11operationTime\0";

/// Appends the times that a member of a replica set adds to every reply. Written as bytes, because that is fast.
pub(crate) fn append_to(database: &Database, reply: RawDocumentBuf) -> RawDocumentBuf {
    append(database.last_time(), reply)
}

fn append(now: Timestamp, reply: RawDocumentBuf) -> RawDocumentBuf {
    let now = ((u64::from(now.time) << 32) | u64::from(now.increment)).to_le_bytes();
    let added = [BEFORE_CLUSTER_TIME, &now, BEFORE_OPERATION_TIME, &now];
    let mut bytes = reply.into_bytes();
    bytes.reserve(added.iter().map(|part| part.len()).sum());
    bytes.pop();
    added.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.push(0);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    bytes.iter_mut().zip(length).for_each(|(place, byte)| *place = byte);
    RawDocumentBuf::from_bytes(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bson::{Binary, rawdoc, spec::BinarySubtype};

    use super::*;

    #[test]
    fn a_reply_has_the_times_of_a_replica_set() {
        let now = Timestamp { time: 0x0102_0304, increment: 0x0506_0708 };
        let hash = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 20] };
        let signature = rawdoc! { "hash": hash, "keyId": 0_i64 };
        let expected = rawdoc! {
            "ok": 1.0, "$clusterTime": { "clusterTime": now, "signature": signature }, "operationTime": now,
        };
        assert_eq!(append(now, rawdoc! { "ok": 1.0 }), expected);
    }

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
