//! Slate as a subject of the workload.

use std::{collections::HashMap, hint::black_box, path::Path};

use bson::{DateTime, Document, RawDocumentBuf, doc};
use slate_bench_harness::{About, Repeat, Result, Row, number::count};
use slate_core::{Collection, Database, Durability, Explain, ExplainVerbosity, Find, Index};

use crate::{
    Answer, Change, Condition, Consume, Fetched, Field, Query, Setup, Subject, Test, ThreeFields, TypedRecord,
    TypedTask, Value, Work,
    aggregation::{Cell, Company, Question, Rows},
    slate_async, slate_changes,
    workload::Find as FindQuery,
};

/// A Slate database on one store.
#[derive(Debug)]
pub struct Slate {
    database: Database,
    users: Vec<Collection<RawDocumentBuf>>,
    /// The pipelines of questions, by name.
    pipelines: HashMap<&'static str, Vec<RawDocumentBuf>>,
}

/// A prepared query on one collection.
#[derive(Debug)]
pub enum Prepared {
    /// Returns documents.
    Find(Find<RawDocumentBuf>),
    /// Counts documents.
    Count(Find<RawDocumentBuf>),
    /// Returns the distinct values of a field.
    Distinct(Find<RawDocumentBuf>, &'static str),
    /// Returns documents by their `_id`s.
    Lookups(Collection<RawDocumentBuf>, Vec<i64>),
}

impl Slate {
    /// Opens a new database on the named store in an empty directory.
    ///
    /// # Errors
    /// Fails with Slate's errors.
    pub fn open(store: &str, folder: &Path, setup: Setup) -> Result<Self> {
        let url = match store {
            "memory" => "memory:".into(),
            store => format!("{store}:{}", folder.join("database").display()),
        };
        let mut builder = Database::builder(&url).durability(Durability::Deferred);
        if let Some(cache) = setup.cache {
            builder = builder.cache(usize::try_from(cache)?);
        }
        let database = builder.open()?;
        let users = (1..=setup.users).map(|number| database.collection(&format!("user-{number}"))).collect::<Vec<_>>();
        for collection in &users {
            create_indexes(collection)?;
        }
        Ok(Self { database, users, pipelines: HashMap::new() })
    }

