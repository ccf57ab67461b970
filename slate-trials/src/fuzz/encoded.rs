//! Targets for stored bytes: documents, records, index keys.

use bson::{Bson, RawDocumentBuf, doc};
use slate_core::{Database, Index};
use slate_query::{
    key::{self, Direction, TypeBits, TypeReader},
    raw::{self, Doc},
};

use super::{Verdict, database::right, input::Input};

/// Inserts a document, possibly with damaged bytes, and checks that an inserted one is found.
pub(super) fn document(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let whole = input.argument_document(&[], 0);
    let bytes = input.perhaps_damaged(&whole.to_vec().unwrap_or_default());
    let Ok(document) = RawDocumentBuf::from_bytes(bytes) else { return Verdict::Refused };
    let db = right(Database::open("memory:"));
    let c = db.collection::<RawDocumentBuf>("c");
    right(c.create_index(Index::on(doc! { "$**": 1 })).run());
    let inserted = c.insert_one(&document);
    if inserted.is_ok() {
        let found = right(c.find(doc! {}).collect());
        assert_eq!(found.len(), 1, "an inserted document is found");
        assert!(right(db.verify().run()).is_sound(), "its entries agree with it");
    }
    Verdict::of(&inserted)
}

/// Reads arbitrary bytes as a record, then a stored record, possibly with damaged bytes.
pub(super) fn stored(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let document = input.argument_document(&[], 0).to_vec().unwrap_or_default();
    let mut record = Vec::new();
    raw::store(Doc::new(&document), &mut record);
    read(data);
    if read(&input.perhaps_damaged(&record)) > 0 { Verdict::Accepted } else { Verdict::Refused }
}

/// Reads a record, and returns the number of its fields.
fn read(record: &[u8]) -> usize {
    let record = Doc::stored(record);
    let _ = format!("{record:?}");
    let mut count = 0;
    for element in record.elements() {
        let _ = record.get(&element.display_name());
        count += 1;
    }
    count
}

/// Decodes arbitrary bytes as a key with its type bits, then the key of some values, possibly with damaged bytes.
/// Decoding and skipping must agree.
pub(super) fn key(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let mut values = input.text_list().unwrap_or_default();
    if values.is_empty() {
        let count = 1 + input.byte() % 3;
        values.extend((0..count).map(|_| input.value(&[], 2)));
    }
    let direction = input.choice(&[Direction::Ascending, Direction::Descending], Direction::Ascending);
    decode(data, data, direction);
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    let document = doc! { "v": Bson::Array(values) }.to_vec().unwrap_or_default();
    let list = Doc::new(&document).get("v").and_then(|list| list.as_array());
    for element in list.into_iter().flat_map(|list| list.elements()) {
        key::encode_typed(Some(element.value), &mut key, &mut bits);
    }
    if direction == Direction::Descending {
        key.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let damaged = input.perhaps_damaged(&key);
    let decoded = decode(&damaged, bits.as_bytes(), direction);
    assert!(damaged != key || decoded == key.len(), "a key is decoded to its end");
    if decoded > 0 { Verdict::Accepted } else { Verdict::Refused }
}

/// Decodes a key up to its end or the first error, and returns the number of bytes that were decoded.
fn decode(key: &[u8], bits: &[u8], direction: Direction) -> usize {
    let (mut rest, mut reader) = (key, TypeReader::new(bits));
    while !rest.is_empty() {
        let (before, skipped) = (rest.len(), key::skip(rest, direction));
        if key::decode(&mut rest, direction, &mut reader).is_none() {
            return key.len() - before;
        }
        let decoded = before - rest.len();
        assert!(
            skipped.is_none_or(|skipped| skipped == decoded),
            "skipping and decoding agree: {skipped:?}, {decoded}"
        );
    }
    key.len()
}
