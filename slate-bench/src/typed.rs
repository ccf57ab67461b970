//! Typed documents: the records as a service declares them, and the operations on them.

use bson::DateTime;
use serde::{Deserialize, Serialize};

use crate::Record;

/// A record as a struct. `D` is the type of dates: BSON has one, JSON has milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedRecord<D> {
    /// The `_id`.
    #[serde(rename = "_id")]
    pub id: i64,
    /// A name, as in [`Record`].
    pub name: String,
    /// `"active"` or `"rejected"`.
    pub status: String,
    /// From 0 to 99.
    pub contacts_count: i32,
    /// The first of three products.
    pub product_recommendation1: String,
    /// The second product.
    pub product_recommendation2: String,
    /// The third product.
    pub product_recommendation3: String,
    /// Two to four strings.
    pub tags: Vec<String>,
    /// The date of the last contact.
    pub last_contacted_at: Option<D>,
    /// A remark.
    pub notes: Option<String>,
}

/// Three fields of a record, borrowed from the database where it lends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ThreeFields<'r> {
    /// The `_id`.
    #[serde(rename = "_id")]
    pub id: i64,
    /// The name.
    pub name: &'r str,
    /// The number of contacts.
    pub contacts_count: i64,
}

/// Records to insert, in the form that the database's serde format takes.
#[derive(Clone, Debug, Default)]
pub struct TypedBatch {
    /// The records with BSON's dates.
    pub bson: Vec<TypedRecord<DateTime>>,
    /// The records with dates in milliseconds.
    pub json: Vec<TypedRecord<i64>>,
}

/// An operation on a collection of typed documents, which has an index on `status` and one on `contacts_count`.
#[derive(Clone, Copy, Debug)]
pub enum TypedTask<'t> {
    /// Empties the collection. Not measured.
    Clear,
    /// Inserts a batch in one commit.
    Insert(&'t TypedBatch),
    /// Reads every document as a [`TypedRecord`].
    Scan,
    /// Reads every document as [`ThreeFields`].
    ScanThree,
    /// Reads every document as the format's own map type: `bson::Document`, `serde_json::Value`.
    ScanMaps,
    /// Looks up the documents with these `_id`s, one call for each, as [`TypedRecord`]s.
    Lookups(&'t [i64]),
}

impl TypedBatch {
    /// Converts records.
    pub fn of(records: &[Record]) -> Self {
        let pairs = records.iter().map(|record| {
            (
                typed(record, record.last_contacted_at.map(DateTime::from_millis)),
                typed(record, record.last_contacted_at),
            )
        });
        let (bson, json) = pairs.unzip();
        Self { bson, json }
    }
}

fn typed<D>(record: &Record, last_contacted_at: Option<D>) -> TypedRecord<D> {
    let [first, second, third] = record.recommendations.map(str::to_owned);
    TypedRecord {
        id: record.id,
        name: record.name.clone(),
        status: record.status.into(),
        contacts_count: record.contacts_count,
        product_recommendation1: first,
        product_recommendation2: second,
        product_recommendation3: third,
        tags: record.tags.iter().copied().map(str::to_owned).collect(),
        last_contacted_at,
        notes: record.notes.clone(),
    }
}
