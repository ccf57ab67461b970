//! Implements the workload's operations.

use std::hint::black_box;

use bson::{Bson, Document as Bsons};
use rusqlite::{
    CachedStatement, Row, TransactionBehavior, params, params_from_iter,
    types::{Value as Sql, ValueRef},
};
use slate_bench::{
    Answer, Change, Consume, Fetched, Field, Query, Subject, TypedTask,
    aggregation::{Company, Question, Rows},
    harness::{About, Result, Unsupported, number::count},
    json,
};

use crate::{
    Place, Sqlite, Statistics,
    sql::{self, Document, Statement},
};

/// A record or some of its fields, as values to bind.
#[derive(Clone, Debug)]
pub enum Encoded {
    /// A whole record as JSON text without `_id`.
    Whole {
        /// Its `_id`.
        id: i64,
        /// The JSON text.
        doc: String,
    },
    /// The fields of a merge.
    Fields {
        /// The `_id`.
        id: i64,
        /// `contacts_count`.
        contacts_count: i32,
        /// `notes`.
        notes: Option<String>,
    },
}

/// A query in SQL.
#[derive(Clone, Debug)]
pub struct Prepared {
    query: Query,
    /// The measured statement.
    statement: Statement,
    /// The checked statement, which returns documents as text.
    checked: Statement,
}

impl Subject for Sqlite {
    type Query = Prepared;
    type Batch = Vec<Encoded>;

    fn about(&self) -> About {
        let (place, settings) = match self.place {
            Place::Memory => ("memory", "JSONB, expression indexes"),
            Place::File => ("file", "JSONB, expression indexes, WAL, synchronous=normal"),
        };
        let (analyzed, statistics) = match self.statistics {
            Statistics::Absent => ("", ""),
            Statistics::Analyzed => (" analyzed", ", ANALYZE after loading"),
        };
        About {
            name: format!("sqlite {place}{analyzed}"),
            version: rusqlite::version().into(),
            settings: format!("{settings}, cache {} MB{statistics}", self.cache >> 20),
        }
    }

    fn encode(&self, changes: impl Iterator<Item = Change>) -> Result<Vec<Encoded>> {
        changes.map(|change| encode(&change)).collect()
    }

    fn insert(&mut self, user: usize, batch: &Vec<Encoded>) -> Result<u64> {
        self.stale = true;
        self.write(&Writing { whole: sql::insert(user), fields: None }, batch)
    }

    fn upsert(&mut self, user: usize, batch: &Vec<Encoded>) -> Result<u64> {
        self.write(&Writing { whole: sql::upsert(user), fields: None }, batch)
    }

    fn merge(&mut self, user: usize, batch: &Vec<Encoded>) -> Result<u64> {
        self.write(&Writing { whole: sql::upsert(user), fields: Some(sql::merge(user)) }, batch)
    }

    fn delete(&mut self, user: usize, ids: &[i64]) -> Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut statement =
                transaction.prepare_cached(&format!("DELETE FROM {} WHERE _id = ?", sql::table(user)))?;
            for id in ids {
                statement.execute([id])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn prepare(&mut self, user: usize, query: &Query) -> Result<Prepared> {
        self.analyze()?;
        let statement = |document| sql::statement(user, query, document);
        Ok(Prepared {
            query: query.clone(),
            statement: statement(Document::Stored)?,
            checked: statement(Document::Text)?,
        })
    }

    fn run(&mut self, query: &Prepared, consume: Consume) -> Result<Answer> {
        let Statement { text, values } = &query.statement;
        let mut statement = self.connection.prepare_cached(text)?;
        match (&query.query, consume) {
            (Query::Find(_), Consume::Lent) => lent(&mut statement, values),
            (Query::Find(_), Consume::Owned) => owned(&mut statement, values),
            (Query::Count(_), _) => {
                let counted: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
                Ok(Answer::counted(u64::try_from(counted)?))
            }
            (Query::Distinct { .. }, _) => {
                let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
                let values = rows.collect::<rusqlite::Result<Vec<Sql>>>()?;
                Ok(Answer::counted(count(values.len())))
            }
            (Query::Lookups(ids), _) => {
                let mut answer = Answer::default();
                for id in ids {
                    let mut rows = statement.query([id])?;
                    if let Some(row) = rows.next()? {
                        answer.see(black_box(owned_row(row, 2)?).0);
                    }
                }
                Ok(answer)
            }
        }
    }

    fn fetch(&mut self, query: &Prepared) -> Result<Fetched> {
        let Statement { text, values } = &query.checked;
        let mut statement = self.connection.prepare_cached(text)?;
        let mut documents = Vec::new();
        match &query.query {
            Query::Find(find) => {
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    documents.push(document(row, find.projection.as_deref())?);
                }
            }
            Query::Lookups(ids) => {
                for id in ids {
                    let mut rows = statement.query([id])?;
                    if let Some(row) = rows.next()? {
                        documents.push(document(row, None)?);
                    }
                }
            }
            Query::Count(_) => {
                let counted: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
                return Ok(Fetched::Count(u64::try_from(counted)?));
            }
            Query::Distinct { field, .. } => {
                let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, Sql>(0))?;
                let values = rows.map(|value| Ok(bson(*field, value?)));
                return Ok(Fetched::Values(values.collect::<Result<_>>()?));
            }
        }
        Ok(Fetched::Documents(documents))
    }

    fn typed(&mut self, task: TypedTask<'_>) -> Result<Answer> {
        self.typed_task(task)
    }

    fn load_companies(&mut self, companies: &[Company]) -> Result<()> {
        self.fill_companies(companies)
    }

    fn aggregate(&mut self, question: &Question) -> Result<Rows> {
        self.answer(question)
    }

    fn verify(&mut self) -> Result<()> {
        let found: String = self.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if found == "ok" { Ok(()) } else { Err(found.into()) }
    }

    fn compact(&mut self) -> Result<()> {
        Ok(self.connection.execute_batch("VACUUM")?)
    }

    fn size(&mut self) -> Result<Option<u64>> {
        match self.place {
            Place::Memory => Ok(None),
            Place::File => {
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                Ok(Some(std::fs::metadata(&self.path)?.len()))
            }
        }
    }

    fn connect(&self) -> Result<Self> {
        match self.place {
            Place::Memory => Err(Unsupported::because("a database in memory belongs to one connection").into()),
            Place::File => self.another(),
        }
    }
}

