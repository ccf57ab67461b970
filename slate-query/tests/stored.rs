//! A document with a field table gives the same results as the same document without one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod random;

use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    distinct,
    filter::{Filter, Ties},
    path::Path,
    pattern::{KeyPattern, Keys},
    projection::Projection,
    raw::{Doc, Kind, Names, OwnedValue, Value, Writer, store, validate, validate_and_store},
    sort::Sort,
};

fn stored(document: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    store(Doc::new(document), &mut bytes);
    bytes
}

/// Returns the fields of both; a name in both occurs twice.
fn joined((first, second): (Vec<u8>, Vec<u8>)) -> Vec<u8> {
    let mut writer = Writer::new();
    for element in [&first, &second].into_iter().flat_map(|bytes| Doc::new(bytes).elements()) {
        writer.append(element.name, element.value);
    }
    writer.finish()
}

/// `{ path: value, … }`.
fn fields<'v>(fields: impl IntoIterator<Item = (&'v String, &'v OwnedValue)>) -> Vec<u8> {
    let fields: Vec<_> = fields.into_iter().map(|(path, value)| (path.clone(), value.clone())).collect();
    random::document_of(&fields)
}

fn number(number: i32) -> OwnedValue {
    OwnedValue::from(bson::Bson::Int32(number))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stored_document_behaves_like_its_original(
        documents in vec((random::document(), random::document()).prop_map(joined), 6),
        paths in vec(random::path(), 1..4),
        values in vec(random::value(), 3),
        operator in select(vec!["$eq", "$ne", "$gt", "$lte", "$exists"]),
        signs in vec(select(vec![1, -1]), 3),
        include in any::<bool>(),
    ) {
        let conditions: Vec<OwnedValue> = values
            .iter()
            .map(|value| random::document_of(&[(operator.to_owned(), value.clone())]))
            .map(|condition| Value::new(Kind::Document, &condition).to_owned())
            .collect();
        let filter = Filter::parse(Doc::new(&fields(paths.iter().zip(&conditions))));
        let directions: Vec<_> = signs.iter().map(|sign| number(*sign)).collect();
        let ordered = fields(paths.iter().zip(&directions));
        let (sort, pattern) = (Sort::parse(Doc::new(&ordered)), KeyPattern::parse(Doc::new(&ordered)));
        let shown: Vec<_> = paths.iter().map(|_| number(i32::from(include))).collect();
        let projection = Projection::parse(Doc::new(&fields(paths.iter().zip(&shown))), &slate_query::expression::Bindings::default());
        for document in &documents {
            let bytes = stored(document);
            let [plain, stored] = [Doc::new(document), Doc::stored(&bytes)];
            prop_assert_eq!(stored.bytes(), plain.bytes());
            if let Ok(filter) = &filter {
                prop_assert_eq!(filter.positional(stored, Ties::Last), filter.positional(plain, Ties::Last), "{:?} of {:?}", filter, plain);
            }
            if let Ok(sort) = &sort {
                prop_assert_eq!(sort_key(sort, stored), sort_key(sort, plain), "{:?} of {:?}", sort, plain);
            }
            if let Ok(pattern) = &pattern {
                prop_assert_eq!(keys(pattern, stored), keys(pattern, plain), "{:?} of {:?}", pattern, plain);
                let firsts = |doc| pattern.first_values(doc).map(owned).collect::<Vec<_>>();
                prop_assert_eq!(firsts(stored), firsts(plain));
            }
            if let Ok(projection) = &projection {
                prop_assert_eq!(projected(projection, stored), projected(projection, plain), "of {:?}", plain);
            }
            for path in &paths {
                let path = Path::parse(path).unwrap();
                prop_assert_eq!(path.get(stored).map(Value::to_owned), path.get(plain).map(Value::to_owned));
                prop_assert_eq!(different(&path, stored), different(&path, plain));
            }
        }
    }

    #[test]
    fn validating_and_storing_in_one_pass_agrees_with_two_passes(
        document in (random::document(), random::document()).prop_map(joined),
        place in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut damaged = document.clone();
        damaged[place.index(document.len())] = byte;
        for bytes in [&document, &damaged] {
            let (mut out, mut seen) = (vec![7], Vec::new());
            let once = validate_and_store(bytes, &mut out, |field| seen.push((field.name.to_vec(), field.value.to_owned())));
            match (once, validate(bytes)) {
                (Ok(()), Ok(document)) => {
                    prop_assert_eq!(&out[1..], &stored(bytes)[..]);
                    let fields = document.elements().map(|field| (field.name.to_vec(), field.value.to_owned()));
                    prop_assert_eq!(seen, fields.collect::<Vec<_>>());
                }
                (Err(once), Err(twice)) => {
                    prop_assert_eq!(once.to_string(), twice.to_string());
                    prop_assert_eq!(out.len(), 1, "nothing is left of it");
                }
                (once, twice) => prop_assert!(false, "{:?}, {:?}", once, twice),
            }
        }
    }

    #[test]
    fn validation_agrees_with_a_naive_validator(
        name in "[a-z\u{e4}\u{4e2d}]{0,20}",
        document in random::document(),
        place in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut writer = Writer::new();
        writer.append(name.as_bytes(), Value::new(Kind::Document, &document));
        writer.append(b"after", Value::new(Kind::Boolean, &[1]));
        let whole = writer.finish();
        prop_assert!(validate(&whole).is_ok());
        let mut damaged = whole;
        let place = place.index(damaged.len());
        damaged[place] = byte;
        if let Some(accepted) = accepts(&damaged) {
            prop_assert_eq!(validate(&damaged).is_ok(), accepted);
        }
    }
}

