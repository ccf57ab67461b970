use bson::{Document, doc};

/// A question to the records, and what is interesting about it.
pub(crate) struct Question {
    pub(crate) about: &'static str,
    pub(crate) asks: Asks,
    pub(crate) filter: Document,
    pub(crate) sort: Document,
    pub(crate) projection: Document,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// What is wanted of the documents that match.
pub(crate) enum Asks {
    Documents,
    Count,
    Distinct(&'static str),
}

impl Question {
    fn find(about: &'static str, filter: Document) -> Self {
        Self { about, asks: Asks::Documents, filter, sort: doc! {}, projection: doc! {}, skip: 0, limit: None }
    }

    fn asking(mut self, asks: Asks) -> Self {
        self.asks = asks;
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

/// Each kind of question once.
pub(crate) fn all() -> Vec<Question> {
    let active = || doc! { "status": "active" };
    vec![
        Question::find("everything", doc! {}),
        Question::find("equality on an indexed field", active()),
        Question::find("a range on an indexed field", doc! { "contacts_count": { "$gte": 90, "$lt": 95 } }),
        Question::find("a list of values", doc! { "contacts_count": { "$in": [3, 33, 99] } }),
        Question::find("equality without an index", doc! { "product_recommendation1": "ProductA" }),
        Question::find(
            "three conditions, one of them indexed",
            doc! { "status": "active", "product_recommendation1": "ProductA", "product_recommendation2": "ProductX" },
        ),
        Question::find("an element of an array", doc! { "tags": "renewal_due" }),
        Question::find("null or missing", doc! { "last_contacted_at": null }),
        Question::find("a regular expression", doc! { "name": { "$regex": "^grace", "$options": "i" } }),
        Question::find("either of two", doc! { "$or": [{ "contacts_count": 7 }, { "notes": "note 7" }] }),
        Question::find("by _id", doc! { "_id": 4_711 }),
        Question::find("the first 200 by an index", doc! {}).sort(doc! { "contacts_count": 1 }).slice(0, 200),
        Question::find("the last 200 by an index, ties by name", doc! {})
            .sort(doc! { "contacts_count": -1, "name": 1 })
            .slice(0, 200),
        Question::find("the first 200 without an index", doc! {})
            .sort(doc! { "name": 1, "contacts_count": -1 })
            .slice(0, 200),
        Question::find("a page of a filtered sort", active()).sort(doc! { "contacts_count": 1 }).slice(100, 50),
        Question::find("two fields of each document", doc! {}).project(doc! { "name": 1, "status": 1 }),
        Question::find("how many match", active()).asking(Asks::Count),
        Question::find("the different values", doc! {}).asking(Asks::Distinct("product_recommendation1")),
        Question::find("the different values, narrowed by an index", active()).asking(Asks::Distinct("tags")),
    ]
}
