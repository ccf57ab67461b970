//! The rows: questions as plain data, which each database translates into its own language.

use slate_bench_harness::Rng;

use crate::{Field, Order, Record, Value};

/// A condition on one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field.
    pub field: Field,
    /// What its value must be.
    pub test: Test,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// This one.
    Equal(Value<'static>),
    /// An array that has this string as an element.
    Contains(&'static str),
    /// Null.
    Null,
    /// Anything else than null.
    NotNull,
}

impl Condition {
    /// Whether a record meets it.
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

/// Whether a record meets all of them.
pub fn all_match(filter: &[Condition], record: &Record) -> bool {
    filter.iter().all(|condition| condition.matches(record))
}

/// A question for documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Find {
    /// All must be met.
    pub filter: Vec<Condition>,
    /// By these fields, one after the other; in no certain order where there are none.
    pub sort: Vec<(Field, Order)>,
    /// Only these fields, and `_id`; whole documents where `None`.
    pub projection: Option<Vec<Field>>,
    /// How many are left out first.
    pub skip: u64,
    /// How many there are at most.
    pub limit: Option<u64>,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// For documents.
    Find(Find),
    /// How many match.
    Count(Vec<Condition>),
    /// For the different values of a field, null among them; in no certain order, or sorted.
    Distinct {
        /// Of this field, which is no array.
        field: Field,
        /// In documents that meet all of them.
        filter: Vec<Condition>,
        /// The order of the values.
        sort: Option<Order>,
    },
    /// For the documents of these `_id`s, one question each, all of them there.
    Lookups(Vec<i64>),
}

/// How a write brings its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Whole, in place of what is there.
    Upsert,
    /// Fields over what is there, or whole records where nothing is.
    Merge,
}

/// Which records a write brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Such as are not there.
    New,
    /// Such as are there, spread over the collection.
    Existing,
    /// Half and half, one of each in turn.
    Mixed,
}

/// A row of the table of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRow {
    /// What it is called there.
    pub name: &'static str,
    /// What it is called in the scaling table, where it is in it.
    pub scaling: Option<&'static str>,
    /// How.
    pub kind: WriteKind,
    /// Which.
    pub target: Target,
}

/// How many records a write of the table brings, in collections that have ten times as many.
pub const WRITTEN: u64 = 1_000;

/// The rows of the table of writes.
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
    /// The table it is in.
    pub section: &'static str,
    /// What it is called there.
    pub name: &'static str,
    /// What it is called in the scaling table, where it is in it.
    pub scaling: Option<&'static str>,
    /// The question.
    pub query: Query,
}

/// The title of the table of questions.
pub const QUERIES: &str = "Queries";
/// The title of the table of distinct values.
pub const DISTINCT: &str = "Distinct";
/// The title of the table of loads.
pub const BULK_INSERT: &str = "Bulk Insert";
/// The title of the table of writes.
pub const UPSERT_MERGE: &str = "Upsert / Merge";
/// The title of the table of writers and readers at once.
pub const CONCURRENCY: &str = "Concurrency";
/// The title of the table of checks.
pub const INTEGRITY: &str = "Integrity";
/// The title of the table of memory and files.
pub const SPACE: &str = "Space";
/// The row of that table that tells the peak of memory.
pub const PEAK: &str = "peak memory, all users";
/// The row of that table that tells the memory held in the end.
pub const HELD: &str = "memory once loaded, all users";
/// The row of that table that tells the size of the files.
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

/// How many `_id`s the lookups ask for, where there are as many.
pub const LOOKUPS: usize = 1_000;

/// The rows, for collections of so many records. What depends on a seed is which `_id`s are looked up.
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
