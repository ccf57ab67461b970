//! The rows of the workload: queries as plain data, which each database converts into its own form.

use slate_bench_harness::Rng;

use crate::{Field, Order, Record, Value};

/// A condition on one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field.
    pub field: Field,
    /// The condition on its value.
    pub test: Test,
}

/// A condition on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal to this value.
    Equal(Value<'static>),
    /// An array that contains this string.
    Contains(&'static str),
    /// The value is null.
    Null,
    /// The value is not null.
    NotNull,
}

impl Condition {
    /// Returns whether a record matches.
    pub fn matches(&self, record: &Record) -> bool {
        let value = record.value(self.field);
        match self.test {
            Test::Equal(wanted) => value == wanted,
            Test::Contains(wanted) => matches!(value, Value::Strs(strings) if strings.contains(&wanted)),
            Test::Null => value == Value::Null,
            Test::NotNull => value != Value::Null,
        }
    }
}

/// Returns whether a record matches all conditions.
pub fn all_match(filter: &[Condition], record: &Record) -> bool {
    filter.iter().all(|condition| condition.matches(record))
}

/// A query that returns documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Find {
    /// All conditions must match.
    pub filter: Vec<Condition>,
    /// Sort fields, most significant first. Empty: any order.
    pub sort: Vec<(Field, Order)>,
    /// The fields to return in addition to `_id`. `None`: whole documents.
    pub projection: Option<Vec<Field>>,
    /// Number of documents to skip.
    pub skip: u64,
    /// Largest number of documents to return.
    pub limit: Option<u64>,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Returns documents.
    Find(Find),
    /// Counts matching documents.
    Count(Vec<Condition>),
    /// Returns the distinct values of a field including null, in any order or sorted.
    Distinct {
        /// The field, which is not an array.
        field: Field,
        /// Only documents that match all conditions.
        filter: Vec<Condition>,
        /// The order of the values.
        sort: Option<Order>,
    },
    /// Returns the documents with these existing `_id`s, with one query each.
    Lookups(Vec<i64>),
}

/// How a write changes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Replaces or inserts whole records.
    Upsert,
    /// Merges fields into existing records, inserts whole records otherwise.
    Merge,
}

/// Which records a write contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// New records.
    New,
    /// Existing records, spread over the collection.
    Existing,
    /// New and existing records, alternating.
    Mixed,
}

/// A row of the write table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRow {
    /// The row's name in the table.
    pub name: &'static str,
    /// The row's name in the scaling table, if it is in it.
    pub scaling: Option<&'static str>,
    /// The kind of write.
    pub kind: WriteKind,
    /// The records.
    pub target: Target,
}

/// Maximum number of records per write: a tenth of a smaller collection.
pub const WRITTEN: u64 = 1_000;

/// The rows of the write table.
pub const WRITES: [WriteRow; 5] = [
    WriteRow {
        name: "upsert_many: 1,000 new (insert path)",
        scaling: Some("upsert_many: 1k insert"),
        kind: WriteKind::Upsert,
        target: Target::New,
    },
    WriteRow {
        name: "upsert_many: 1,000 existing (replace path)",
        scaling: Some("upsert_many: 1k replace"),
        kind: WriteKind::Upsert,
        target: Target::Existing,
    },
    WriteRow {
        name: "merge_many: 1,000 existing (merge path)",
        scaling: Some("merge_many: 1k merge"),
        kind: WriteKind::Merge,
        target: Target::Existing,
    },
    WriteRow {
        name: "merge_many: 1,000 new (insert path)",
        scaling: Some("merge_many: 1k insert"),
        kind: WriteKind::Merge,
        target: Target::New,
    },
    WriteRow { name: "merge_many: 1,000 mixed (50/50)", scaling: None, kind: WriteKind::Merge, target: Target::Mixed },
];

/// A row of the query or distinct tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRow {
    /// The table of the row.
    pub section: &'static str,
    /// The row's name in the table.
    pub name: &'static str,
    /// The row's name in the scaling table, if it is in it.
    pub scaling: Option<&'static str>,
    /// The query.
    pub query: Query,
}

