//! The workload's queries in SQL, written with SQLite's plans in mind.

use std::fmt::Write;

use rusqlite::types::Value as Sql;
use slate_bench::{Condition, Field, Find, Order, Query, Test, Value, harness::Result};

/// A query in SQL.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// SQL text with a `?` for each value.
    pub(crate) text: String,
    /// The values.
    pub(crate) values: Vec<Sql>,
}

/// How a whole document is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// As stored JSONB.
    Stored,
    /// As JSON text.
    Text,
}

/// Returns the name of a user's table.
pub(crate) fn table(user: usize) -> String {
    format!("records_{}", user + 1)
}

/// Returns the SQL expression of a field. The indexes use exactly this expression.
pub(crate) fn value(field: Field) -> String {
    format!("doc ->> '$.{}'", field.name())
}

/// SQL that inserts a record: `_id`, JSON.
pub(crate) fn insert(user: usize) -> String {
    format!("INSERT INTO {} (_id, doc) VALUES (?1, jsonb(?2))", table(user))
}

/// SQL that inserts or replaces a record: `_id`, JSON.
pub(crate) fn upsert(user: usize) -> String {
    format!("{} ON CONFLICT (_id) DO UPDATE SET doc = excluded.doc", insert(user))
}

/// SQL that merges fields into a record or inserts them: `_id`, `contacts_count`, `notes`.
///
/// Sets the fields one by one, because `jsonb_patch` removes fields that are set to null (RFC 7396).
pub(crate) fn merge(user: usize) -> String {
    format!(
        "INSERT INTO {} (_id, doc) VALUES (?1, jsonb_object('contacts_count', ?2, 'notes', ?3)) \
         ON CONFLICT (_id) DO UPDATE SET doc = jsonb_set(doc, '$.contacts_count', ?2, '$.notes', ?3)",
        table(user)
    )
}

/// Converts a query for documents, a count or distinct values.
///
/// # Errors
/// Fails on values that no record has.
pub(crate) fn statement(user: usize, query: &Query, document: Document) -> Result<Statement> {
    match query {
        Query::Find(query) => find(user, query, document),
        Query::Count(conditions) => {
            let mut statement = Statement { text: format!("SELECT count(*) FROM {}", table(user)), values: Vec::new() };
            statement.filter(conditions, Serve::Filter)?;
            Ok(statement)
        }
        Query::Distinct { field, filter, sort } => {
            let text = format!("SELECT DISTINCT {} FROM {}", value(*field), table(user));
            let mut statement = Statement { text, values: Vec::new() };
            statement.filter(filter, Serve::Filter)?;
            statement.order(&sort.map(|order| (*field, order)).into_iter().collect::<Vec<_>>());
            Ok(statement)
        }
        Query::Lookups(_) => {
            let columns = columns(None, document);
            Ok(Statement { text: format!("SELECT {columns} FROM {} WHERE _id = ?", table(user)), values: Vec::new() })
        }
    }
}

fn find(user: usize, query: &Find, document: Document) -> Result<Statement> {
    let columns = columns(query.projection.as_deref(), document);
    let mut statement = Statement { text: format!("SELECT {columns} FROM {}", table(user)), values: Vec::new() };
    let sorted_by_index = query.sort.first().is_some_and(|(field, _)| Field::INDEXED.contains(field));
    // SQLite prefers the index of an equality to one that provides the order, and sorts all matches. For the first few
    // rows, reading in order and skipping rows that do not match needs only a few rows.
    let serve = if sorted_by_index && query.limit.is_some() { Serve::Sort } else { Serve::Filter };
    statement.filter(&query.filter, serve)?;
    statement.order(&query.sort);
    if query.limit.is_some() || query.skip > 0 {
        statement.text.push_str(" LIMIT ? OFFSET ?");
        let limit = query.limit.map_or(Ok(-1), i64::try_from)?;
        statement.values.extend([Sql::Integer(limit), Sql::Integer(i64::try_from(query.skip)?)]);
    }
    Ok(statement)
}

