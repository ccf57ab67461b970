//! Collections that killed copies have left on a server. A killed copy cannot remove them, and the program cannot know whether a copy still
//! runs on another machine.

use std::collections::BTreeMap;

use bson::oid::ObjectId;

use super::transfer::UNFINISHED;
use crate::{endpoint::Endpoint, failure::Result, message::message, output};

/// Reports the collections of copies that have not ended, and how to remove them.
pub(super) fn report(names: &[&str]) {
    let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names {
        *copies.entry(copy_of(name)).or_default() += 1;
    }
    for (copy, collections) in copies {
        let began = ObjectId::parse_str(copy).ok().and_then(|id| id.timestamp().try_to_rfc3339_string().ok());
        let began = began.map(|began| format!(" that began at {began}")).unwrap_or_default();
        let collections = output::counted(collections, "collection", "collections");
        message!(
            "the target has {collections} of a copy{began} and has not ended ({UNFINISHED}{copy}): if it no longer runs, \
             `slate URL drop --unfinished` removes what it has left"
        );
    }
}

/// Drops the collections of all copies that have not ended; returns how many. A copy that still runs fails.
pub(super) fn remove(target: &Endpoint) -> Result<u64> {
    let mut removed = 0;
    for name in target.names()?.iter().filter(|name| name.starts_with(UNFINISHED)) {
        target.drop_collection(name)?;
        removed += 1;
    }
    Ok(removed)
}

/// Returns the identifier of a copy, which all names of its collections contain.
fn copy_of(name: &str) -> &str {
    let own = name.strip_prefix(UNFINISHED).unwrap_or(name);
    own.split_once('.').map_or(own, |(copy, _)| copy)
}