/// Title of the query table.
pub const QUERIES: &str = "Queries";
/// Title of the section of typed documents.
pub const TYPED: &str = "Typed documents";
/// Title of the table of aggregations.
pub const AGGREGATION: &str = "Aggregation";
/// Title of the section of awaited calls.
pub const ASYNC: &str = "Async";
/// Title of the section of writes with and without the log of changes.
pub const CHANGES: &str = "Log of changes";
/// Title of the table of data larger than memory.
pub const LARGER: &str = "Data larger than memory";
/// Title of the table of threads that work for a long time.
pub const SOAK: &str = "Soak";
/// Title of the distinct table.
pub const DISTINCT: &str = "Distinct";
/// Title of the loading table.
pub const BULK_INSERT: &str = "Bulk Insert";
/// Title of the write table.
pub const UPSERT_MERGE: &str = "Upsert / Merge";
/// Title of the concurrency table.
pub const CONCURRENCY: &str = "Concurrency";
/// Title of the integrity table.
pub const INTEGRITY: &str = "Integrity";
/// Title of the space table.
pub const SPACE: &str = "Space";
/// The row with the peak memory.
pub const PEAK: &str = "peak memory, all users";
/// The row with the memory after loading.
pub const HELD: &str = "memory once loaded, all users";
/// The row with the size of the files.
pub const ON_DISK: &str = "size on disk, all users";

const fn equal(field: Field, value: &'static str) -> Condition {
    Condition { field, test: Test::Equal(Value::Str(value)) }
}

const fn test(field: Field, test: Test) -> Condition {
    Condition { field, test }
}

const ACTIVE: Condition = equal(Field::Status, "active");

fn row(name: &'static str, query: Query) -> QueryRow {
    let section = if matches!(query, Query::Distinct { .. }) { DISTINCT } else { QUERIES };
    QueryRow { section, name, scaling: None, query }
}

impl QueryRow {
    fn scales_as(mut self, name: &'static str) -> Self {
        self.scaling = Some(name);
        self
    }
}

fn filter(filter: &[Condition]) -> Find {
    Find { filter: filter.to_vec(), ..Find::default() }
}

impl Find {
    fn sort(mut self, sort: &[(Field, Order)]) -> Self {
        self.sort = sort.to_vec();
        self
    }

