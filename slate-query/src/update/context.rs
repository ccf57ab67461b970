/// The context of an update: the matched position, the time, and the purpose of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The array position that the positional operator `$` represents.
    pub position: Option<usize>,
    /// The time for `$currentDate`, in milliseconds since 1970.
    pub now_millis: i64,
    /// The current timestamp: seconds in the high half, increment in the low half.
    pub timestamp: u64,
    /// The purpose of the write.
    pub phase: Phase,
}

/// The purpose of a write, which decides whether `$setOnInsert` applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Updates an existing document.
    Modify,
    /// Creates the document that an upsert inserts.
    Insert,
}

impl Context {
    /// Returns the context for updating an existing document.
    pub fn modify(now_millis: i64, position: Option<usize>) -> Self {
        Self { position, now_millis, timestamp: first_timestamp(now_millis), phase: Phase::Modify }
    }

    /// Returns the context for the document that an upsert inserts.
    pub fn insert(now_millis: i64) -> Self {
        Self { position: None, now_millis, timestamp: first_timestamp(now_millis), phase: Phase::Insert }
    }

    /// Sets the timestamp. By default its increment is 1.
    #[must_use]
    pub fn with_timestamp(self, timestamp: u64) -> Self {
        Self { timestamp, ..self }
    }
}

fn first_timestamp(now_millis: i64) -> u64 {
    let seconds = u32::try_from(now_millis / 1000).unwrap_or(u32::MAX);
    u64::from(seconds) << 32 | 1
}
