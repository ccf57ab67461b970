//! Implements the workload's operations.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bson2::{Document, doc};
use polodb_core::{ClientCursor, Collection, CollectionT, Database, options::UpdateOptions};
use serde::{Deserialize, de::DeserializeOwned};
use slate_bench::{
    Answer, Change, Consume, Fetched, Query, Subject,
    harness::{About, Result, Unsupported, number::count},
};

use crate::{
    convert,
    database::{Polo, name},
    convert_query::{ConvertedQuery, convert_query},
};

/// A query that takes longer than this is aborted.
const PATIENCE: Duration = Duration::from_secs(20);

/// A query on one collection.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    user: usize,
    converted: ConvertedQuery,
}

/// The field to read from each document of a cursor; PoloDB copies the whole document for it.
#[derive(Deserialize)]
struct OnlyId {
    #[serde(rename = "_id")]
    id: i64,
}

/// The document that a count returns.
#[derive(Deserialize)]
struct Counted {
    counted: i64,
}

impl Subject for Polo {
    type Query = Prepared;
    type Batch = Vec<Document>;

    fn about(&self) -> About {
        About {
            name: "polodb".into(),
            version: Database::get_version().into(),
            settings: "default settings: every commit is synced, which cannot be changed".into(),
        }
    }

    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Vec<Document>> {
        changes.map(|change| convert::document(&change)).collect()
    }

    fn insert(&mut self, user: usize, batch: &Vec<Document>) -> Result<u64> {
        Ok(count(self.collection(user).insert_many(batch)?.inserted_ids.len()))
    }

    /// Sets every field, because PoloDB cannot replace a document; the records of this workload all have the same
    /// fields.
    fn upsert(&mut self, user: usize, batch: &Vec<Document>) -> Result<u64> {
        let transaction = self.database.start_transaction()?;
        let collection = transaction.collection::<Document>(&name(user));
        for document in batch {
            let mut fields = document.clone();
            let id = fields.remove("_id").ok_or("a document without an _id")?;
            let options = UpdateOptions::builder().upsert(true).build();
            collection.update_one_with_options(doc! { "_id": id }, doc! { "$set": fields }, options)?;
        }
        transaction.commit()?;
        Ok(count(batch.len()))
    }

    fn merge(&mut self, user: usize, batch: &Vec<Document>) -> Result<u64> {
        self.upsert(user, batch)
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        let transaction = self.database.start_transaction()?;
        let collection = transaction.collection::<Document>(&name(user));
        for id in ids {
            collection.delete_one(doc! { "_id": *id })?;
        }
        Ok(transaction.commit()?)
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        Ok(Prepared { user, converted: convert_query(query)? })
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        let collection = self.collection(query.user);
        match (&query.converted, consume) {
            (ConvertedQuery::Count(pipeline), _) => Ok(Answer::counted(counted(&collection, pipeline)?)),
            (ConvertedQuery::Lookups(ids), _) => {
                let mut answer = Answer::default();
                for document in lookups(&collection, ids) {
                    answer.see(document?.get_i64("_id")?);
                }
                Ok(answer)
            }
            (converted, Consume::Lent) => {
                let mut answer = Answer::default();
                each(run_query::<OnlyId>(&collection, converted)?, |row| answer.see(row.id))?;
                Ok(answer)
            }
            (converted, Consume::Owned) => {
                let mut documents = Vec::new();
                each(run_query::<Document>(&collection, converted)?, |document| documents.push(document))?;
                documents
                    .iter()
                    .map(|document| Ok(document.get_i64("_id")?))
                    .collect::<Result<Vec<_>>>()
                    .map(|ids| ids.into_iter().collect())
            }
        }
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        let collection = self.collection(query.user);
        let mut documents = Vec::new();
        match &query.converted {
            ConvertedQuery::Count(pipeline) => return Ok(Fetched::Count(counted(&collection, pipeline)?)),
            ConvertedQuery::Lookups(ids) => {
                for document in lookups(&collection, ids) {
                    documents.push(document?);
                }
            }
            converted => each(run_query::<Document>(&collection, converted)?, |document| documents.push(document))?,
        }
        Ok(Fetched::Documents(documents.iter().map(convert::checked).collect::<Result<_>>()?))
    }

    fn size(&mut self) -> Result<Option<u64>> {
        Ok(Some(bytes(&self.folder)?))
    }

    fn connect(&self) -> Result<Self> {
        Ok(Self { database: self.database.clone(), folder: self.folder.clone() })
    }
}

fn lookups<'c>(collection: &'c Collection<Document>, ids: &'c [i64]) -> impl Iterator<Item = Result<Document>> + 'c {
    ids.iter().filter_map(|id| collection.find_one(doc! { "_id": *id }).map_err(Into::into).transpose())
}

fn run_query<T: DeserializeOwned + Send + Sync>(
    collection: &Collection<Document>,
    converted: &ConvertedQuery,
) -> Result<ClientCursor<T>> {
    let pipeline = match converted {
        ConvertedQuery::Pipeline(pipeline) => pipeline.clone(),
        ConvertedQuery::Count(_) | ConvertedQuery::Lookups(_) => return Err("a query without a document pipeline".into()),
    };
    Ok(collection.aggregate(pipeline).with_type::<T>().run()?)
}

fn counted(collection: &Collection<Document>, pipeline: &[Document]) -> Result<u64> {
    let mut cursor = collection.aggregate(pipeline.to_vec()).with_type::<Counted>().run()?;
    if !cursor.advance()? {
        return Ok(0);
    }
    Ok(u64::try_from(cursor.deserialize_current()?.counted)?)
}

/// Calls `row` with each row until the time limit.
fn each<T: DeserializeOwned + Send + Sync>(mut cursor: ClientCursor<T>, mut row: impl FnMut(T)) -> Result<()> {
    let begin = Instant::now();
    let mut rows = 0_u64;
    while cursor.advance()? {
        row(cursor.deserialize_current()?);
        rows += 1;
        if rows.is_multiple_of(64) && begin.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(Unsupported::because(format!("no more than {rows} rows in {seconds} s")).into());
        }
    }
    Ok(())
}

/// Returns the total size of all files in a directory.
fn bytes(folder: &Path) -> Result<u64> {
    let sizes = std::fs::read_dir(folder)?.map(|file| Ok(file?.metadata()?.len()));
    sizes.sum()
}
