use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use bson::{Binary, RawDocumentBuf, Timestamp, cstr, rawdoc, spec::BinarySubtype};

/// The largest number of seconds by which a client may advance the clock: MongoDB's limit of a year.
const MAX_DRIFT: u64 = 31_536_000;

/// The logical clock of the server: seconds in the upper half, a counter in the lower one. It never goes back, and it advances with each
/// write and with the times that clients have heard elsewhere.
#[derive(Debug)]
pub(crate) struct ClusterClock(AtomicU64);

impl ClusterClock {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(start_of(seconds())))
    }

    /// Returns the time of an operation that has just ended.
    pub(crate) fn now(&self) -> Timestamp {
        to_timestamp(self.0.load(Ordering::Acquire))
    }

    /// Advances the clock for a write, and returns its time, which is no earlier than `logged`, the last time in the log of changes.
    pub(crate) fn tick(&self, logged: Timestamp) -> Timestamp {
        let wall = start_of(seconds()).max(to_number(logged));
        let next = |last: u64| Some(last.saturating_add(1).max(wall));
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_else(|last| last);
        to_timestamp(last.saturating_add(1).max(wall))
    }

    /// Advances the clock to a time that a client sends, unless that is far in the future.
    pub(crate) fn hear(&self, time: Timestamp) {
        if u64::from(time.time) <= seconds() + MAX_DRIFT {
            self.0.fetch_max(to_number(time), Ordering::AcqRel);
        }
    }

    /// Appends the times that every reply of a member of a replica set has.
    pub(crate) fn append_to(&self, reply: &mut RawDocumentBuf) {
        let now = self.now();
        let hash = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 20] };
        let signature = rawdoc! { "hash": hash, "keyId": 0_i64 };
        reply.append(cstr!("$clusterTime"), rawdoc! { "clusterTime": now, "signature": signature });
        reply.append(cstr!("operationTime"), now);
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Returns the first time of a second.
fn start_of(seconds: u64) -> u64 {
    seconds << 32 | 1
}

fn to_number(time: Timestamp) -> u64 {
    u64::from(time.time) << 32 | u64::from(time.increment)
}

fn to_timestamp(time: u64) -> Timestamp {
    let half = |half: u64| u32::try_from(half & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    Timestamp { time: half(time >> 32), increment: half(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back_and_believes_the_near_future() {
        let clock = ClusterClock::new();
        let (first, second) =
            (clock.tick(Timestamp { time: 0, increment: 0 }), clock.tick(Timestamp { time: 0, increment: 0 }));
        assert!(first < second && clock.now() == second);
        let soon = Timestamp { time: second.time + 1000, increment: 3 };
        clock.hear(soon);
        assert_eq!(clock.now(), soon);
        clock.hear(Timestamp { time: u32::MAX, increment: 1 });
        assert_eq!(clock.tick(second), Timestamp { increment: 4, ..soon });
        let logged = Timestamp { increment: 9, ..soon };
        assert_eq!(clock.tick(logged), logged);
    }
}
