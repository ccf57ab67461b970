//! Converts queries to PoloDB's pipelines of `$match`, `$sort`, `$skip`, `$limit`, `$unset` and `$count`.

use bson2::{Bson, Document, doc};
use slate_bench::{
    Condition, Field, Find, Query, Test, Value,
    harness::{Result, Unsupported},
};

/// A converted query.
#[derive(Clone, Debug)]
pub(crate) enum ConvertedQuery {
    /// Returns the documents of a pipeline.
    Pipeline(Vec<Document>),
    /// Counts with a pipeline.
    Count(Vec<Document>),
    /// Returns documents by their `_id`s.
    Lookups(Vec<i64>),
}

/// Converts a query.
///
/// # Errors
/// Fails if PoloDB does not support the query.
pub(crate) fn convert_query(query: &Query) -> Result<ConvertedQuery> {
    match query {
        Query::Find(find) => self::find(find),
        Query::Count(conditions) => {
            Ok(ConvertedQuery::Count(vec![doc! { "$match": filter(conditions)? }, doc! { "$count": "counted" }]))
        }
        Query::Distinct { .. } => {
            Err(Unsupported::because("no distinct; its $group puts all documents into one group").into())
        }
        Query::Lookups(ids) => Ok(ConvertedQuery::Lookups(ids.clone())),
    }
}

fn find(find: &Find) -> Result<ConvertedQuery> {
    let mut pipeline = vec![doc! { "$match": filter(&find.filter)? }];
    if find.sort.len() > 1 {
        return Err(Unsupported::because("sorts by several fields in an unspecified order of the fields").into());
    }
    for (field, order) in &find.sort {
        pipeline.push(doc! { "$sort": { field.name(): order.sign() } });
    }
    if find.skip > 0 {
        pipeline.push(doc! { "$skip": i64::try_from(find.skip)? });
    }
    if let Some(limit) = find.limit {
        pipeline.push(doc! { "$limit": i64::try_from(limit)? });
    }
    if let Some(fields) = &find.projection {
        // PoloDB has no `$project`, so the other fields are unset.
        let others = Field::ALL.iter().filter(|field| !fields.contains(field));
        pipeline.push(doc! { "$unset": others.map(|field| field.name()).collect::<Vec<_>>() });
    }
    Ok(ConvertedQuery::Pipeline(pipeline))
}

/// Uses `$in` and `$nin`, because PoloDB's plain equality does not look into arrays, and its `$ne` means `$eq`.
fn filter(conditions: &[Condition]) -> Result<Document> {
    let mut filter = Document::new();
    for Condition { field, test } in conditions {
        let condition: Bson = match test {
            Test::Equal(wanted) => equal(*wanted)?,
            Test::Contains(string) => doc! { "$in": [*string] }.into(),
            Test::Null => Bson::Null,
            Test::NotNull => doc! { "$nin": [Bson::Null] }.into(),
        };
        filter.insert(field.name(), condition);
    }
    Ok(filter)
}

fn equal(value: Value<'_>) -> Result<Bson> {
    Ok(match value {
        Value::Null => Bson::Null,
        Value::Int(number) => i32::try_from(number)?.into(),
        Value::Str(string) => string.into(),
        Value::Date(date) => bson2::DateTime::from_millis(date).into(),
        Value::Strs(_) => return Err("no query compares whole arrays".into()),
    })
}
