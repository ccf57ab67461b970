use slate_query::filter::Exactness;

use super::{Force, Query, candidates::is_id};

/// The key of the one record that can match, where the question is for an `_id` and for nothing else: there is nothing to plan.
/// Not where it is sorted: a sort may refuse the record.
pub(crate) fn only_record(query: &Query) -> Option<Vec<u8>> {
    let [conjunct] = query.filter.conjuncts() else { return None };
    let is_plain = query.order().is_none() && query.window().is_whole();
    let is_free = query.hint.is_none() && query.force == Force::No;
    if !is_plain || !is_free || !conjunct.only_path().is_some_and(is_id) {
        return None;
    }
    let mut said = Vec::with_capacity(1);
    conjunct.each_term(&mut |term| said.push(term));
    let [term] = said.as_slice() else { return None };
    term.intervals.as_point().filter(|_| term.exact >= Exactness::WhereNotMultikey).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use bson::{Bson, Document, doc};
    use slate_query::{filter::Filter, pattern::Direction, raw::with_value, sort::Sort};

    use super::*;
    use crate::{IntoDocument, entry::record_key, plan::Hint};

    fn of(filter: &Document) -> Query {
        Query::of(Filter::parse((&filter.into_document().unwrap()).into()).unwrap())
    }

    #[test]
    fn the_only_record_is_known_where_one_id_is_asked_for_and_nothing_else() {
        let document = Bson::Document(doc! { "a": 1 });
        for (filter, id) in [
            (doc! { "_id": 5 }, Bson::Double(5.0)),
            (doc! { "_id": { "$eq": "x" } }, "x".into()),
            (doc! { "_id": { "$in": [5, 5_i64] } }, 5.into()),
            (doc! { "$and": [{ "_id": { "a": 1 } }] }, document),
        ] {
            let key = with_value(&id, record_key).unwrap();
            assert_eq!(only_record(&of(&filter)), Some(key), "{filter}");
        }
        for filter in [
            doc! {},
            doc! { "_id": 5, "a": 1 },
            doc! { "_id": { "$eq": 5, "$gt": 3 } },
            doc! { "_id": { "$in": [5, 6] } },
            doc! { "_id": { "$in": [] } },
            doc! { "_id": { "$gt": 5 } },
            doc! { "_id": { "$ne": 5 } },
            doc! { "_id": { "$exists": false } },
            doc! { "_id": { "$elemMatch": { "$eq": 5 } } },
            doc! { "_id": { "$regex": "^x$" } },
            doc! { "_id": [5] },
            doc! { "_id": null },
            doc! { "_id.a": 1 },
            doc! { "a": 5 },
            doc! { "$or": [{ "_id": 5 }, { "a": 1 }] },
        ] {
            assert_eq!(only_record(&of(&filter)), None, "{filter}");
        }
    }

    #[test]
    fn it_is_planned_where_more_is_asked_than_that_it_be_found() {
        let plain = of(&doc! { "_id": 5 });
        let sort = Sort::parse((&doc! { "a": 1, "b": 1 }.into_document().unwrap()).into()).unwrap();
        for asked in [
            Query { sort: Some(sort), ..plain.clone() },
            Query { skip: 1, ..plain.clone() },
            Query { limit: Some(1), ..plain.clone() },
            Query { hint: Some(Hint::Natural(Direction::Ascending)), ..plain.clone() },
            Query { force: Force::Candidate(7), ..plain.clone() },
        ] {
            assert_eq!(only_record(&asked), None, "{asked:?}");
        }
        assert!(only_record(&plain).is_some());
    }
}
