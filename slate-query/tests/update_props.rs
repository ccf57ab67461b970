//! An update of raw bytes equals a reference update of the decoded document.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{cmp::Ordering, collections::BTreeSet};

use bson::{Bson, Document, bson, doc};
use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    Error,
    expression::Bindings,
    filter::Filter,
    path::Path,
    pattern::{KeyPattern, Keys},
    raw::{Doc, OwnedValue, validate},
    update::{Context, Update},
};

/// One operator on one path.
#[derive(Clone, Debug)]
struct Change {
    operator: &'static str,
    path: Vec<&'static str>,
    argument: Bson,
}

/// The reference rejects the update.
#[derive(Debug)]
struct Refused;

fn scalar() -> impl Strategy<Value = Bson> {
    prop_oneof![
        (-3_i32..4).prop_map(Bson::Int32),
        (-3_i64..4).prop_map(Bson::Int64),
        select(vec!["", "x"]).prop_map(Bson::from),
        Just(Bson::Null),
    ]
}

fn value() -> impl Strategy<Value = Bson> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec((select(NAMES), inner.clone()), 0..4)
                .prop_map(|fields| Bson::Document(fields.into_iter().map(|(name, v)| (name.to_owned(), v)).collect())),
            vec(inner, 0..4).prop_map(Bson::Array),
        ]
    })
}

const NAMES: &[&str] = &["a", "b", "0", "2", "10"];

fn document() -> impl Strategy<Value = Document> {
    vec((select(NAMES), value()), 0..5).prop_map(|fields| {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        std::iter::once(("_id".to_owned(), Bson::Int32(1))).chain(fields).collect()
    })
}

fn path() -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(NAMES), 1..4)
}

fn change() -> impl Strategy<Value = Change> {
    let operators = select(vec!["$set", "$unset", "$inc", "$mul", "$max", "$push", "$addToSet", "$pull", "$pop"]);
    let plain = (operators, path(), value(), scalar()).prop_map(|(operator, path, value, scalar)| {
        let argument = match operator {
            "$inc" | "$mul" => Bson::Int32(scalar.as_i32().unwrap_or(2)),
            "$pop" => Bson::Int32(if scalar == Bson::Null { 1 } else { -1 }),
            "$max" | "$pull" => scalar,
            _ => value,
        };
        Change { operator, path, argument }
    });
    let rename = (path(), path()).prop_map(|(path, to)| Change {
        operator: "$rename",
        path,
        argument: Bson::String(to.join(".")),
    });
    prop_oneof![6 => plain, 1 => rename]
}

fn update(changes: &[Change]) -> Document {
    let mut update = Document::new();
    for Change { operator, path, argument } in changes {
        let fields = update.entry((*operator).to_owned()).or_insert(Bson::Document(doc! {}));
        fields.as_document_mut().unwrap().insert(path.join("."), argument.clone());
    }
    update
}

/// Returns a stage of an update that is a pipeline.
fn stage() -> impl Strategy<Value = Bson> {
    let path = || path().prop_map(|path| path.join("."));
    prop_oneof![
        3 => (path(), value()).prop_map(|(path, value)| bson!({ "$set": { path: { "$literal": value } } })),
        2 => (path(), path()).prop_map(|(path, from)| bson!({ "$set": { path: format!("${from}") } })),
        2 => path().prop_map(|path| bson!({ "$unset": path })),
        1 => path().prop_map(|path| bson!({ "$project": { path: 1 } })),
        1 => path().prop_map(|path| bson!({ "$replaceWith": { "$mergeObjects": [format!("${path}"), { "a": 1 }] } })),
    ]
}

/// Compares the names of siblings: array positions by number, everything else as text.
fn name_order(a: &str, b: &str) -> Ordering {
    match (a.parse::<u32>(), b.parse::<u32>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

fn path_order(a: &[&str], b: &[&str]) -> Ordering {
    let names = a.iter().zip(b).map(|(a, b)| name_order(a, b)).find(|order| order.is_ne());
    names.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// The end of a walk along a path.
enum End<'a> {
    /// The container, and the name or position in it, of an existing value.
    Found(&'a mut Bson),
    /// The value does not exist and can be created.
    Missing,
    Blocked,
}

fn walk<'a>(root: &'a mut Bson, path: &[&str]) -> End<'a> {
    let mut at = root;
    for name in path {
        let next = match at {
            Bson::Document(document) => document.get_mut(name),
            Bson::Array(array) => match name.parse::<usize>() {
                Ok(position) => array.get_mut(position),
                Err(_) => return End::Blocked,
            },
            _ => return End::Blocked,
        };
        match next {
            Some(next) => at = next,
            None => return End::Missing,
        }
    }
    End::Found(at)
}

fn create(root: &mut Bson, path: &[&str], value: Bson) {
    let Some((name, rest)) = path.split_first() else {
        *root = value;
        return;
    };
    let child = match root {
        Bson::Document(document) => document.entry((*name).to_owned()).or_insert(Bson::Document(doc! {})),
        Bson::Array(array) => {
            let position = name.parse::<usize>().unwrap();
            if array.len() <= position {
                array.resize(position, Bson::Null);
                array.push(Bson::Document(doc! {}));
            }
            &mut array[position]
        }
        _ => panic!("walked before"),
    };
    create(child, rest, value);
}

fn remove(root: &mut Bson, path: &[&str]) {
    let (last, parents) = path.split_last().unwrap();
    match walk(root, parents) {
        End::Found(Bson::Document(document)) => drop(document.remove(last)),
        End::Found(Bson::Array(array)) => array[last.parse::<usize>().unwrap()] = Bson::Null,
        _ => {}
    }
}

fn int(value: &Bson) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}