fn columns(projection: Option<&[Field]>, document: Document) -> String {
    let mut columns = String::from("_id");
    match (projection, document) {
        (Some(fields), _) => {
            for field in fields {
                // Writing to a string cannot fail.
                let _ = write!(columns, ", {}", value(*field));
            }
        }
        (None, Document::Stored) => columns.push_str(", doc"),
        (None, Document::Text) => columns.push_str(", json(doc)"),
    }
    columns
}

/// The part of a query for which an index may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serve {
    /// The conditions.
    Filter,
    /// Only the sort: a `+` before an expression prevents SQLite from using an index for it.
    Sort,
}

impl Statement {
    fn filter(&mut self, conditions: &[Condition], serve: Serve) -> Result<()> {
        for (place, Condition { field, test }) in conditions.iter().enumerate() {
            self.text.push_str(if place == 0 { " WHERE " } else { " AND " });
            let value = value(*field);
            let value = match serve {
                Serve::Filter => value,
                Serve::Sort => format!("+({value})"),
            };
            let condition = match test {
                Test::Equal(wanted) => {
                    self.values.push(bound(*wanted)?);
                    format!("{value} = ?")
                }
                Test::Contains(string) => {
                    self.values.push(Sql::Text((*string).into()));
                    format!("EXISTS (SELECT 1 FROM json_each(doc, '$.{}') WHERE value = ?)", field.name())
                }
                Test::Null => format!("{value} IS NULL"),
                Test::NotNull => format!("{value} IS NOT NULL"),
            };
            self.text.push_str(&condition);
        }
        Ok(())
    }

    fn order(&mut self, sort: &[(Field, Order)]) {
        for (place, (field, order)) in sort.iter().enumerate() {
            self.text.push_str(if place == 0 { " ORDER BY " } else { ", " });
            self.text.push_str(&value(*field));
            if *order == Order::Descending {
                self.text.push_str(" DESC");
            }
        }
    }
}

fn bound(value: Value<'_>) -> Result<Sql> {
    Ok(match value {
        Value::Null => Sql::Null,
        Value::Int(number) | Value::Date(number) => Sql::Integer(number),
        Value::Str(string) => Sql::Text(string.into()),
        Value::Strs(_) => return Err("no query compares whole arrays".into()),
    })
}

#[cfg(test)]
mod tests {
    use slate_bench::{Setup, workload::query_rows};

    use super::*;
    use crate::{Place, Sqlite, Statistics};

    /// Returns SQLite's plan for the row with this name.
    fn plan(name: &str) -> String {
        let rows = query_rows(10_000, 1);
        let row = rows.iter().find(|row| row.name == name).unwrap();
        let statement = statement(0, &row.query, Document::Stored).unwrap();
        let setup = Setup { users: 1, cache: None };
        // The database is in memory and does not use the directory.
        let sqlite = Sqlite::open(Place::Memory, Statistics::Absent, "".as_ref(), setup).unwrap();
        let mut explain = sqlite.connection.prepare(&format!("EXPLAIN QUERY PLAN {}", statement.text)).unwrap();
        let values = rusqlite::params_from_iter(&statement.values);
        let steps = explain.query_map(values, |row| row.get::<_, String>(3)).unwrap();
        steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    #[test]
    fn an_index_answers_alone_where_it_can() {
        for (name, index) in [
            ("status = 'active' projection [status] (index-covered)", "records_1_status"),
            ("count status = 'active' (indexed)", "records_1_status"),
            ("distinct: contacts_count (indexed, ~100 values)", "records_1_contacts_count"),
        ] {
            let plan = plan(name);
            assert!(plan.contains(&format!("COVERING INDEX {index}")), "{name}: {plan}");
        }
    }

    #[test]
    fn an_index_gives_the_order_where_the_first_few_are_wanted() {
        for name in ["sort contacts_count + take(200)", "status='active' + sort + take(200)"] {
            assert_eq!(plan(name), "SCAN records_1 USING INDEX records_1_contacts_count", "{name}");
        }
        let all = plan("status='active' + sort contacts_count");
        assert!(all.starts_with("SEARCH records_1 USING INDEX records_1_status"), "{all}");
    }
}
