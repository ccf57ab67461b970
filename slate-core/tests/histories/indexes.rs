//! Indexes agree with the documents.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{ExplainVerbosity, ReadCollection};

use crate::common::{multiset, random::Pool, rows};

/// Checks that each index agrees with the documents: for each value of the pool, every plan returns what the scan
/// returns.
pub(crate) fn check_indexes(collection: &ReadCollection<RawDocumentBuf>, pool: &Pool) -> Result<(), String> {
    for index in collection.list_indexes().map_err(|error| error.to_string())? {
        let condition = index.only.as_ref().map_or_else(Document::new, |only| only.try_into().unwrap());
        let mut filters = vec![condition.clone()];
        let paths = index.keys.iter().flat_map(|field| match field.unwrap().0.as_str() {
            // A wildcard index has entries for every path.
            wildcard if wildcard.ends_with("$**") => ["a", "b", "a.b"].map(String::from).to_vec(),
            path => vec![path.to_owned()],
        });
        for path in paths {
            filters.push(doc! { "$and": [condition.clone(), { &path: { "$exists": true } }] });
            for value in pool.values().iter().filter(|value| **value != Bson::Undefined) {
                filters.push(doc! { "$and": [condition.clone(), { &path: { "$eq": value } }] });
            }
            filters.push(doc! { "$and": [condition.clone(), { &path: { "$gt": 0 } }] });
        }
        for filter in filters {
            let right = rows(collection.find(&filter).force(0)).map_err(|error| format!("{error:?}"))?;
            let explained =
                collection.find(&filter).explain(ExplainVerbosity::QueryPlanner).map_err(|error| error.to_string())?;
            for plan in 1..explained.candidates() {
                let find = collection.find(&filter).force(plan);
                let drawn = find.clone().explain(ExplainVerbosity::QueryPlanner).map_err(|error| error.to_string())?;
                let got = rows(find).map_err(|error| format!("{filter}\n{drawn}\n{error:?}"))?;
                if multiset(&got) != multiset(&right) {
                    return Err(format!("{filter}\n{drawn}\nreturns {got:?}, expected {right:?}"));
                }
            }
        }
    }
    Ok(())
}