    fn user(&self, user: usize) -> Result<&Collection<RawDocumentBuf>> {
        Ok(self.users.get(user).ok_or("unknown user")?)
    }
}

fn filter(conditions: &[Condition]) -> Document {
    let mut filter = Document::new();
    for Condition { field, test } in conditions {
        match test {
            Test::Equal(Value::Str(string)) | Test::Contains(string) => filter.insert(field.name(), *string),
            Test::Equal(Value::Int(number)) => filter.insert(field.name(), *number),
            Test::Equal(_) | Test::Null => filter.insert(field.name(), bson::Bson::Null),
            Test::NotNull => filter.insert(field.name(), doc! { "$ne": null }),
        };
    }
    filter
}

fn find(collection: &Collection<RawDocumentBuf>, query: &FindQuery) -> Find<RawDocumentBuf> {
    let mut find = collection.find(filter(&query.filter)).skip(query.skip);
    if !query.sort.is_empty() {
        let keys = query.sort.iter().map(|(field, order)| (field.name().into(), order.sign().into()));
        find = find.sort(keys.collect::<Document>());
    }
    if let Some(fields) = &query.projection {
        find = find.projection(fields.iter().map(|field| (field.name().into(), 1.into())).collect::<Document>());
    }
    match query.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

/// The collection of typed documents.
const TYPED: &str = "typed";

impl Slate {
    fn typed_collection<T>(&self) -> Collection<T> {
        self.database.collection(TYPED)
    }

    fn clear_typed(&self) -> Result<()> {
        let collection = self.typed_collection::<RawDocumentBuf>();
        collection.drop()?;
        create_indexes(&collection)
    }
}

pub(crate) fn create_indexes(collection: &Collection<RawDocumentBuf>) -> Result<()> {
    for field in Field::INDEXED {
        collection.create_index(Index::on(doc! { field.name(): 1 })).run()?;
    }
    Ok(())
}

impl Subject for Slate {
    type Query = Prepared;
    type Batch = Vec<RawDocumentBuf>;

    fn about(&self) -> About {
        About {
            name: format!("slate {}", self.database.store()),
            version: env!("CARGO_PKG_VERSION").into(),
            settings: "commits deferred, otherwise default settings".into(),
        }
    }

    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Vec<RawDocumentBuf>> {
        Ok(changes.map(|change| change.to_document()).collect())
    }

    fn insert(&mut self, user: usize, batch: &Vec<RawDocumentBuf>) -> Result<u64> {
        Ok(count(self.user(user)?.insert_many(batch).run()?.inserted_ids.len()))
    }

    fn upsert(&mut self, user: usize, batch: &Vec<RawDocumentBuf>) -> Result<u64> {
        let result = self.user(user)?.upsert_many(batch)?;
        Ok(result.inserted + result.matched)
    }

    fn merge(&mut self, user: usize, batch: &Vec<RawDocumentBuf>) -> Result<u64> {
        let result = self.user(user)?.merge_many(batch)?;
        Ok(result.inserted + result.matched)
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        self.user(user)?.delete_many(doc! { "_id": { "$in": ids } }).run()?;
        Ok(())
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        let collection = self.user(user)?;
        Ok(match query {
            Query::Find(query) => Prepared::Find(find(collection, query)),
            Query::Count(conditions) => Prepared::Count(collection.find(filter(conditions))),
            Query::Distinct { field, filter: conditions, sort } => {
                let mut find = collection.find(filter(conditions));
                if let Some(order) = sort {
                    find = find.sort(doc! { field.name(): order.sign() });
                }
                Prepared::Distinct(find, field.name())
            }
            Query::Lookups(ids) => Prepared::Lookups(collection.clone(), ids.clone()),
        })
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        let mut answer = Answer::default();
        match (query, consume) {
            (Prepared::Find(find), Consume::Lent) => {
                let mut rows = find.clone().cursor()?;
                while rows.advance()? {
                    answer.see_document(&rows.current().ok_or("the cursor has no current document")?);
                }
            }
            (Prepared::Find(find), Consume::Owned) => {
                let documents = find.clone().run()?.collect::<slate_core::Result<Vec<_>>>()?;
                documents.iter().for_each(|document| answer.see_document(document));
            }
            (Prepared::Count(find), _) => answer.count = find.clone().count().run()?,
            (Prepared::Distinct(find, field), _) => answer.count = count(find.clone().distinct(field).run()?.len()),
            (Prepared::Lookups(collection, ids), _) => {
                for id in ids {
                    if let Some(document) = collection.find_by_id(*id)? {
                        answer.see_document(&document);
                    }
                }
            }
        }
        Ok(answer)
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        Ok(match query {
            Prepared::Find(find) => {
                let documents = find.clone().run()?.map(|document| Ok(Document::try_from(&*document?)?));
                Fetched::Documents(documents.collect::<Result<_>>()?)
            }
            Prepared::Count(find) => Fetched::Count(find.clone().count().run()?),
            Prepared::Distinct(find, field) => Fetched::Values(find.clone().distinct(field).run()?),
            Prepared::Lookups(collection, ids) => {
                let found = ids.iter().filter_map(|id| collection.find_by_id(*id).transpose());
                let documents = found.map(|document| Ok(Document::try_from(&*document?)?));
                Fetched::Documents(documents.collect::<Result<_>>()?)
            }
        })
    }

    fn work(&mut self, user: usize, query: &Query) -> Result<Option<Work>> {
        let explained = match self.prepare(user, query)? {
            Prepared::Find(find) => find.explain(ExplainVerbosity::ExecutionStats)?,
            Prepared::Count(find) => find.count().explain(ExplainVerbosity::ExecutionStats)?,
            Prepared::Distinct(find, field) => find.distinct(field).explain(ExplainVerbosity::ExecutionStats)?,
            // Each lookup reads one key and one document without a plan.
            Prepared::Lookups(_, ids) => {
                let each = count(ids.len());
                return Ok(Some(Work { keys: each, documents: each, plan: "by key".into() }));
            }
        };
        let stats = explained.execution_stats().unwrap_or_default();
        let (keys, documents) = (stats.keys_examined, stats.documents_examined);
        Ok(Some(Work { keys, documents, plan: plan(&explained) }))
    }

    fn typed(&mut self, task: TypedTask<'_>) -> Result<Answer> {
        let mut answer = Answer::default();
        match task {
            TypedTask::Clear => self.clear_typed()?,
            TypedTask::Insert(batch) => {
                answer.count = count(self.typed_collection().insert_many(&batch.bson).run()?.inserted_ids.len());
            }
            TypedTask::Scan => {
                for record in self.typed_collection::<TypedRecord<DateTime>>().find(doc! {}).run()? {
                    answer.see(black_box(record?).id);
                }
            }
            TypedTask::ScanThree => {
                let mut rows = self.typed_collection::<RawDocumentBuf>().find(doc! {}).cursor()?;
                while rows.advance()? {
                    answer.see(black_box(rows.deserialize_current::<ThreeFields<'_>>()?).id);
                }
            }
            TypedTask::ScanMaps => {
                for record in self.typed_collection::<Document>().find(doc! {}).run()? {
                    answer.see(black_box(record?).get_i64("_id")?);
                }
            }
            TypedTask::Lookups(ids) => {
                let records = self.typed_collection::<TypedRecord<DateTime>>();
                for id in ids {
                    if let Some(record) = records.find_by_id(*id)? {
                        answer.see(black_box(record).id);
                    }
                }
            }
        }
        Ok(answer)
    }

    fn load_companies(&mut self, companies: &[Company]) -> Result<()> {
        let companies: Vec<RawDocumentBuf> = companies
            .iter()
            .map(|company| {
                Ok(RawDocumentBuf::try_from(&doc! {
                    "_id": company.code, "code": company.code, "region": company.region,
                })?)
            })
            .collect::<Result<_>>()?;
        for name in ["companies", "companies_unindexed"] {
            let collection = self.database.collection::<RawDocumentBuf>(name);
            collection.drop()?;
            collection.insert_many(&companies).run()?;
        }
        let indexed = self.database.collection::<RawDocumentBuf>("companies");
        indexed.create_index(Index::on(doc! { "code": 1 })).run()?;
        Ok(())
    }

    fn aggregate(&mut self, question: &Question) -> Result<Rows> {
        if !self.pipelines.contains_key(question.name) {
            let stages = question.stages()?;
            let stages = stages.iter().map(|stage| Ok(RawDocumentBuf::try_from(stage)?)).collect::<Result<_>>()?;
            self.pipelines.insert(question.name, stages);
        }
        let pipeline = self.pipelines.get(question.name).ok_or("unknown question")?;
        let mut cursor = self.user(0)?.aggregate(pipeline).cursor()?;
        let mut rows = Rows::new();
        while cursor.advance()? {
            let row = cursor.current().ok_or("the cursor has no current document")?;
            rows.push(row.iter().map(|field| Cell::of(field?.1)).collect::<Result<_>>()?);
        }
        Ok(rows)
    }

    fn own_rows(&mut self, size: u64, repeat: Repeat) -> Result<Vec<(&'static str, Row)>> {
        slate_async::rows(&self.database, TYPED, size, repeat)
    }

    fn logged_rows(&mut self, seed: u64, repeat: Repeat) -> Result<Vec<Row>> {
        slate_changes::rows(&self.database, seed, repeat)
    }

    fn verify(&mut self) -> Result<()> {
        let report = self.database.verify().run()?;
        match report.findings.first() {
            None if report.is_sound() => Ok(()),
            fault => {
                let first = fault.map_or_else(String::new, |fault| format!("; the first: {fault}"));
                Err(format!("{} faults{first}", report.finding_count).into())
            }
        }
    }

    fn compact(&mut self) -> Result<()> {
        Ok(self.database.compact()?)
    }

    fn size(&mut self) -> Result<Option<u64>> {
        self.database.flush()?;
        Ok(self.database.size()?.on_disk)
    }

    fn connect(&self) -> Result<Self> {
        Ok(Self { database: self.database.clone(), users: self.users.clone(), pipelines: HashMap::new() })
    }
}

/// Returns the plan's nodes from last to first: `SORT ← FETCH ← IXSCAN`.
fn plan(explained: &Explain) -> String {
    let plan = explained.to_document();
    let mut stages = Vec::new();
    let mut node = Some(&plan);
    while let Some(document) = node {
        stages.extend(document.get_str("stage").ok());
        node = document.get_document("input").ok();
    }
    stages.join(" ← ")
}
