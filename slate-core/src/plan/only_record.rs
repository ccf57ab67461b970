use slate_query::{filter::OneValue, raw::SmallBytes};

use super::candidates::ID;

/// The key of the one record that can match, where the value is asked for as an `_id`: there is nothing to plan.
pub(crate) fn only_record(value: OneValue<'_>) -> Option<SmallBytes> {
    if value.path() == ID.as_bytes() { value.key() } else { None }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};
    use slate_query::{filter::Filter, pattern::Direction, raw::Doc, sort::Sort};

    use super::*;
    use crate::{
        entry::record_key,
        plan::{Force, Hint, Query},
    };

    fn of(filter: &RawDocumentBuf) -> Query {
        Query::of(Filter::parse(Doc::from(filter)).unwrap())
    }

    fn only_record(query: &Query) -> Option<SmallBytes> {
        query.few().and_then(|few| super::only_record(few.value))
    }

    #[test]
    fn the_only_record_is_known_where_one_id_is_asked_for_and_nothing_else() {
        for (filter, id) in [
            (rawdoc! { "_id": 5 }, rawdoc! { "_id": 5.0 }),
            (rawdoc! { "_id": { "$eq": "x" } }, rawdoc! { "_id": "x" }),
            (rawdoc! { "_id": { "$in": [5, 5_i64] } }, rawdoc! { "_id": 5 }),
            (rawdoc! { "$and": [{ "_id": { "a": 1 } }] }, rawdoc! { "_id": { "a": 1 } }),
        ] {
            let key = Doc::from(&id).get("_id").and_then(|id| record_key(id).ok());
            assert!(key.is_some() && only_record(&of(&filter)).as_deref() == key.as_deref(), "{filter:?}");
        }
        for filter in [
            rawdoc! {},
            rawdoc! { "_id": 5, "a": 1 },
            rawdoc! { "_id": { "$eq": 5, "$gt": 3 } },
            rawdoc! { "_id": { "$in": [5, 6] } },
            rawdoc! { "_id": { "$in": [] } },
            rawdoc! { "_id": { "$gt": 5 } },
            rawdoc! { "_id": { "$ne": 5 } },
            rawdoc! { "_id": { "$exists": false } },
            rawdoc! { "_id": { "$elemMatch": { "$eq": 5 } } },
            rawdoc! { "_id": { "$regex": "^x$" } },
            rawdoc! { "_id": [5] },
            rawdoc! { "_id": null },
            rawdoc! { "_id.a": 1 },
            rawdoc! { "a": 5 },
            rawdoc! { "$or": [{ "_id": 5 }, { "a": 1 }] },
        ] {
            assert_eq!(only_record(&of(&filter)), None, "{filter:?}");
        }
    }

    #[test]
    fn it_is_planned_where_more_is_asked_than_that_it_be_found() {
        let plain = of(&rawdoc! { "_id": 5 });
        let sort = Sort::parse(Doc::from(&rawdoc! { "a": 1, "b": 1 })).unwrap();
        for asked in [
            Query { sort: Some(sort), ..plain.clone() },
            Query { skip: 1, ..plain.clone() },
            Query { limit: Some(0), ..plain.clone() },
            Query { hint: Some(Hint::Natural(Direction::Ascending)), ..plain.clone() },
            Query { force: Force::Candidate(7), ..plain.clone() },
        ] {
            assert_eq!(only_record(&asked), None, "{asked:?}");
        }
        assert!(only_record(&plain).is_some());
        assert!(only_record(&Query { limit: Some(1), ..plain }).is_some());
    }
}
