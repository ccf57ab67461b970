/// What an update is told besides the document: where the filter matched, the time, and what the write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The array position that the positional operator `$` stands for, as the filter's match gave it.
    pub position: Option<usize>,
    /// The time for `$currentDate`, in milliseconds since 1970. A timestamp made of it has the increment 1.
    pub now_millis: i64,
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
        Self { position, now_millis, phase: Phase::Modify }
    }

    /// For the document that an upsert inserts.
    pub fn insert(now_millis: i64) -> Self {
        Self { position: None, now_millis, phase: Phase::Insert }
    }
}