/// Returns whether a document is valid. `None` if that depends on a value that is not checked here.
#[expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
fn accepts(bytes: &[u8]) -> Option<bool> {
    let length = |bytes: &[u8]| bytes.first_chunk().map(|head| i32::from_le_bytes(*head));
    let is_of = |size: usize, bytes: &[u8]| length(bytes).is_some_and(|length| usize::try_from(length) == Ok(size));
    if bytes.len() < 5 || !is_of(bytes.len(), bytes) || bytes.last() != Some(&0) {
        return Some(false);
    }
    let mut rest = &bytes[4..bytes.len() - 1];
    while let Some((kind, after)) = rest.split_first() {
        let Some(end) = after.iter().position(|&byte| byte == 0) else { return Some(false) };
        let (name, value) = (&after[..end], &after[end + 1..]);
        let prefixed = |more: i64| length(value).map(|length| i64::from(length) + more);
        let size = match kind {
            0x01 | 0x09 | 0x11 | 0x12 => Some(8),
            0x02 | 0x0d | 0x0e => prefixed(4),
            0x03 | 0x04 => prefixed(0),
            0x06 | 0x0a | 0x7f | 0xff => Some(0),
            0x07 => Some(12),
            0x08 => Some(1),
            0x10 => Some(4),
            0x13 => Some(16),
            0x05 | 0x0b | 0x0c | 0x0f => return None,
            _ => return Some(false),
        };
        let Some(value) = size.and_then(|size| value.get(..usize::try_from(size).ok()?)) else { return Some(false) };
        let is_right = match kind {
            0x02 | 0x0d | 0x0e => {
                value.len() > 4 && value.last() == Some(&0) && std::str::from_utf8(&value[4..value.len() - 1]).is_ok()
            }
            0x03 | 0x04 => accepts(value)?,
            0x08 => value[0] < 2,
            _ => true,
        };
        if !is_right || std::str::from_utf8(name).is_err() {
            return Some(false);
        }
        rest = &after[end + 1 + value.len()..];
    }
    Some(true)
}

