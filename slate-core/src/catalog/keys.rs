//! The keys of keyspace 0. The first byte is the kind of key.

use slate_query::raw::SmallBytes;
use slate_store::Keyspace;

pub(super) const FORMAT: &[u8] = b"f";
pub(super) const NEXT: &[u8] = b"n";
pub(super) const VERSION: &[u8] = b"v";
pub(super) const STATISTICS_VERSION: &[u8] = b"w";

pub(super) const CHANGE_LOG: &[u8] = b"l";

const COLLECTION: u8 = b'c';
const DEFINITION: u8 = b'g';
const PENDING_DROP: u8 = b'd';
const BUILD: u8 = b'b';
const STATISTICS: u8 = b's';
const STATISTICS_LEASE: u8 = b'h';
const TRIMMED: u8 = b't';
/// Within the range of [`versions`], so that one read has both.
const ANNOUNCEMENT: &[u8] = b"wa";

/// Returns the key of the counter of changes to the properties of a collection's indexes. Sorts after [`VERSION`].
pub(super) fn properties_version(name: &str) -> Vec<u8> {
    [VERSION, name.as_bytes()].concat()
}

/// Returns the key of the announcement that the collection's definition is about to change.
pub(super) fn announcement(name: &str) -> Vec<u8> {
    [ANNOUNCEMENT, name.as_bytes()].concat()
}

/// Returns the name of the collection whose change is announced under this key.
pub(super) fn announced(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(ANNOUNCEMENT)?).ok()
}

/// Returns the range of the keys of all versions, counters and announcements.
pub(super) fn versions() -> (&'static [u8], &'static [u8]) {
    (VERSION, b"x")
}

pub(super) fn collection(name: &str) -> Vec<u8> {
    [&[COLLECTION], name.as_bytes()].concat()
}

pub(super) fn collections() -> ([u8; 1], [u8; 1]) {
    ([COLLECTION], [COLLECTION + 1])
}

pub(super) fn collection_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(&[COLLECTION])?).ok()
}

/// Returns the name of the collection or view in the key of a definition, a [definition key](definition) or a
/// [properties version](properties_version); `None` for any other key.
pub(crate) fn collection_of(key: &[u8]) -> Option<&str> {
    let name = key.strip_prefix(&[COLLECTION]).or_else(|| key.strip_prefix(&[DEFINITION]));
    let name = name.or_else(|| key.strip_prefix(VERSION).filter(|name| !name.is_empty()));
    std::str::from_utf8(name?).ok()
}

pub(super) fn definition(name: &str) -> SmallBytes {
    SmallBytes::concat(&[&[DEFINITION], name.as_bytes()])
}

pub(super) fn pending_drop(keyspace: Keyspace) -> Vec<u8> {
    [&[PENDING_DROP][..], &keyspace.0.to_be_bytes()].concat()
}

pub(super) fn build(keyspace: Keyspace) -> Vec<u8> {
    [&[BUILD][..], &keyspace.0.to_be_bytes()].concat()
}

/// Returns the key under which the position of the last event deleted from the log of changes in this keyspace is
/// stored.
pub(super) fn trimmed(log: Keyspace) -> Vec<u8> {
    [&[TRIMMED][..], &log.0.to_be_bytes()].concat()
}

pub(super) fn statistics(records: Keyspace) -> Vec<u8> {
    [&[STATISTICS][..], &records.0.to_be_bytes()].concat()
}

/// Returns the key of the lease of gathering the statistics of the collection with these records.
pub(super) fn statistics_lease(records: Keyspace) -> Vec<u8> {
    [&[STATISTICS_LEASE][..], &records.0.to_be_bytes()].concat()
}

pub(super) fn all_statistics() -> ([u8; 1], [u8; 1]) {
    ([STATISTICS], [STATISTICS + 1])
}

pub(super) fn statistics_keyspace(key: &[u8]) -> Option<Keyspace> {
    number(key, STATISTICS)
}

pub(super) fn all_pending_drops() -> ([u8; 1], [u8; 1]) {
    ([PENDING_DROP], [PENDING_DROP + 1])
}

pub(super) fn pending_drop_keyspace(key: &[u8]) -> Option<Keyspace> {
    number(key, PENDING_DROP)
}

fn number(key: &[u8], prefix: u8) -> Option<Keyspace> {
    Some(Keyspace(u32::from_be_bytes(key.strip_prefix(&[prefix])?.try_into().ok()?)))
}
