use bson::{Document, doc};

/// A query and its description.
pub(crate) struct SampleQuery {
    pub(crate) about: &'static str,
    pub(crate) output: Output,
    pub(crate) filter: Document,
    pub(crate) sort: Document,
    pub(crate) projection: Document,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// What the query returns.
pub(crate) enum Output {
    Documents,
    Count,
    Distinct(&'static str),
}

impl SampleQuery {
    fn find(about: &'static str, filter: Document) -> Self {
        Self { about, output: Output::Documents, filter, sort: doc! {}, projection: doc! {}, skip: 0, limit: None }
    }

    fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    fn sort(mut self, sort: Document) -> Self {
        self.sort = sort;
        self
    }

    fn project(mut self, projection: Document) -> Self {
        self.projection = projection;
        self
    }

    fn slice(mut self, skip: u64, limit: u64) -> Self {
        (self.skip, self.limit) = (skip, Some(limit));
        self
    }
}

/// Returns one query of each kind.
pub(crate) fn all() -> Vec<SampleQuery> {
    let active = || doc! { "status": "active" };
    vec![
        SampleQuery::find("everything", doc! {}),
        SampleQuery::find("equality on an indexed field", active()),
        SampleQuery::find("a range on an indexed field", doc! { "contacts_count": { "$gte": 90, "$lt": 95 } }),
        SampleQuery::find("a list of values", doc! { "contacts_count": { "$in": [3, 33, 99] } }),
        SampleQuery::find("equality without an index", doc! { "product_recommendation1": "ProductA" }),
        SampleQuery::find(
            "three conditions, one of them indexed",
            doc! { "status": "active", "product_recommendation1": "ProductA", "product_recommendation2": "ProductX" },
        ),
        SampleQuery::find("an element of an array", doc! { "tags": "renewal_due" }),
        SampleQuery::find("null or missing", doc! { "last_contacted_at": null }),
        SampleQuery::find("a regular expression", doc! { "name": { "$regex": "^grace", "$options": "i" } }),
        SampleQuery::find("either of two", doc! { "$or": [{ "contacts_count": 7 }, { "notes": "note 7" }] }),
        SampleQuery::find("by _id", doc! { "_id": 4_711 }),
        SampleQuery::find("the first 200 by an index", doc! {}).sort(doc! { "contacts_count": 1 }).slice(0, 200),
        SampleQuery::find("the last 200 by an index, ties by name", doc! {})
            .sort(doc! { "contacts_count": -1, "name": 1 })
            .slice(0, 200),
        SampleQuery::find("the first 200 without an index", doc! {})
            .sort(doc! { "name": 1, "contacts_count": -1 })
            .slice(0, 200),
        SampleQuery::find("a page of a filtered sort", active()).sort(doc! { "contacts_count": 1 }).slice(100, 50),
        SampleQuery::find("two fields of each document", doc! {}).project(doc! { "name": 1, "status": 1 }),
        SampleQuery::find("how many match", active()).output(Output::Count),
        SampleQuery::find("the distinct values", doc! {}).output(Output::Distinct("product_recommendation1")),
        SampleQuery::find("the distinct values, narrowed by an index", active()).output(Output::Distinct("tags")),
    ]
}
