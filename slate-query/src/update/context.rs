/// The data besides the document that an update depends on: the position that the filter matched, the time, and whether it inserts.
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
    /// The value that a replacement stores in place of empty timestamps.
    pub empty_timestamps: EmptyTimestamps,
}

/// The value that is stored in place of `Timestamp(0, 0)` at the top level of a document that is inserted or that replaces another, except in `_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyTimestamps {
    /// The current time.
    #[default]
    Current,
    /// Nothing: they stay empty.
    Kept,
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
        Self::new(now_millis, position, Phase::Modify)
    }

    /// Returns the context for the document that an upsert inserts.
    pub fn insert(now_millis: i64) -> Self {
        Self::new(now_millis, None, Phase::Insert)
    }

    fn new(now_millis: i64, position: Option<usize>, phase: Phase) -> Self {
        let (timestamp, empty_timestamps) = (first_timestamp(now_millis), EmptyTimestamps::Current);
        Self { position, now_millis, timestamp, phase, empty_timestamps }
    }

    /// Sets the timestamp. By default its increment is 1.
    #[must_use]
    pub fn with_timestamp(self, timestamp: u64) -> Self {
        Self { timestamp, ..self }
    }

    /// Sets what a replacement stores in place of empty timestamps.
    #[must_use]
    pub fn with_empty_timestamps(self, empty_timestamps: EmptyTimestamps) -> Self {
        Self { empty_timestamps, ..self }
    }
}

fn first_timestamp(now_millis: i64) -> u64 {
    let seconds = u32::try_from(now_millis / 1000).unwrap_or(u32::MAX);
    u64::from(seconds) << 32 | 1
}