    fn take(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    fn project(mut self, fields: &[Field]) -> Self {
        self.projection = Some(fields.to_vec());
        self
    }
}

fn distinct(field: Field, sort: Option<Order>, filter: &[Condition]) -> Query {
    Query::Distinct { field, filter: filter.to_vec(), sort }
}

/// Maximum number of `_id`s of the lookup row; a smaller collection has fewer.
pub const LOOKUPS: usize = 1_000;

/// Returns the rows for collections of this many records. The seed selects the `_id`s of the lookups.
pub fn query_rows(records: u64, seed: u64) -> Vec<QueryRow> {
    use Field::{ContactsCount, LastContactedAt, Name, Notes, Recommendation1, Recommendation2, Status, Tags};
    use Order::{Ascending, Descending};
    let product_a = equal(Recommendation1, "ProductA");
    let product_x = equal(Recommendation2, "ProductX");
    let by_count = [(ContactsCount, Ascending)];
    let find = |name, find| row(name, Query::Find(find));
    vec![
        find("Full scan (no filter)", filter(&[])).scales_as("Full scan"),
        find("status = 'active' (indexed)", filter(&[ACTIVE])).scales_as("Index scan (status)"),
        find("status = 'active' projection [status] (index-covered)", filter(&[ACTIVE]).project(&[Status]))
            .scales_as("Index-covered projection"),
        find("product_recommendation1 = 'ProductA'", filter(&[product_a])).scales_as("Scan + filter (ProductA)"),
        find("status + rec1 + rec2 (AND)", filter(&[ACTIVE, product_a, product_x]))
            .scales_as("AND filter (3 conditions)"),
        find("status='active' + sort + skip/take(50)", filter(&[ACTIVE]).sort(&by_count).skip(50).take(50)),
        find("status='active' + sort contacts_count", filter(&[ACTIVE]).sort(&by_count)).scales_as("Sort (full, ~50%)"),
        find("status='active' + take(200) (no sort)", filter(&[ACTIVE]).take(200)).scales_as("take(200) no sort"),
        find("status='active' + sort + take(200)", filter(&[ACTIVE]).sort(&by_count).take(200)),
        find("sort contacts_count + take(200)", filter(&[]).sort(&by_count).take(200))
            .scales_as("sort + take(200) indexed"),
        find("sort contacts_count (no take)", filter(&[]).sort(&by_count)),
        find(
            "sort [contacts_count DESC, name ASC] + take(200)",
            filter(&[]).sort(&[(ContactsCount, Descending), (Name, Ascending)]).take(200),
        )
        .scales_as("sort [high card, name] + take(200)"),
        find(
            "sort [status DESC, contacts_count ASC] + take(200)",
            filter(&[]).sort(&[(Status, Descending), (ContactsCount, Ascending)]).take(200),
        )
        .scales_as("sort [low card, count] + take(200)"),
        find(
            "sort [name ASC, contacts_count DESC] + take(200)",
            filter(&[]).sort(&[(Name, Ascending), (ContactsCount, Descending)]).take(200),
        ),
        find("last_contacted_at is null (~30%)", filter(&[test(LastContactedAt, Test::Null)])),
        find("notes is null (~50%)", filter(&[test(Notes, Test::Null)])),
        find("last_contacted_at is not null (~70%)", filter(&[test(LastContactedAt, Test::NotNull)])),
        find("status='active' AND notes is null", filter(&[ACTIVE, test(Notes, Test::Null)])),
        row("1,000 point lookups (find_by_id)", Query::Lookups(lookups(records, seed)))
            .scales_as("1,000 point lookups"),
        find("projection (name, status only)", filter(&[]).project(&[Name, Status])).scales_as("Projection (2 cols)"),
        find("tags = 'renewal_due' (array element match)", filter(&[test(Tags, Test::Contains("renewal_due"))]))
            .scales_as("Array element match (tags)"),
        row("count status = 'active' (indexed)", Query::Count(vec![ACTIVE])).scales_as("Count (status)"),
        row("distinct: status (indexed)", distinct(Status, None, &[])).scales_as("Distinct (status, 2 values)"),
        row("distinct: status (indexed) + sort asc", distinct(Status, Some(Ascending), &[])),
        row("distinct: product_recommendation1 (not indexed)", distinct(Recommendation1, None, &[])),
        row("distinct: contacts_count (indexed, ~100 values)", distinct(ContactsCount, None, &[]))
            .scales_as("Distinct (contacts_count, ~100 values)"),
        row("distinct: contacts_count (indexed) + sort asc", distinct(ContactsCount, Some(Ascending), &[])),
        row("distinct: rec1 with status='active' filter", distinct(Recommendation1, None, &[ACTIVE])),
        row("distinct: last_contacted_at (high cardinality)", distinct(LastContactedAt, None, &[]))
            .scales_as("Distinct (last_contacted_at)"),
    ]
}

fn lookups(records: u64, seed: u64) -> Vec<i64> {
    let ids = Rng::of(seed, &[0x100c]).distinct(LOOKUPS, records);
    ids.into_iter().filter_map(|id| i64::try_from(id).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        let rows = query_rows(10_000, 42);
        let mut names: Vec<_> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), rows.len()), (29, 29));
    }

    #[test]
    fn lookups_ask_for_ids_that_are_there() {
        let Query::Lookups(ids) = &query_rows(500, 1)[18].query else { panic!("not the lookups") };
        assert_eq!(ids.len(), 500);
        assert!(ids.iter().all(|id| (0..500).contains(id)));
    }
}
