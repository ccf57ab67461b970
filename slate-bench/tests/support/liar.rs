//! A database that is wrong, each in one way.

use bson::RawDocumentBuf;
use slate_bench::{
    Answer, Change, Consume, Fetched, Query, Subject,
    harness::{About, Result, Unsupported},
    slate::{Prepared, Slate},
};

/// What it is wrong about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// It leaves out the last row of each answer.
    RowTooFew,
    /// A merge writes nothing and says it did.
    MergeNothing,
    /// What should be one commit is two.
    HalfCommits,
    /// It does not know different values.
    NoDistinct,
}

/// Slate, with one thing wrong.
#[derive(Debug)]
pub(crate) struct Liar {
    pub(crate) slate: Slate,
    pub(crate) lie: Lie,
}

impl Subject for Liar {
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
        if self.lie != Lie::HalfCommits {
            return self.slate.upsert(user, batch);
        }
        let (left, right) = batch.split_at(batch.len() / 2);
        let left = self.slate.upsert(user, &left.to_vec())?;
        // Long enough for a reader to see it.
        std::thread::sleep(std::time::Duration::from_millis(2));
        Ok(left + self.slate.upsert(user, &right.to_vec())?)
    }

    fn merge(&mut self, user: usize, batch: &Self::Batch) -> Result<u64> {
        match self.lie {
            Lie::MergeNothing => Ok(u64::try_from(batch.len())?),
            _ => self.slate.merge(user, batch),
        }
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        self.slate.delete(user, ids)
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        match (self.lie, query) {
            (Lie::NoDistinct, Query::Distinct { .. }) => Err(Unsupported::because("no distinct values").into()),
            _ => self.slate.prepare(user, query),
        }
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        if self.lie == Lie::HalfCommits {
            // Readers that are done before the writers have begun would see nothing of it.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.slate.run(query, consume)
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        let mut fetched = self.slate.fetch(query)?;
        if let (Lie::RowTooFew, Fetched::Documents(documents)) = (self.lie, &mut fetched) {
            documents.pop();
        }
        Ok(fetched)
    }

    fn verify(&mut self) -> Result<()> {
        self.slate.verify()
    }

    fn connect(&self) -> Result<Self> {
        Ok(Self { slate: self.slate.connect()?, lie: self.lie })
    }
}
