//! A database with one fault, to test that the checks find it.

use bson::RawDocumentBuf;
use slate_bench::{
    Answer, Change, Consume, Fetched, Query, Subject,
    harness::{About, Result, Unsupported},
    slate::{Prepared, Slate},
};

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Omits the last row of each result.
    RowTooFew,
    /// Ignores merges and reports success.
    MergeNothing,
    /// Splits one commit into two.
    HalfCommits,
    /// Does not support distinct.
    NoDistinct,
}

/// Slate with one fault.
#[derive(Debug)]
pub(crate) struct FaultySlate {
    pub(crate) slate: Slate,
    pub(crate) fault: Fault,
}

impl Subject for FaultySlate {
    type Query = Prepared;
    type Batch = Vec<RawDocumentBuf>;

    fn about(&self) -> About {
        self.slate.about()
    }

    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Self::Batch> {
        self.slate.encode(changes)
    }

    fn insert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64> {
        self.slate.insert(user, batch)
    }

    fn upsert(&mut self, user: usize, batch: &Self::Batch) -> Result<u64> {
        if self.fault != Fault::HalfCommits {
            return self.slate.upsert(user, batch);
        }
        let (left, right) = batch.split_at(batch.len() / 2);
        let left = self.slate.upsert(user, &left.to_vec())?;
        // Long enough for a reader to see the gap.
        std::thread::sleep(std::time::Duration::from_millis(2));
        Ok(left + self.slate.upsert(user, &right.to_vec())?)
    }

    fn merge(&mut self, user: usize, batch: &Self::Batch) -> Result<u64> {
        match self.fault {
            Fault::MergeNothing => Ok(u64::try_from(batch.len())?),
            _ => self.slate.merge(user, batch),
        }
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        self.slate.delete(user, ids)
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        match (self.fault, query) {
            (Fault::NoDistinct, Query::Distinct { .. }) => Err(Unsupported::because("no distinct values").into()),
            _ => self.slate.prepare(user, query),
        }
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        if self.fault == Fault::HalfCommits {
            // Delays readers so that they overlap with the writers.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.slate.run(query, consume)
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        let mut fetched = self.slate.fetch(query)?;
        if let (Fault::RowTooFew, Fetched::Documents(documents)) = (self.fault, &mut fetched) {
            documents.pop();
        }
        Ok(fetched)
    }

    fn verify(&mut self) -> Result<()> {
        self.slate.verify()
    }

    fn connect(&self) -> Result<Self> {
        Ok(Self { slate: self.slate.connect()?, fault: self.fault })
    }
}
