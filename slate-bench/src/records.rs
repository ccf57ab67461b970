//! The records. Each is a function of the seed, its collection, its `_id` and its version, so any record can be
//! generated again for checking, and none has to be stored.

use bson::{DateTime, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};
use slate_bench_harness::{Rng, number::float};

use crate::{Field, Value};

/// A generated record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `_id`, a 64-bit integer counted from 0.
    pub id: i64,
    /// A name, nearly unique.
    pub name: String,
    /// `"active"` or `"rejected"`, half each.
    pub status: &'static str,
    /// From 0 to 99.
    pub contacts_count: i32,
    /// One of three products each.
    pub recommendations: [&'static str; 3],
    /// Two to four of five strings; repetitions are possible.
    pub tags: Vec<&'static str>,
    /// Milliseconds since 1970; null in 30 % of the records.
    pub last_contacted_at: Option<i64>,
    /// Null in half of the records.
    pub notes: Option<String>,
}

/// The fields that a merge changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The `_id` of the record.
    pub id: i64,
    /// `contacts_count`, which is indexed.
    pub contacts_count: i32,
    /// `notes`, which is not.
    pub notes: Option<String>,
}

/// The content of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A complete record.
    Whole(Record),
    /// Some fields of a record.
    Fields(Patch),
}

/// The possible values of the fields.
pub mod values {
    /// Values of `status`.
    pub const STATUSES: [&str; 2] = ["active", "rejected"];
    /// Values of the recommendations.
    pub const PRODUCTS: [[&str; 3]; 3] =
        [["ProductA", "ProductB", "ProductC"], ["ProductX", "ProductY", "ProductZ"], ["Widget1", "Widget2", "Widget3"]];
    /// Values of `tags`.
    pub const TAGS: [&str; 5] = ["vip", "new_lead", "renewal_due", "churn_risk", "newsletter"];
    /// Regions of the companies.
    pub const REGIONS: [&str; 5] = ["north", "east", "south", "west", "overseas"];
    pub(super) const FIRST: [&str; 16] = [
        "Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Jim", "John", "Ken", "Leslie", "Margaret",
        "Niklaus", "Pat", "Radia", "Tony",
    ];
    pub(super) const LAST: [&str; 16] = [
        "Allen", "Codd", "Dijkstra", "Gray", "Hamilton", "Hoare", "Hopper", "Knuth", "Lamport", "Liskov", "Lovelace",
        "McCarthy", "Perlman", "Selinger", "Turing", "Wirth",
    ];
    pub(super) const NOTES: [&str; 4] =
        ["asked for a quote", "call again next week", "met at the fair", "prefers to be written to"];
}

/// Start of the dates: 2024-01-01.
const FIRST_DATE: i64 = 1_704_067_200_000;
/// Range of the dates: one year.
const DATES: u64 = 365 * 86_400_000;

impl Record {
    /// Generates the record with this `_id` in a user's collection. Each `version` has other values for the same `_id`.
    pub fn new(seed: u64, user: usize, id: i64, version: u64) -> Self {
        let parts = [slate_bench_harness::number::count(user), id.unsigned_abs(), version];
        let mut rng = Rng::of(seed, &parts);
        let name = format!("{} {} {:04}", rng.pick(&values::FIRST), rng.pick(&values::LAST), rng.below(10_000));
        let status = rng.pick(&values::STATUSES);
        let contacts_count = small(rng.below(100));
        let recommendations = values::PRODUCTS.map(|products| rng.pick(&products));
        let tags = (0..2 + rng.below(3)).map(|_| rng.pick(&values::TAGS)).collect();
        let last_contacted_at = (!rng.percent(30)).then(|| FIRST_DATE.saturating_add_unsigned(rng.below(DATES)));
        let notes = (!rng.percent(50)).then(|| note(&mut rng));
        Self { id, name, status, contacts_count, recommendations, tags, last_contacted_at, notes }
    }

    /// Returns the value of a field.
    pub fn value(&self, field: Field) -> Value<'_> {
        let [recommendation1, recommendation2, recommendation3] = self.recommendations;
        match field {
            Field::Name => Value::Str(&self.name),
            Field::Status => Value::Str(self.status),
            Field::ContactsCount => Value::Int(i64::from(self.contacts_count)),
            Field::Recommendation1 => Value::Str(recommendation1),
            Field::Recommendation2 => Value::Str(recommendation2),
            Field::Recommendation3 => Value::Str(recommendation3),
            Field::Tags => Value::Strs(&self.tags),
            Field::LastContactedAt => self.last_contacted_at.map_or(Value::Null, Value::Date),
            Field::Notes => self.notes.as_deref().map_or(Value::Null, Value::Str),
        }
    }

    /// Returns the record as a document, `_id` first.
    pub fn to_document(&self) -> RawDocumentBuf {
        let [recommendation1, recommendation2, recommendation3] = self.recommendations;
        let mut tags = RawArrayBuf::new();
        for tag in &self.tags {
            tags.push(*tag);
        }
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), self.id);
        document.append(cstr!("name"), self.name.as_str());
        document.append(cstr!("status"), self.status);
        document.append(cstr!("contacts_count"), self.contacts_count);
        document.append(cstr!("product_recommendation1"), recommendation1);
        document.append(cstr!("product_recommendation2"), recommendation2);
        document.append(cstr!("product_recommendation3"), recommendation3);
        document.append(cstr!("tags"), tags);
        document.append(cstr!("last_contacted_at"), nullable(self.last_contacted_at.map(DateTime::from_millis)));
        document.append(cstr!("notes"), nullable(self.notes.as_deref()));
        document
    }

    /// Returns the record after the merge.
    pub fn patched(&self, patch: &Patch) -> Self {
        Self { contacts_count: patch.contacts_count, notes: patch.notes.clone(), ..self.clone() }
    }
}

