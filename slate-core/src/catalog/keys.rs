//! The keys of keyspace 0. The first byte is the kind of key.

use slate_query::raw::SmallBytes;
use slate_store::Keyspace;

pub(super) const FORMAT: &[u8] = b"f";
pub(super) const NEXT: &[u8] = b"n";
pub(super) const VERSION: &[u8] = b"v";
pub(super) const STATISTICS_VERSION: &[u8] = b"w";

const COLLECTION: u8 = b'c';
const DEFINITION: u8 = b'g';
const DOOMED: u8 = b'd';
const BUILD: u8 = b'b';
const STATISTICS: u8 = b's';

pub(super) fn collection(name: &str) -> Vec<u8> {
    [&[COLLECTION], name.as_bytes()].concat()
}

pub(super) fn collections() -> ([u8; 1], [u8; 1]) {
    ([COLLECTION], [COLLECTION + 1])
}

pub(super) fn collection_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(&[COLLECTION])?).ok()
}

pub(super) fn definition(name: &str) -> SmallBytes {
    SmallBytes::concat(&[&[DEFINITION], name.as_bytes()])
}

pub(super) fn doomed(keyspace: Keyspace) -> Vec<u8> {
    [&[DOOMED][..], &keyspace.0.to_be_bytes()].concat()
}

pub(super) fn build(keyspace: Keyspace) -> Vec<u8> {
    [&[BUILD][..], &keyspace.0.to_be_bytes()].concat()
}

pub(super) fn statistics(records: Keyspace) -> Vec<u8> {
    [&[STATISTICS][..], &records.0.to_be_bytes()].concat()
}

pub(super) fn all_statistics() -> ([u8; 1], [u8; 1]) {
    ([STATISTICS], [STATISTICS + 1])
}

pub(super) fn statistics_keyspace(key: &[u8]) -> Option<Keyspace> {
    number(key, STATISTICS)
}

pub(super) fn all_doomed() -> ([u8; 1], [u8; 1]) {
    ([DOOMED], [DOOMED + 1])
}

pub(super) fn doomed_keyspace(key: &[u8]) -> Option<Keyspace> {
    number(key, DOOMED)
}

fn number(key: &[u8], prefix: u8) -> Option<Keyspace> {
    Some(Keyspace(u32::from_be_bytes(key.strip_prefix(&[prefix])?.try_into().ok()?)))
}
