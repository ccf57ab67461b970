/// What an update is told besides the document: where the filter matched, the time, and what the write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The array position that the positional operator `$` stands for, as the filter's match gave it.
    pub position: Option<usize>,
    /// The time for `$currentDate`, in milliseconds since 1970.
    pub now_millis: i64,
    /// The timestamp of now: seconds in the high half, increment in the low.
    pub timestamp: u64,
    /// What the write is for.
    pub phase: Phase,
}

/// What a write is for: `$setOnInsert` acts in one of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Changing a document that the filter found.
    Modify,
    /// Building the document that an upsert inserts.
    Insert,
}

impl Context {
    /// For changing a document found by the filter.
    pub fn modify(now_millis: i64, position: Option<usize>) -> Self {
        Self { position, now_millis, timestamp: first_timestamp(now_millis), phase: Phase::Modify }
    }

    /// For the document that an upsert inserts.
    pub fn insert(now_millis: i64) -> Self {
        Self { position: None, now_millis, timestamp: first_timestamp(now_millis), phase: Phase::Insert }
    }

    /// With a timestamp whose increment is the caller's: without, it is 1.
    #[must_use]
    pub fn with_timestamp(self, timestamp: u64) -> Self {
        Self { timestamp, ..self }
    }
}

fn first_timestamp(now_millis: i64) -> u64 {
    let seconds = u32::try_from(now_millis / 1000).unwrap_or(u32::MAX);
    u64::from(seconds) << 32 | 1
}
