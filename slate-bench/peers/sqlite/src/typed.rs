//! Typed documents: JSON text, serialized and deserialized by `serde_json`, as a service would do it.

use std::hint::black_box;

use rusqlite::{TransactionBehavior, params};
use slate_bench::{
    Answer, Field, ThreeFields, TypedRecord, TypedTask,
    harness::{Result, number::count},
};

use crate::{Sqlite, sql};

impl Sqlite {
    /// Executes an operation on the table of typed documents.
    pub(crate) fn typed_task(&mut self, task: TypedTask<'_>) -> Result<Answer> {
        match task {
            TypedTask::Clear => self.clear_typed().map(|()| Answer::default()),
            TypedTask::Insert(batch) => self.insert_typed(&batch.json),
            TypedTask::Scan => {
                self.scan_typed(|text| Ok(black_box(serde_json::from_str::<TypedRecord<i64>>(text)?).id))
            }
            TypedTask::ScanThree => {
                self.scan_typed(|text| Ok(black_box(serde_json::from_str::<ThreeFields<'_>>(text)?).id))
            }
            TypedTask::ScanMaps => self.scan_typed(|text| {
                let record: serde_json::Value = black_box(serde_json::from_str(text)?);
                Ok(record["_id"].as_i64().ok_or("a record has no _id")?)
            }),
            TypedTask::Lookups(ids) => {
                let mut statement = self.connection.prepare_cached("SELECT doc FROM typed WHERE _id = ?")?;
                let mut answer = Answer::default();
                for id in ids {
                    let mut rows = statement.query([id])?;
                    if let Some(row) = rows.next()? {
                        let record: TypedRecord<i64> = serde_json::from_str(row.get_ref(0)?.as_str()?)?;
                        answer.see(black_box(record).id);
                    }
                }
                Ok(answer)
            }
        }
    }

    fn clear_typed(&self) -> Result<()> {
        let mut text = String::from(
            "DROP TABLE IF EXISTS typed; CREATE TABLE typed (_id INTEGER PRIMARY KEY, doc TEXT NOT NULL);",
        );
        for field in Field::INDEXED {
            text.push_str(&format!("CREATE INDEX typed_{} ON typed ({});", field.name(), sql::value(field)));
        }
        Ok(self.connection.execute_batch(&text)?)
    }

    fn insert_typed(&mut self, records: &[TypedRecord<i64>]) -> Result<Answer> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut statement = transaction.prepare_cached("INSERT INTO typed (_id, doc) VALUES (?, ?)")?;
            for record in records {
                statement.execute(params![record.id, serde_json::to_string(record)?])?;
            }
        }
        transaction.commit()?;
        Ok(Answer::counted(count(records.len())))
    }

    fn scan_typed(&self, read: impl Fn(&str) -> Result<i64>) -> Result<Answer> {
        let mut statement = self.connection.prepare_cached("SELECT doc FROM typed")?;
        let mut rows = statement.query([])?;
        let mut answer = Answer::default();
        while let Some(row) = rows.next()? {
            answer.see(read(row.get_ref(0)?.as_str()?)?);
        }
        Ok(answer)
    }
}
