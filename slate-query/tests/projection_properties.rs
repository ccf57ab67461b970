//! Properties of projections, compared with a reference on decoded documents.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use bson::{Bson, Document};
use proptest::{collection::vec, prelude::*};
use slate_query::{
    projection::Projection,
    raw::{Doc, validate},
};

fn value() -> impl Strategy<Value = Bson> {
    let scalar = prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<bool>().prop_map(Bson::Boolean),
        "[a-c]{0,3}".prop_map(Bson::String),
        Just(Bson::Null),
    ];
    scalar.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Bson::Array), fields(inner).prop_map(Bson::Document)]
    })
}

fn fields(value: impl Strategy<Value = Bson>) -> impl Strategy<Value = Document> {
    vec(("[a-d]", value), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// Paths that do not collide: none is a prefix of another.
fn paths() -> impl Strategy<Value = Vec<String>> {
    vec("[a-d](\\.[a-d]){0,2}", 1..4).prop_map(|paths| {
        let mut kept: BTreeSet<String> = BTreeSet::new();
        for path in paths {
            let collides = |other: &String| within(&path, other) || within(other, &path);
            if !kept.iter().any(collides) {
                kept.insert(path);
            }
        }
        kept.into_iter().collect()
    })
}

fn within(path: &str, other: &str) -> bool {
    path == other || path.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
}

fn spec(paths: &[String], sign: i32) -> Document {
    let mut spec: Document = paths.iter().map(|path| (path.clone(), Bson::Int32(sign))).collect();
    spec.insert("_id", sign);
    spec
}

fn project(spec: &Document, document: &[u8]) -> Vec<u8> {
    let spec = spec.to_vec().unwrap();
    let mut out = Vec::new();
    Projection::parse(Doc::new(&spec), &slate_query::expression::Bindings::default())
        .unwrap()
        .apply(Doc::new(document), None, &mut out)
        .unwrap();
    out
}

/// Projects a value at the path `prefix`. Returns `None` if nothing remains.
fn plain(value: &Bson, prefix: &str, paths: &[String], including: bool) -> Option<Bson> {
    match value {
        Bson::Document(fields) => Some(Bson::Document(
            fields
                .iter()
                .filter_map(|(name, value)| {
                    let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    let named = path == "_id" || paths.contains(&path);
                    let leads_on = paths.iter().any(|other| within(other, &path));
                    let left = match (named, leads_on) {
                        (true, _) => including.then(|| value.clone()),
                        (false, true) => plain(value, &path, paths, including),
                        (false, false) => (!including).then(|| value.clone()),
                    };
                    left.map(|left| (name.clone(), left))
                })
                .collect(),
        )),
        Bson::Array(elements) => {
            Some(Bson::Array(elements.iter().filter_map(|element| plain(element, prefix, paths, including)).collect()))
        }
        scalar => (!including).then(|| scalar.clone()),
    }
}

proptest! {
    #[test]
    fn projecting_bytes_agrees_with_projecting_decoded_documents(document in fields(value()), paths in paths(), including: bool) {
        let out = project(&spec(&paths, i32::from(including)), &document.to_vec().unwrap());
        validate(&out).unwrap();
        let expected = plain(&Bson::Document(document), "", &paths, including).unwrap();
        prop_assert_eq!(Document::from_reader(out.as_slice()).unwrap(), expected.as_document().unwrap().clone());
    }

    #[test]
    fn projections_are_idempotent(document in fields(value()), paths in paths(), including: bool) {
        let spec = spec(&paths, i32::from(including));
        let once = project(&spec, &document.to_vec().unwrap());
        prop_assert_eq!(project(&spec, &once), once);
    }

    #[test]
    fn damaged_bytes_do_not_panic(document in fields(value()), paths in paths(), at: prop::sample::Index, byte: u8) {
        let mut bytes = document.to_vec().unwrap();
        let at = at.index(bytes.len());
        *bytes.get_mut(at).unwrap() = byte;
        project(&spec(&paths, 1), &bytes);
        project(&spec(&paths, 0), &bytes);
    }
}