/// The statements for whole records and for fields.
struct Writing {
    whole: String,
    fields: Option<String>,
}

impl Sqlite {
    /// Runs the matching statement for each write, and commits.
    fn write(&mut self, writing: &Writing, batch: &[Encoded]) -> Result<u64> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut written = 0;
        {
            let mut whole = transaction.prepare_cached(&writing.whole)?;
            let mut fields = writing.fields.as_ref().map(|fields| transaction.prepare_cached(fields)).transpose()?;
            for change in batch {
                written += match change {
                    Encoded::Whole { id, doc } => whole.execute(params![id, doc])?,
                    Encoded::Fields { id, contacts_count, notes } => {
                        let fields = fields.as_mut().ok_or("fields are valid only in a merge")?;
                        fields.execute(params![id, contacts_count, notes])?
                    }
                };
            }
        }
        transaction.commit()?;
        Ok(count(written))
    }
}

fn encode(change: &Change) -> Result<Encoded> {
    Ok(match change {
        Change::Whole(record) => {
            let serde_json::Value::Object(mut object) = record.to_json() else {
                return Err("a record must be an object".into());
            };
            object.shift_remove("_id");
            Encoded::Whole { id: record.id, doc: serde_json::to_string(&object)? }
        }
        Change::Fields(patch) => {
            Encoded::Fields { id: patch.id, contacts_count: patch.contacts_count, notes: patch.notes.clone() }
        }
    })
}

/// Reads each row without copying it.
fn lent(statement: &mut CachedStatement<'_>, values: &[Sql]) -> Result<Answer> {
    let columns = statement.column_count();
    let mut answer = Answer::default();
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        answer.see(row.get_ref(0)?.as_i64()?);
        for column in 1..columns {
            black_box(row.get_ref(column)?);
        }
    }
    Ok(answer)
}

/// Collects all rows as owned values.
fn owned(statement: &mut CachedStatement<'_>, values: &[Sql]) -> Result<Answer> {
    let columns = statement.column_count();
    let mut documents = Vec::new();
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        documents.push(owned_row(row, columns)?);
    }
    Ok(documents.iter().map(|(id, _)| *id).collect())
}

/// The columns of a row other than `_id`, as owned values.
enum Owned {
    Whole { _doc: Vec<u8> },
    Projected { _values: Vec<Sql> },
}

fn owned_row(row: &Row<'_>, columns: usize) -> Result<(i64, Owned)> {
    let id = row.get_ref(0)?.as_i64()?;
    let rest = match row.get_ref(1)? {
        ValueRef::Blob(doc) => Owned::Whole { _doc: doc.to_vec() },
        _ => {
            let values = (1..columns).map(|column| row.get(column));
            Owned::Projected { _values: values.collect::<rusqlite::Result<_>>()? }
        }
    };
    Ok((id, rest))
}

/// Converts a row of a checked statement to a document.
fn document(row: &Row<'_>, projection: Option<&[Field]>) -> Result<Bsons> {
    let mut document = Bsons::new();
    document.insert("_id", row.get::<_, i64>(0)?);
    match projection {
        None => document.extend(json::document(row.get_ref(1)?.as_str()?)?),
        Some(fields) => {
            for (column, field) in (1..).zip(fields) {
                document.insert(field.name(), bson(*field, row.get(column)?));
            }
        }
    }
    Ok(document)
}

fn bson(field: Field, value: Sql) -> Bson {
    let value = match value {
        Sql::Null | Sql::Blob(_) => serde_json::Value::Null,
        Sql::Integer(number) => number.into(),
        Sql::Real(number) => number.into(),
        Sql::Text(string) => string.into(),
    };
    json::from_json(field.name(), value)
}
