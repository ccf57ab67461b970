use std::collections::BTreeMap;

use slate_query::{
    distinct, key,
    path::Path,
    raw::{Doc, OwnedValue},
};
use slate_store::View;

use super::RawRows;
use crate::Result;

/// The different values at a path, in order. Of values that compare equal the one in the record that comes first in the
/// order of `_id` represents them, whatever the plan reads first.
pub(super) fn distinct<V: View>(mut input: RawRows<V>, path: &Path) -> Result<Vec<OwnedValue>> {
    let mut found: BTreeMap<Vec<u8>, (Vec<u8>, OwnedValue)> = BTreeMap::new();
    let mut buffer = Vec::new();
    while input.advance()? {
        let Some(record) = input.current() else { break };
        distinct::values(path, Doc::new(record.document), &mut |value| {
            buffer.clear();
            key::encode(value, &mut buffer);
            match found.get_mut(&buffer) {
                Some((first, _)) if first.as_slice() <= record.key => {}
                Some(represented) => *represented = (record.key.to_vec(), value.to_owned()),
                None => {
                    found.insert(buffer.clone(), (record.key.to_vec(), value.to_owned()));
                }
            }
        });
    }
    Ok(found.into_values().map(|(_, value)| value).collect())
}
