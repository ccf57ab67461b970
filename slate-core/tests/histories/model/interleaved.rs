//! Two transactions that began at the same commit and were both committed.

use std::collections::BTreeMap;

use super::{Model, Namespace, Options};

/// What a transaction can change by itself: the options of a collection or view, an index, a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Options,
    Index(String),
    Document(Vec<u8>),
}

fn parts(model: &Model) -> BTreeMap<(&'static str, Part), Vec<u8>> {
    let bytes = |options: &Options| options.0.as_bytes().to_vec();
    let of = |name: &&'static str, namespace: &Namespace| {
        let name = *name;
        let indexes =
            namespace.indexes.iter().map(move |(index, options)| ((name, Part::Index(index.clone())), bytes(options)));
        let documents = namespace.documents.iter().map(move |document| {
            let mut id = Vec::new();
            slate_query::key::encode(super::id(document), &mut id);
            ((name, Part::Document(id)), document.as_bytes().to_vec())
        });
        let options = [((name, Part::Options), bytes(&namespace.options))];
        options.into_iter().chain(indexes).chain(documents).collect::<Vec<_>>()
    };
    model.0.iter().flat_map(|(name, namespace)| of(name, namespace)).collect()
}

/// Returns what must be there after both: the first one's state with the changes of the second.
///
/// # Errors
/// A part that both have changed in different ways, so that one of them had to conflict.
pub(crate) fn merged(before: &Model, first: &Model, second: &Model) -> Result<Model, String> {
    let (before, first, second) = (parts(before), parts(first), parts(second));
    let mut merged = first.clone();
    for key in before.keys().chain(second.keys()) {
        let (old, new) = (before.get(key), second.get(key));
        if old == new {
            continue;
        }
        let of_first = first.get(key);
        // Both may create the same collection, without options.
        if of_first != old && !(matches!(key.1, Part::Options) && of_first == new) {
            return Err(format!("both have changed {key:?}"));
        }
        match new {
            Some(new) => merged.insert(key.clone(), new.clone()),
            None => merged.remove(key),
        };
    }
    let mut model = Model::default();
    for ((name, part), bytes) in merged {
        let document = bson::RawDocumentBuf::from_bytes(bytes).map_err(|error| error.to_string())?;
        if part == Part::Options {
            model.0.entry(name).or_default().options = Options(document);
            continue;
        }
        let Some(namespace) = model.0.get_mut(name) else {
            return Err(format!("{part:?} of {name} was written beside the drop of {name}"));
        };
        match part {
            Part::Index(index) => drop(namespace.indexes.insert(index, Options(document))),
            _ => namespace.documents.push(document),
        }
    }
    for namespace in model.0.values_mut() {
        namespace.documents.sort_by(|a, b| slate_query::order::compare(super::id(a), super::id(b)));
    }
    Ok(model)
}
