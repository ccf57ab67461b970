//! Applies events to a copy of the collections.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};
use slate_core::Database;

use crate::acts::NAMES;

/// Sets or removes the value at a path: of fields and positions in arrays.
fn at<'d>(document: &'d mut Document, path: &[Bson]) -> (Option<&'d mut Document>, Option<&'d mut Vec<Bson>>) {
    let Some((first, rest)) = path.split_first() else { return (Some(document), None) };
    within(document.get_mut(first.as_str().unwrap()).unwrap(), rest)
}

fn within<'d>(value: &'d mut Bson, path: &[Bson]) -> (Option<&'d mut Document>, Option<&'d mut Vec<Bson>>) {
    match (value, path.split_first()) {
        (Bson::Document(document), _) => at(document, path),
        (Bson::Array(array), None) => (None, Some(array)),
        (Bson::Array(array), Some((first, rest))) => {
            within(&mut array[usize::try_from(first.as_i32().unwrap()).unwrap()], rest)
        }
        (other, _) => panic!("{other} is no container"),
    }
}

/// Applies an `updateDescription` to a document.
pub(crate) fn apply(document: &mut Document, description: &Document) {
    let ambiguous = description.get_document("disambiguatedPaths").cloned().unwrap_or_default();
    let steps = |document: &Document, path: &str| -> Vec<Bson> {
        if let Ok(steps) = ambiguous.get_array(path) {
            return steps.clone();
        }
        // A number is a position if it follows the path of an array.
        let (mut steps, mut value) = (Vec::new(), Bson::Document(document.clone()));
        for part in path.split('.') {
            let next = match &value {
                Bson::Array(array) => {
                    let position: usize = part.parse().unwrap();
                    steps.push(Bson::Int32(i32::try_from(position).unwrap()));
                    array.get(position).cloned()
                }
                Bson::Document(document) => {
                    steps.push(Bson::String(part.into()));
                    document.get(part).cloned()
                }
                other => panic!("{other} is no container"),
            };
            value = next.unwrap_or(Bson::Null);
        }
        steps
    };
    for truncated in description.get_array("truncatedArrays").unwrap() {
        let truncated = truncated.as_document().unwrap();
        let path = steps(document, truncated.get_str("field").unwrap());
        let array = at(document, &path).1.unwrap();
        array.truncate(usize::try_from(truncated.get_i32("newSize").unwrap()).unwrap());
    }
    for removed in description.get_array("removedFields").unwrap() {
        let path = steps(document, removed.as_str().unwrap());
        let (last, parents) = path.split_last().unwrap();
        at(document, parents).0.unwrap().remove(last.as_str().unwrap());
    }
    for (path, value) in description.get_document("updatedFields").unwrap() {
        let path = steps(document, path);
        let (last, parents) = path.split_last().unwrap();
        match (last, at(document, parents)) {
            (Bson::String(name), (Some(parent), _)) => drop(parent.insert(name, value.clone())),
            (Bson::Int32(position), (_, Some(array))) => {
                let position = usize::try_from(*position).unwrap();
                array.resize(array.len().max(position + 1), Bson::Null);
                array[position] = value.clone();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Equal but for the order of fields.
fn same(a: &Bson, b: &Bson) -> bool {
    match (a, b) {
        (Bson::Document(a), Bson::Document(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        (Bson::Array(a), Bson::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

/// The documents of each collection, by the text of their keys.
pub(crate) type Contents = BTreeMap<String, BTreeMap<String, Document>>;

/// Applies an event to a copy.
pub(crate) fn replay(copy: &mut Contents, event: &Document) {
    let name = event.get_document("ns").unwrap().get_str("coll").unwrap_or_default().to_owned();
    let key = event.get_document("documentKey").map(ToString::to_string).unwrap_or_default();
    let documents = copy.entry(name.clone()).or_default();
    match event.get_str("operationType").unwrap() {
        "insert" => {
            let before = documents.insert(key, event.get_document("fullDocument").unwrap().clone());
            assert!(before.is_none(), "{event} was there");
        }
        "replace" => {
            let before = documents.insert(key, event.get_document("fullDocument").unwrap().clone());
            assert!(before.is_some(), "{event} was not there");
        }
        "update" => {
            let document = documents.get_mut(&key).unwrap();
            apply(document, event.get_document("updateDescription").unwrap());
            if let Ok(full) = event.get_document("fullDocument") {
                let full = Bson::Document(full.clone());
                assert!(same(&full, &Bson::Document(document.clone())), "{event} made {document}");
            }
        }
        "delete" => assert!(documents.remove(&key).is_some(), "{event} was not there"),
        "drop" => drop(copy.remove(&name)),
        "rename" => {
            let to = event.get_document("to").unwrap().get_str("coll").unwrap().to_owned();
            let documents = copy.remove(&name).unwrap();
            copy.insert(to, documents);
        }
        _ => {}
    }
}

/// Reads the collections.
pub(crate) fn contents(database: &Database) -> Contents {
    let of = |name: &str| {
        let documents = database.collection::<Document>(name).find(doc! {}).collect().unwrap();
        let keyed = documents.into_iter().map(|document| (doc! { "_id": &document["_id"] }.to_string(), document));
        (name.to_owned(), keyed.collect())
    };
    NAMES.into_iter().map(of).collect()
}

/// Compares a copy with the collections, but for the order of fields.
pub(crate) fn assert_copied(copy: &Contents, database: &Database) {
    for (name, documents) in contents(database) {
        let copied = copy.get(&name).cloned().unwrap_or_default();
        assert!(copied.keys().eq(documents.keys()), "{name}: {copied:?} {documents:?}");
        for (key, document) in documents {
            let (copied, document) = (Bson::Document(copied[&key].clone()), Bson::Document(document));
            assert!(same(&copied, &document), "{name}: {copied} {document}");
        }
    }
}
