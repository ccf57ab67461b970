use super::{
    BuildRound, BuildStart, BulkOutcome, Created, DeleteOutcome, ExpireOutcome, InsertOutcome, PutOutcome,
    UpdateOutcome, Visibility,
};

/// What metrics count of a write's result.
pub(crate) trait WriteOutcome {
    /// Returns how many documents were inserted, changed or deleted.
    fn written(&self) -> u64 {
        0
    }

    /// Returns whether documents or statements were refused.
    fn has_refusals(&self) -> bool {
        false
    }
}

impl WriteOutcome for InsertOutcome {
    fn written(&self) -> u64 {
        count(self.ids.len())
    }

    fn has_refusals(&self) -> bool {
        !self.refused.is_empty()
    }
}

impl WriteOutcome for UpdateOutcome {
    fn written(&self) -> u64 {
        self.modified + u64::from(self.upserted.is_some())
    }
}

impl WriteOutcome for DeleteOutcome {
    fn written(&self) -> u64 {
        self.deleted
    }
}

impl WriteOutcome for ExpireOutcome {
    fn written(&self) -> u64 {
        self.deleted
    }
}

impl WriteOutcome for PutOutcome {
    fn written(&self) -> u64 {
        self.modified + self.inserted
    }
}

impl WriteOutcome for BulkOutcome {
    fn written(&self) -> u64 {
        count(self.inserted.len()) + count(self.upserted.len()) + self.modified + self.deleted
    }

    fn has_refusals(&self) -> bool {
        !self.refused.is_empty()
    }
}

impl WriteOutcome for () {}
impl WriteOutcome for bool {}
impl WriteOutcome for Option<u32> {}
impl WriteOutcome for Created {}
impl WriteOutcome for Visibility {}
impl WriteOutcome for (String, Created) {}
impl WriteOutcome for BuildStart {}
impl WriteOutcome for BuildRound {}

fn count(documents: usize) -> u64 {
    u64::try_from(documents).unwrap_or(u64::MAX)
}
