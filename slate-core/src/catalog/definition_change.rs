use slate_query::raw::SmallBytes;
use slate_store::{Transaction, TransactionExt as _, View};

use super::{CATALOG, keys};
use crate::{Result, commit::Announced};

/// Returns the key that a writer of the collection guards and a change of its definition writes: the two conflict.
pub(crate) fn definition_key(collection: &str) -> SmallBytes {
    keys::definition(collection)
}

/// Announces that the collection's definition is about to change, in place of an earlier announcement.
pub(crate) fn announce(transaction: &mut impl Transaction, change: &Announced) -> Result<()> {
    Ok(transaction.put(CATALOG, &keys::announcement(&change.collection), &change.id.to_be_bytes())?)
}

/// Withdraws an announcement, unless another one has replaced it. Returns whether this writes anything.
pub(crate) fn withdraw(transaction: &mut impl Transaction, change: &Announced) -> Result<bool> {
    let key = keys::announcement(&change.collection);
    let is_it = transaction.view().get(CATALOG, &key, |id| *id == change.id.to_be_bytes())?;
    if is_it != Some(true) {
        return Ok(false);
    }
    transaction.delete(CATALOG, &key)?;
    Ok(true)
}