fn compute(a: &Bson, b: &Bson, by: fn(i64, i64) -> i64) -> Result<Bson, Refused> {
    let (Some(x), Some(y)) = (int(a), int(b)) else { return Err(Refused) };
    Ok(match (a, b, i32::try_from(by(x, y))) {
        (Bson::Int32(_), Bson::Int32(_), Ok(int)) => Bson::Int32(int),
        _ => Bson::Int64(by(x, y)),
    })
}

/// Equality across integer types.
fn equal(a: &Bson, b: &Bson) -> bool {
    slate_query::order::equal(OwnedValue::from(a).as_value(), OwnedValue::from(b).as_value())
}

fn greater(a: &Bson, b: &Bson) -> bool {
    slate_query::order::compare(OwnedValue::from(a).as_value(), OwnedValue::from(b).as_value()).is_gt()
}

/// Returns the value at the path after the change. `None` if it is removed.
fn changed(operator: &str, before: &Bson, argument: &Bson) -> Result<Option<Bson>, Refused> {
    Ok(Some(match operator {
        "$set" => argument.clone(),
        "$unset" => return Ok(None),
        "$inc" => compute(argument, before, |a, b| a + b)?,
        "$mul" => compute(argument, before, |a, b| a * b)?,
        "$max" if greater(argument, before) => argument.clone(),
        "$max" => before.clone(),
        _ => {
            let Bson::Array(array) = before else { return Err(Refused) };
            let mut array = array.clone();
            match operator {
                "$push" => array.push(argument.clone()),
                "$addToSet" if array.iter().any(|element| equal(element, argument)) => {}
                "$addToSet" => array.push(argument.clone()),
                "$pull" => array.retain(|element| !equal(element, argument)),
                _ if array.is_empty() => {}
                _ => drop(array.remove(if argument == &Bson::Int32(1) { array.len() - 1 } else { 0 })),
            }
            Bson::Array(array)
        }
    }))
}

fn made(operator: &str, argument: &Bson) -> Option<Bson> {
    match operator {
        "$set" | "$inc" | "$max" => Some(argument.clone()),
        "$mul" => Some(Bson::Int32(0)),
        "$push" | "$addToSet" => Some(Bson::Array(vec![argument.clone()])),
        _ => None,
    }
}

fn rename(root: &mut Bson, before: &Document, from: &[&str], to: &[&str]) -> Result<(), Refused> {
    let mut original = Bson::Document(before.clone());
    let value = match walk(&mut original, from) {
        End::Found(value) => value.clone(),
        End::Missing => return Ok(()),
        End::Blocked => return Err(Refused),
    };
    let mut through_array = |path: &[&str]| {
        (1..path.len()).any(|length| matches!(walk(&mut original, &path[..length]), End::Found(Bson::Array(_))))
    };
    if through_array(from) || through_array(to) || matches!(walk(root, to), End::Blocked) {
        return Err(Refused);
    }
    create(root, to, value);
    remove(root, from);
    Ok(())
}

