use slate_store::{Bounds, Cursor as _, Edge, Keyspace, Transaction, TransactionExt as _, View};

use super::{CATALOG, keys};
use crate::{Result, commit::LeaseValue};

/// Records, in the transaction that unlinks `keyspace`, that it still has to be dropped. Dropping is a separate
/// operation, and the process may end before it. Where other processes write to the database, `lease` is the lease of this operation.
pub(crate) fn add_pending_drop(
    transaction: &mut impl Transaction,
    keyspace: Keyspace,
    lease: Option<LeaseValue>,
) -> Result<()> {
    let lease = lease.as_ref().map_or(&[][..], LeaseValue::as_slice);
    Ok(transaction.put(CATALOG, &keys::pending_drop(keyspace), lease)?)
}

/// Removes a pending drop after the keyspace was dropped. Also removes the keyspace's statistics, their lease, and the
/// position up to which a log in it was trimmed.
pub(crate) fn remove_pending_drop(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    transaction.delete(CATALOG, &keys::statistics(keyspace))?;
    transaction.delete(CATALOG, &keys::statistics_lease(keyspace))?;
    transaction.delete(CATALOG, &keys::trimmed(keyspace))?;
    Ok(transaction.delete(CATALOG, &keys::pending_drop(keyspace))?)
}

/// Returns the keyspaces that are unlinked and not dropped yet.
pub(crate) fn pending_drops(view: &impl View) -> Result<Vec<Keyspace>> {
    let (start, end) = keys::all_pending_drops();
    let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
    let mut found = Vec::new();
    let mut more = cursor.seek(Edge::First)?;
    while more {
        found.extend(cursor.current().and_then(|(key, _)| keys::pending_drop_keyspace(key)));
        more = cursor.step_forward()?;
    }
    Ok(found)
}
