//! Aggregations in SQL over JSONB.

use rusqlite::types::ValueRef;
use slate_bench::{
    aggregation::{Cell, Company, Question, Rows},
    harness::Result,
};

use crate::Sqlite;

impl Sqlite {
    pub(crate) fn fill_companies(&mut self, companies: &[Company]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for table in ["companies", "companies_unindexed"] {
            transaction.execute_batch(&format!(
                "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (_id INTEGER PRIMARY KEY, doc BLOB NOT NULL)"
            ))?;
            let mut insert = transaction.prepare(&format!("INSERT INTO {table} VALUES (?1, jsonb(?2))"))?;
            for company in companies {
                insert.execute((company.code, company.to_json().to_string()))?;
            }
        }
        transaction.execute_batch(&format!("CREATE INDEX companies_code ON companies ({})", field("", "code")))?;
        Ok(transaction.commit()?)
    }

    pub(crate) fn answer(&mut self, question: &Question) -> Result<Rows> {
        let each_tag = "(SELECT tag.value AS tag FROM records_1, json_each(doc, '$.tags') AS tag)";
        let mut statement = self.connection.prepare_cached(&question.sql(each_tag, field))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut found = Rows::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => number.into(),
                    ValueRef::Real(number) => Cell::Number(number),
                    ValueRef::Text(_) => row.get_ref(column)?.as_str()?.into(),
                    ValueRef::Blob(_) => return Err("a result must not contain a blob".into()),
                })
            });
            found.push(cells.collect::<Result<_>>()?);
        }
        Ok(found)
    }
}

/// Returns the expression of a field, as the indexes have it.
fn field(alias: &str, name: &str) -> String {
    let dot = if alias.is_empty() { "" } else { "." };
    format!("{alias}{dot}doc ->> '$.{name}'")
}
