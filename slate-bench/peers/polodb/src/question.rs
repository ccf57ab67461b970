//! Questions in PoloDB's language: a pipeline of `$match`, `$sort`, `$skip`, `$limit`, `$unset` and `$count`.

use bson2::{Bson, Document, doc};
use slate_bench::{
    Condition, Field, Find, Query, Test, Value,
    harness::{Result, Unsupported},
};

/// A question.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// For what comes of a pipeline.
    Pipeline(Vec<Document>),
    /// How many: the pipeline counts.
    Count(Vec<Document>),
    /// For documents by their `_id`s.
    Lookups(Vec<i64>),
}

/// Translates a question.
///
/// # Errors
/// What cannot be asked.
pub(crate) fn question(query: &Query) -> Result<Question> {
    match query {
        Query::Find(find) => self::find(find),
        Query::Count(conditions) => {
            Ok(Question::Count(vec![doc! { "$match": filter(conditions)? }, doc! { "$count": "counted" }]))
        }
        Query::Distinct { .. } => {
            Err(Unsupported::because("no distinct, and its $group takes all documents for one group").into())
        }
        Query::Lookups(ids) => Ok(Question::Lookups(ids.clone())),
    }
}

fn find(find: &Find) -> Result<Question> {
    let mut pipeline = vec![doc! { "$match": filter(&find.filter)? }];
    if find.sort.len() > 1 {
        return Err(Unsupported::because("it sorts by several fields in an order of its own among them").into());
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
        // It has no `$project`: the other fields are taken away.
        let others = Field::ALL.iter().filter(|field| !fields.contains(field));
        pipeline.push(doc! { "$unset": others.map(|field| field.name()).collect::<Vec<_>>() });
    }
    Ok(Question::Pipeline(pipeline))
}

/// `$in` and `$nin` are right where shorter ways are not: a plain equality does not look into arrays, and `$ne` is read as
/// if it were `$eq`.
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
        Value::Strs(_) => return Err("no question is for an array that equals another".into()),
    })
}
