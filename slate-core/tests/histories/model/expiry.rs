//! The documents that TTL indexes let expire.

use bson::{Bson, Document, RawDocumentBuf};
use slate_query::{distinct, filter::Filter, raw::Doc};

use super::{Model, Namespace, Options};
use crate::common::raw;

impl Model {
    /// Returns the states that an expiration at this second can leave, if it deleted that many documents: with a limit any of those that
    /// are due.
    pub(crate) fn expired(&self, second: i64, limit: Option<u64>, deleted: u64) -> Vec<Self> {
        let mut due: Vec<(&'static str, usize)> = Vec::new();
        for (name, namespace) in &self.0 {
            for (position, document) in namespace.documents.iter().enumerate() {
                if namespace.indexes.values().any(|index| is_due(namespace, index, document, second * 1_000)) {
                    due.push((name, position));
                }
            }
        }
        let without = |gone: &[(&'static str, usize)]| {
            let mut next = self.clone();
            for (name, position) in gone.iter().rev() {
                if let Some(namespace) = next.0.get_mut(name) {
                    namespace.documents.remove(*position);
                }
            }
            next
        };
        match limit {
            Some(limit) if (due.len() as u64) > limit => {
                assert_eq!(limit, 1, "the subsets of another size are not listed");
                if deleted == 1 { due.iter().map(|one| without(&[*one])).collect() } else { Vec::new() }
            }
            _ if deleted == due.len() as u64 => vec![without(&due)],
            _ => Vec::new(),
        }
    }
}

/// Returns whether the earliest date in the index's field is so old.
fn is_due(namespace: &Namespace, index: &Options, document: &RawDocumentBuf, now: i64) -> bool {
    let Some(Bson::Int32(seconds)) = index.get("expireAfterSeconds") else { return false };
    if let Some(Bson::Document(condition)) = index.get("partialFilterExpression")
        && !holds(&condition, namespace, document)
    {
        return false;
    }
    let Some(Bson::Document(keys)) = index.get("key") else { return false };
    let Some(path) = keys.keys().next() else { return false };
    let mut earliest: Option<i64> = None;
    distinct::values(&distinct::parse(path).unwrap(), Doc::from(document), &mut |value| {
        if let Some(Bson::DateTime(date)) = value.to_bson() {
            let date = date.timestamp_millis();
            earliest = Some(earliest.map_or(date, |earliest| earliest.min(date)));
        }
    });
    earliest.is_some_and(|date| date + i64::from(seconds) * 1_000 <= now)
}

fn holds(condition: &Document, namespace: &Namespace, document: &RawDocumentBuf) -> bool {
    let bindings = slate_query::expression::Bindings::new(0).with_collation(namespace.collation());
    let filter = Filter::parse_with(Doc::from(&raw(condition)), &bindings).unwrap();
    filter.evaluate(Doc::from(document)).unwrap()
}
