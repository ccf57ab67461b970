use slate_store::{Keyspace, Transaction, TransactionExt as _, View as _};

use super::{CATALOG, keys};
use crate::{Result, commit::Leases};

/// Work that at most one process at a time may do, on a store that several processes write to; see [`Leases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeasedWork {
    /// Deleting the keys of a keyspace. Its lease is the value of the pending drop: the process that commits the drop holds it.
    Drop(Keyspace),
    /// Gathering the statistics of the collection with these records.
    Statistics(Keyspace),
}

/// The result of an attempt to take a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAttempt {
    /// This process holds it when the transaction has committed.
    Taken,
    HeldByAnother,
    /// Another process has done the work.
    Done,
}

impl LeasedWork {
    fn key(self) -> Vec<u8> {
        match self {
            Self::Drop(keyspace) => keys::pending_drop(keyspace),
            Self::Statistics(records) => keys::statistics_lease(records),
        }
    }

    /// Takes the lease, unless another process holds it or the drop is done.
    pub(crate) fn take(self, transaction: &mut impl Transaction, leases: &Leases) -> Result<LeaseAttempt> {
        let key = self.key();
        match (transaction.view().get(CATALOG, &key, |value| leases.is_held(&key, value))?, self) {
            (Some(true), _) => return Ok(LeaseAttempt::HeldByAnother),
            (None, Self::Drop(_)) => return Ok(LeaseAttempt::Done),
            (Some(false), _) | (None, Self::Statistics(_)) => {}
        }
        transaction.put(CATALOG, &key, &leases.value())?;
        Ok(LeaseAttempt::Taken)
    }

    /// Renews the lease by a new value, which other processes see. Returns whether this process holds it.
    pub(crate) fn renew(self, transaction: &mut impl Transaction, leases: &Leases) -> Result<bool> {
        let is_held = self.is_held(transaction, leases)?;
        if is_held {
            transaction.put(CATALOG, &self.key(), &leases.value())?;
        }
        Ok(is_held)
    }

    /// Releases the lease. Returns whether this process held it.
    pub(crate) fn release(self, transaction: &mut impl Transaction, leases: &Leases) -> Result<bool> {
        let is_held = self.is_held(transaction, leases)?;
        match self {
            _ if !is_held => {}
            Self::Drop(_) => transaction.put(CATALOG, &self.key(), &[])?,
            Self::Statistics(_) => transaction.delete(CATALOG, &self.key())?,
        }
        Ok(is_held)
    }

    fn is_held(self, transaction: &impl Transaction, leases: &Leases) -> Result<bool> {
        Ok(transaction.view().get(CATALOG, &self.key(), |value| leases.is_own(value))? == Some(true))
    }
}