/// Returns the reference update: one change after the other, in the order of their paths.
fn reference(before: &Document, changes: &[Change]) -> Result<Document, Refused> {
    let to = |change: &Change| change.argument.as_str().unwrap_or_default().to_owned();
    let mut paths: Vec<Vec<String>> = Vec::new();
    for change in changes {
        paths.push(change.path.iter().map(|&name| name.to_owned()).collect());
        if change.operator == "$rename" {
            paths.push(to(change).split('.').map(str::to_owned).collect());
        }
    }
    let meet = |a: &[String], b: &[String]| a.iter().zip(b).all(|(a, b)| a == b);
    if paths.iter().enumerate().any(|(place, path)| paths[..place].iter().any(|other| meet(path, other))) {
        return Err(Refused);
    }
    // A rename is ordered by its destination.
    let destinations: Vec<String> = changes.iter().map(to).collect();
    let mut ordered: Vec<(Vec<&str>, &Change)> = changes
        .iter()
        .zip(&destinations)
        .map(|(change, to)| match change.operator {
            "$rename" => (to.split('.').collect(), change),
            _ => (change.path.clone(), change),
        })
        .collect();
    ordered.sort_by(|(a, _), (b, _)| path_order(a, b));
    let mut root = Bson::Document(before.clone());
    for (path, change) in &ordered {
        let Change { operator, path: source, argument } = change;
        if *operator == "$rename" {
            rename(&mut root, before, source, path)?;
            continue;
        }
        match walk(&mut root, path) {
            End::Found(value) => match changed(operator, value, argument)? {
                Some(after) => *value = after,
                None => remove(&mut root, path),
            },
            End::Missing => {
                if let Some(value) = made(operator, argument) {
                    create(&mut root, path, value);
                }
            }
            End::Blocked if *operator == "$unset" => {}
            End::Blocked => return Err(Refused),
        }
    }
    match root {
        Bson::Document(document) => Ok(document),
        other => panic!("a document stays one, not {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn updating_bytes_agrees_with_updating_decoded_documents(before in document(), changes in vec(change(), 1..4)) {
        // One argument per operator and path, because a document cannot have two.
        let mut seen = BTreeSet::new();
        let changes: Vec<Change> =
            changes.into_iter().filter(|change| seen.insert((change.operator, change.path.clone()))).collect();
        let bytes = before.to_vec().unwrap();
        let argument = OwnedValue::from(Bson::Document(update(&changes)));
        let result = Update::parse(argument.as_value(), &[], &Bindings::default())
            .and_then(|update| update.apply(Doc::new(&bytes), &Context::modify(0, None)));
        match (result, reference(&before, &changes)) {
            (Err(_), Err(Refused)) => {}
            (Ok(after), Ok(expected)) => {
                let after = after.unwrap_or_else(|| bytes.clone());
                validate(&after).unwrap();
                let found = Document::from_reader(after.as_slice()).unwrap();
                prop_assert_eq!(&after, &expected.to_vec().unwrap(), "found {}, expected {}", found, expected);
            }
            (found, expected) => prop_assert!(false, "found {:?}, expected {:?}", found, expected),
        }
    }

    #[test]
    fn an_update_touches_every_index_whose_keys_it_changes(
        before in document(),
        changes in prop_oneof![
            3 => vec(change(), 1..4).prop_map(|changes| Bson::Document(update(&changes))),
            1 => vec(stage(), 1..4).prop_map(Bson::Array),
        ],
        indexed in path(),
    ) {
        let bytes = before.to_vec().unwrap();
        let argument = OwnedValue::from(changes);
        let parsed = Update::parse(argument.as_value(), &[], &Bindings::default());
        let Ok(update) = parsed else { return Ok(()) };
        let Ok(Some(after)) = update.apply(Doc::new(&bytes), &Context::modify(0, None)) else { return Ok(()) };
        let path = indexed.join(".");
        let keys = |bytes: &[u8]| {
            let pattern = doc! { &path: 1 }.to_vec().unwrap();
            let mut keys = Keys::default();
            // Keys can fail to encode, which is compared, too.
            KeyPattern::parse(Doc::new(&pattern)).unwrap().keys(Doc::new(bytes), &mut keys)?;
            let entries: Vec<_> = keys.iter().map(|(key, bits)| (key.to_vec(), bits.to_vec())).collect();
            keys.drop_absent();
            Ok::<_, Error>((entries, keys.multikey().to_vec(), keys.is_empty()))
        };
        if keys(&bytes) != keys(&after) {
            prop_assert!(update.touches(&Path::parse(&path).unwrap()));
        }
    }

    #[test]
    fn dynamic_steps_equal_the_positions_that_they_select(
        before in document(),
        parents in path(),
        below in vec(select(NAMES), 0..2),
        change in change().prop_filter("the operators that take such paths", |change| change.operator != "$rename"),
        step in select(vec!["$", "$[]", "$[x]"]),
        at in 0_usize..3,
        least in -1_i32..3,
    ) {
        let bytes = before.to_vec().unwrap();
        let selects = doc! { "x": { "$gte": least } }.to_vec().unwrap();
        let filter = Filter::parse(Doc::new(&selects)).unwrap();
        let filters = [Doc::new(&selects)];
        let apply = |doc: &[u8], step: &str, filters: &[Doc<'_>]| {
            let steps = parents.iter().chain([&step]).chain(&below).copied().collect::<Vec<_>>().join(".");
            let update = doc! { change.operator: { steps: change.argument.clone() } };
            let update = Update::parse(OwnedValue::from(Bson::Document(update)).as_value(), filters, &Bindings::default())?;
            let after = update.apply(Doc::new(doc), &Context::modify(0, Some(at)))?;
            Ok::<_, Error>(after.unwrap_or_else(|| doc.to_vec()))
        };
        let found = apply(&bytes, step, if step == "$[x]" { &filters } else { &[] });
        let mut root = Bson::Document(before);
        let positions: Vec<usize> = match (walk(&mut root, &parents), step) {
            (_, "$") => vec![at],
            (End::Found(Bson::Array(elements)), _) => {
                let selected = |element: &Bson| {
                    let wrapped = doc! { "x": element.clone() }.to_vec().unwrap();
                    step == "$[]" || filter.matches(Doc::new(&wrapped))
                };
                (0..elements.len()).filter(|&position| selected(&elements[position])).collect()
            }
            _ => {
                prop_assert!(found.is_err());
                return Ok(());
            }
        };
        let expected =
            positions.iter().try_fold(bytes.clone(), |doc, position| apply(&doc, &position.to_string(), &[]));
        match (found, expected) {
            (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected),
            (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err()),
        }
    }
}