impl Patch {
    /// Generates the fields for a version of an `_id`.
    pub fn new(seed: u64, user: usize, id: i64, version: u64) -> Self {
        let Record { contacts_count, notes, .. } = Record::new(seed, user, id, version);
        Self { id, contacts_count, notes }
    }

    /// Returns the fields as a document, `_id` first.
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), self.id);
        document.append(cstr!("contacts_count"), self.contacts_count);
        document.append(cstr!("notes"), nullable(self.notes.as_deref()));
        document
    }
}

impl Change {
    /// Returns the `_id`.
    pub fn id(&self) -> i64 {
        match self {
            Self::Whole(record) => record.id,
            Self::Fields(patch) => patch.id,
        }
    }

    /// Returns the content as a document, `_id` first.
    pub fn to_document(&self) -> RawDocumentBuf {
        match self {
            Self::Whole(record) => record.to_document(),
            Self::Fields(patch) => patch.to_document(),
        }
    }
}

/// Reads the `_id` of a workload document in place: the first field, a 64-bit integer. Returns `None` for other
/// documents.
///
/// Reads only these bytes, so that the measurement contains the database and not a parser.
pub fn id_of(document: &RawDocument) -> Option<i64> {
    const INT64: u8 = 0x12;
    let bytes = document.as_bytes().get(4..17)?;
    let id = bytes.strip_prefix(&[INT64, b'_', b'i', b'd', 0])?;
    Some(i64::from_le_bytes(id.try_into().ok()?))
}

fn nullable<'v>(value: Option<impl Into<RawBsonRef<'v>>>) -> RawBsonRef<'v> {
    value.map_or(RawBsonRef::Null, Into::into)
}

fn note(rng: &mut Rng) -> String {
    format!("{} ({})", rng.pick(&values::NOTES), rng.below(1_000))
}

fn small(number: u64) -> i32 {
    i32::try_from(number).unwrap_or_default()
}

/// Returns the mean size in bytes of the first thousand documents of a seed.
pub fn mean_size(seed: u64) -> f64 {
    let sizes = (0..1_000).map(|id| Record::new(seed, 0, id, 0).to_document().as_bytes().len());
    float(sizes.map(slate_bench_harness::number::count).sum()) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_values_of_its_record() {
        for id in 0..200 {
            let record = Record::new(42, 1, id, 0);
            let raw = record.to_document();
            assert_eq!(id_of(&raw), Some(id));
            let document = bson::Document::try_from(&*raw).unwrap();
            assert_eq!(document.len(), 10);
            for field in Field::ALL {
                assert!(record.value(field).is(document.get(field.name()).unwrap()), "{field:?} of {document}");
            }
        }
    }

    #[test]
    fn records_are_the_same_for_the_same_seed_and_differ_otherwise() {
        assert_eq!(Record::new(42, 0, 7, 0), Record::new(42, 0, 7, 0));
        let others = [Record::new(43, 0, 7, 0), Record::new(42, 1, 7, 0), Record::new(42, 0, 7, 1)];
        assert!(others.iter().all(|other| *other != Record::new(42, 0, 7, 0)));
    }

    #[test]
    fn values_are_spread_as_the_schema_says() {
        let records: Vec<Record> = (0..10_000).map(|id| Record::new(42, 0, id, 0)).collect();
        let share = |of: &dyn Fn(&Record) -> bool| records.iter().filter(|record| of(record)).count();
        assert!((4_800..5_200).contains(&share(&|record| record.status == "active")));
        assert!((2_800..3_200).contains(&share(&|record| record.last_contacted_at.is_none())));
        assert!((4_800..5_200).contains(&share(&|record| record.notes.is_none())));
        assert!((3_100..3_600).contains(&share(&|record| record.recommendations[0] == "ProductA")));
        assert!((4_600..5_000).contains(&share(&|record| record.tags.contains(&"renewal_due"))));
        assert!(records.iter().all(|record| (0..100).contains(&record.contacts_count)));
        assert!((280.0..310.0).contains(&mean_size(42)), "{}", mean_size(42));
    }

    #[test]
    fn an_id_elsewhere_is_not_read() {
        assert_eq!(id_of(&bson::rawdoc! { "name": "Ada", "_id": 1_i64 }), None);
        assert_eq!(id_of(&bson::rawdoc! { "_id": 1_i32 }), None);
        assert_eq!(id_of(&bson::rawdoc! {}), None);
    }
}
