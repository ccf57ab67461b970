//! Implements the workload's operations.

use std::{cell::RefCell, hint::black_box};

use bison_db::{DocId, Document, Value as Bisons};
use slate_bench::{
    Answer, Change, Consume, Fetched, Query, Subject,
    harness::{About, Result, number::count},
};

use crate::{
    convert,
    database::{Bison, User},
    convert_query::{ConvertedQuery, convert_query},
};

/// Documents for the next call. bison-db takes ownership; the copy is not part of the measurement.
pub(crate) type Batch = RefCell<Vec<Encoded>>;

/// A record or some of its fields.
pub(crate) enum Encoded {
    Whole(i64, Document),
    Fields(i64, Vec<(&'static str, Bisons)>),
}

/// A query on one user's database.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    user: usize,
    converted: ConvertedQuery,
}

impl Bison {
    fn user(&self, user: usize) -> Result<&User> {
        Ok(self.users.get(user).ok_or("unknown user")?)
    }

    fn user_mut(&mut self, user: usize) -> Result<&mut User> {
        Ok(self.users.get_mut(user).ok_or("unknown user")?)
    }
}

impl User {
    fn put(&mut self, id: i64, document: Document) -> Result<()> {
        match self.ids.get(&id) {
            Some(number) => {
                self.db.update(*number, document)?;
            }
            None => {
                self.ids.insert(id, self.db.insert(document)?);
            }
        }
        Ok(())
    }

    fn number(&self, id: i64) -> Option<DocId> {
        self.ids.get(&id).copied()
    }
}

fn id_of(document: &Document) -> i64 {
    document.get("_id").and_then(Bisons::as_int).unwrap_or(i64::MIN)
}

impl Subject for Bison {
    type Query = Prepared;
    type Batch = Batch;

    fn about(&self) -> About {
        About {
            name: "bison-db".into(),
            version: "1.0.0".into(),
            settings: "a file per user, not synced, no transactions".into(),
        }
    }

    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Batch> {
        let encode = |change| match change {
            Change::Whole(record) => Encoded::Whole(record.id, convert::record(&record)),
            Change::Fields(patch) => Encoded::Fields(patch.id, convert::fields(&patch)),
        };
        Ok(RefCell::new(changes.map(encode).collect()))
    }

    fn insert(&mut self, user: usize, batch: &Batch) -> Result<u64> {
        self.upsert(user, batch)
    }

    fn upsert(&mut self, user: usize, batch: &Batch) -> Result<u64> {
        let user = self.user_mut(user)?;
        let changes = batch.take();
        let many = count(changes.len());
        for change in changes {
            match change {
                Encoded::Whole(id, document) => user.put(id, document)?,
                Encoded::Fields(..) => return Err("fields are valid only in a merge".into()),
            }
        }
        Ok(many)
    }

    /// Reads, changes and writes each document, because bison-db has no partial update.
    fn merge(&mut self, user: usize, batch: &Batch) -> Result<u64> {
        let user = self.user_mut(user)?;
        let changes = batch.take();
        let many = count(changes.len());
        for change in changes {
            match change {
                Encoded::Whole(id, document) => user.put(id, document)?,
                Encoded::Fields(id, fields) => {
                    let stored = user.number(id).map(|number| user.db.get(number)).transpose()?.flatten();
                    let mut document = stored.unwrap_or_default();
                    for (name, value) in fields {
                        document.set(name, value);
                    }
                    user.put(id, document)?;
                }
            }
        }
        Ok(many)
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        let user = self.user_mut(user)?;
        for id in ids {
            if let Some(number) = user.ids.remove(id) {
                user.db.delete(number)?;
            }
        }
        Ok(())
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        Ok(Prepared { user, converted: convert_query(query)? })
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        let user = self.user(query.user)?;
        let mut answer = Answer::default();
        match (&query.converted, consume) {
            // Documents are always owned.
            (ConvertedQuery::Find(plan), Consume::Lent) => plan.each(&user.db, |document| answer.see(id_of(&document)))?,
            (ConvertedQuery::Find(plan), Consume::Owned) => {
                let mut documents = Vec::new();
                plan.each(&user.db, |document| documents.push(document))?;
                documents.iter().for_each(|document| answer.see(id_of(document)));
            }
            (ConvertedQuery::Count(source), _) => answer = Answer::counted(count(source.ids(&user.db)?.len())),
            (ConvertedQuery::Lookups(ids), _) => {
                for id in ids {
                    let Some(number) = user.number(*id) else { continue };
                    if let Some(document) = user.db.get(number)? {
                        answer.see(id_of(black_box(&document)));
                    }
                }
            }
        }
        Ok(answer)
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        let user = self.user(query.user)?;
        let mut documents = Vec::new();
        match &query.converted {
            ConvertedQuery::Find(plan) => plan.each(&user.db, |document| documents.push(convert::document(&document)))?,
            ConvertedQuery::Count(source) => return Ok(Fetched::Count(count(source.ids(&user.db)?.len()))),
            ConvertedQuery::Lookups(ids) => {
                for id in ids {
                    let Some(number) = user.number(*id) else { continue };
                    documents.extend(user.db.get(number)?.as_ref().map(convert::document));
                }
            }
        }
        Ok(Fetched::Documents(documents))
    }

    fn size(&mut self) -> Result<Option<u64>> {
        Ok(Some(self.users.iter().map(|user| user.db.stats().file_bytes).sum()))
    }
}