fn owned((number, value): (usize, Value<'_>)) -> (usize, OwnedValue) {
    (number, value.to_owned())
}

fn sort_key(sort: &Sort, doc: Doc<'_>) -> Result<Vec<u8>, String> {
    let mut key = Vec::new();
    sort.key(doc, &mut key).map_err(|error| error.to_string())?;
    Ok(key)
}

fn keys(pattern: &KeyPattern, doc: Doc<'_>) -> Result<Vec<Vec<u8>>, String> {
    let mut keys = Keys::default();
    pattern.keys(doc, &mut keys).map_err(|error| error.to_string())?;
    Ok(keys.iter().map(|(key, _)| key.to_vec()).collect())
}

fn projected(projection: &Projection, doc: Doc<'_>) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    projection.apply(doc, None, &mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

fn different(path: &Path, doc: Doc<'_>) -> Vec<OwnedValue> {
    let mut values = Vec::new();
    distinct::values(path, doc, &mut |value| values.push(value.to_owned()));
    values
}

#[test]
fn a_field_table_finds_the_same_fields_as_a_scan() {
    let mut wide = bson::RawDocumentBuf::new();
    for field in 0..255 {
        wide.append(bson::raw::CString::try_from(format!("f{field}")).unwrap(), field);
    }
    let mut too_wide = wide.clone();
    too_wide.append(bson::raw::cstr!("f255"), 255);
    let long = bson::rawdoc! { "_id": 1, "text": "x".repeat(65_536), "z": 3 };
    let twins = bson::rawdoc! { "_id": 1, "a": 1, "a": 2, "": 3, "é": 4 };
    for (document, has_table) in [
        (bson::rawdoc! {}, false),
        (bson::rawdoc! { "_id": 1, "ab1": 2, "ab2": [1, 2], "ba1": { "ab1": 5 }, "last": null }, true),
        (twins, false),
        (wide, true),
        (too_wide, false),
        (long, false),
    ] {
        let bytes = stored(document.as_bytes());
        let (plain, record) = (Doc::from(&document), Doc::stored(&bytes));
        for doc in [plain, record] {
            let mut copy = vec![7];
            doc.append_stored(&mut copy);
            let copied = Doc::stored(&copy[1..]);
            assert_eq!((copied.bytes(), copied.has_table()), (doc.bytes(), doc.has_table()));
            assert!(!doc.has_table() || copy[1..] == bytes[..]);
        }
        assert_eq!(record, plain);
        assert_eq!(record.has_table(), has_table, "{} bytes", document.as_bytes().len());
        for name in ["_id", "a", "ab", "ab1", "ab2", "ba1", "last", "", "é", "z", "f0", "f254", "f255", "nothing"] {
            assert_eq!(record.get(name).map(Value::to_owned), plain.get(name).map(Value::to_owned), "{name}");
        }
    }
}

#[test]
fn fields_are_those_of_the_names_in_the_documents_order() {
    let document = bson::rawdoc! { "_id": 1, "b": 2, "a": 3, "b": "four", "ca": 5, "bb": 6 };
    let bytes = stored(document.as_bytes());
    let names: Names = [b"b".as_slice(), b"_id", b"ca", b"zz"].into_iter().collect();
    for doc in [Doc::stored(&bytes), Doc::from(&document)] {
        let found: Vec<_> = doc.fields_of(&names).map(|field| (field.number, field.place)).collect();
        assert_eq!(found, [(1, 4..13), (0, 13..20), (0, 27..39), (2, 39..47)], "{}", doc.has_table());
    }
}

#[test]
fn damaged_bytes_do_not_panic() {
    let whole = stored(bson::rawdoc! { "_id": 1, "name": "x", "tags": ["a"] }.as_bytes());
    let names: Names = [b"name".as_slice()].into_iter().collect();
    for end in 0..whole.len() {
        let cut = Doc::stored(&whole[..end]);
        let _ = (cut.get("name"), cut.fields_of(&names).count(), cut.elements().count());
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let damaged = Doc::stored(&damaged);
            let _ = (damaged.get("name"), damaged.fields_of(&names).count(), damaged.elements().count());
        }
    }
}
