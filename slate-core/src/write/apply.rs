use std::sync::Arc;

use slate_query::{raw::SmallBytes, work};
use slate_store::{Capabilities, Durability, Guard, Keyspace, LastWrites, Transaction, Version};

use super::{
    Session,
    change_set::{BlockPlace, ChangeSet},
    entries::{Entries, KeyWrites, Write},
    unique::{Existing, record_key},
};
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::{ChangeLogInfo, CollectionInfo},
    changes::{EventBuffer, LogTail, LogWriter},
};

/// Large changes of a call that are not in the store's transaction yet. The commit, which most often follows, writes them itself.
pub(super) struct Unapplied {
    collection: Arc<CollectionInfo>,
    changes: ChangeSet,
}

impl Unapplied {
    /// Writes the changes, and logs them.
    fn write(&mut self, log: &mut Option<LogWriter<'_>>, into: &mut dyn LastWrites) -> Result<(), Unwritten> {
        if let Some(log) = log {
            self.changes.take_events().iter().try_for_each(|event| log.push(event, into))?;
        }
        let write = |place, block: &Entries| match (place, &mut *log) {
            (BlockPlace::Log, None) => Ok(()),
            (BlockPlace::Log, Some(log)) => Ok(block.iter().try_for_each(|(_, event)| log.push(event, into))?),
            _ => match keyspace(&self.collection, place) {
                Some(keyspace) => Ok(into.write(keyspace, &writes(block))?),
                None => Ok(()),
            },
        };
        self.changes.for_each_block(|_| true, write)
    }
}

/// What a commit writes in its last stage.
pub(super) struct LastStage<'s> {
    /// The log of changes and the events that are not among `unapplied`; `None` if there is nothing to log.
    pub(super) log: Option<(ChangeLogInfo, &'s LogTail, EventBuffer)>,
    /// Maximum size of a value, in bytes.
    pub(super) max_value: usize,
    pub(super) unapplied: Option<Unapplied>,
}

impl LastStage<'_> {
    /// Commits the transaction. The log and the unapplied changes are written within the commit, not copied into the transaction before.
    pub(super) fn commit(mut self, transaction: impl Transaction, durability: Durability) -> Result<Version> {
        if self.log.is_none() && self.unapplied.is_none() {
            return Ok(transaction.commit(durability)?);
        }
        commit_with(transaction, durability, |version, into| self.write(version, into))
    }

    fn write(&mut self, version: Version, into: &mut dyn LastWrites) -> Result<(), Unwritten> {
        let mut log = None;
        if let Some((info, tail, events)) = &self.log {
            let mut writer = LogWriter::begin(info, tail, version, self.max_value);
            events.iter().try_for_each(|event| writer.push(event, into))?;
            log = Some(writer);
        }
        if let Some(unapplied) = &mut self.unapplied {
            unapplied.write(&mut log, into)?;
        }
        Ok(log.map_or(Ok(()), |log| log.finish(into))?)
    }
}

/// Commits the transaction together with what `write` writes.
fn commit_with(
    transaction: impl Transaction,
    durability: Durability,
    mut write: impl FnMut(Version, &mut dyn LastWrites) -> Result<(), Unwritten>,
) -> Result<Version> {
    let (mut is_written, mut unreadable) = (true, None);
    let mut last = |version: Version, into: &mut dyn LastWrites| {
        let written = write(version, into);
        is_written = written.is_ok();
        written.map_err(|unwritten| match unwritten {
            Unwritten::Store(error) => error,
            Unwritten::Unreadable(error) => {
                unreadable = Some(error);
                slate_store::Error::Io(Box::new("the changes of the call could not be read".into()))
            }
        })
    };
    let committed = transaction.commit_with(durability, &mut last);
    let failed = |error: slate_store::Error| unreadable.unwrap_or_else(|| error.into());
    // A commit whose last stage fails writes nothing.
    committed.map_err(failed).map_err(|error| if is_written { error } else { error.unwritten() })
}

/// Why changes could not be written.
enum Unwritten {
    Store(slate_store::Error),
    /// Reading the temporary files failed.
    Unreadable(Error),
}

impl From<slate_store::Error> for Unwritten {
    fn from(error: slate_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Returns the keyspace of a place; `None` for the log, or if the index no longer exists.
fn keyspace(collection: &CollectionInfo, place: BlockPlace) -> Option<Keyspace> {
    match place {
        BlockPlace::Records => Some(collection.records),
        BlockPlace::Index(at) => collection.maintained_at(at).map(|index| index.keyspace),
        BlockPlace::Log => None,
    }
}

/// Returns the writes of a block. If it deletes and puts the same key, the put comes last and takes effect.
fn writes(block: &Entries) -> Vec<slate_store::Write<'_>> {
    let mut writes = Vec::with_capacity(block.len());
    writes.extend(block.writes().map(|(key, write)| match write {
        Write::Put(value) => (key, Some(value)),
        Write::Delete(_) => (key, None),
    }));
    writes
}

impl<T: Transaction> Session<T> {
    /// Checks uniqueness, then applies the changes.
    pub(super) fn check_and_apply(
        &mut self,
        collection: &Arc<CollectionInfo>,
        mut changes: ChangeSet,
        call: &CallContext,
    ) -> Result<()> {
        changes.finish(call)?;
        let unique = changes.check_unique(&self.view(), collection);
        if unique.is_err() {
            // The error depends on another document, so a serializable transaction has read the collection.
            self.read_all(collection);
        }
        unique?;
        self.apply(collection, changes, call)
    }

    /// Applies changes whose uniqueness has been checked; creates the collection if it does not exist. Large changes are written by the commit or
    /// the next call.
    ///
    /// # Errors
    /// Errors before the first write, such as `TooLarge`, `Interrupted` or failing temporary files, leave the transaction unchanged. Any later
    /// error ends it.
    pub(super) fn apply(
        &mut self,
        collection: &Arc<CollectionInfo>,
        mut changes: ChangeSet,
        call: &CallContext,
    ) -> Result<()> {
        changes.finish(call)?;
        // Afterwards neither a deadline nor a cancellation ends the call.
        work::complete()?;
        if changes.is_large() && collection.building.is_empty() {
            self.wrote(collection);
            self.wrote_entries();
            let begun = self.begin_apply(collection, &mut changes);
            self.end_on_error(begun)?;
            self.unapplied = Some(Unapplied { collection: Arc::clone(collection), changes });
            return Ok(());
        }
        self.check_transaction_size(collection, &changes)?;
        let applied = self.apply_all(collection, &mut changes);
        self.end_on_error(applied)
    }

    /// Begins a call of the transaction. Moves large changes of the last call, if any, into the store's transaction, where this call sees them.
    ///
    /// # Errors
    /// Fails if the transaction has ended or its time is up. An error while changes are moved ends the transaction: that of the store or of temporary
    /// files, or `TooLarge` if they exceed what the store holds in an open transaction.
    pub(crate) fn begin_call(&mut self) -> Result<()> {
        self.check_open()?;
        if self.unapplied.is_some() {
            work::check()?;
        }
        let Some(Unapplied { collection, mut changes }) = self.unapplied.take() else { return Ok(()) };
        // The last call has succeeded, so the deadline of this call must not interrupt its changes.
        let settled = work::undivided(|| {
            self.check_transaction_size(&collection, &changes)?;
            self.apply_blocks(&collection, &mut changes)
        });
        self.end_on_error(settled)
    }

    /// Applies changes that were finished, and whose size was checked.
    pub(super) fn apply_all(&mut self, collection: &Arc<CollectionInfo>, changes: &mut ChangeSet) -> Result<()> {
        self.begin_apply(collection, changes)?;
        self.apply_blocks(collection, changes)
    }

    fn apply_blocks(&mut self, collection: &CollectionInfo, changes: &mut ChangeSet) -> Result<()> {
        self.events.append(&mut changes.take_events());
        changes.for_each_block(|_| true, |place, block| self.apply_block(collection, place, block))
    }

    /// Applies all but the writes: defines a new collection, records index properties and growth, sets the guards.
    fn begin_apply(&mut self, collection: &Arc<CollectionInfo>, changes: &mut ChangeSet) -> Result<()> {
        self.define_if_new(collection)?;
        let properties = changes.take_properties();
        if !properties.is_empty() {
            self.add_index_properties(&collection.name, properties);
        }
        self.added(&collection.name, changes.growth);
        for (keyspace, key) in &changes.guards {
            self.transaction.guard(*keyspace, key, Guard::Shared)?;
        }
        Ok(())
    }

    /// Creates the collection if it does not exist.
    pub(super) fn define_if_new(&mut self, collection: &CollectionInfo) -> Result<()> {
        if self.catalog.collection(&collection.name).is_none() { self.define(collection) } else { Ok(()) }
    }

    /// Applies a block in key order, which is fastest for stores. A block of the log is added to the events; one of a dropped index is skipped.
    fn apply_block(&mut self, collection: &CollectionInfo, place: BlockPlace, block: &Entries) -> Result<()> {
        let keyspace = match place {
            BlockPlace::Records => {
                self.wrote(collection);
                collection.records
            }
            BlockPlace::Log => {
                block.iter().for_each(|(_, event)| self.events.push_encoded(event));
                return Ok(());
            }
            BlockPlace::Index(at) => {
                let Some(index) = collection.maintained_at(at) else { return Ok(()) };
                self.wrote_entries();
                if index.unique && collection.is_building(at) {
                    return self.apply_to_building(collection, at, block);
                }
                index.keyspace
            }
        };
        Ok(self.transaction.write(keyspace, &writes(block))?)
    }

    /// Applies writes to a unique index that is being built. If the entry to delete does not exist or belongs to
    /// another record, its key is guarded instead, because the build may be about to put the entry.
    fn apply_to_building(&mut self, collection: &CollectionInfo, at: usize, block: &Entries) -> Result<()> {
        let Some(index) = collection.maintained_at(at) else { return Ok(()) };
        let is_put = |writes: &KeyWrites<'_>| writes.puts().next().is_some();
        let deleted: Vec<KeyWrites<'_>> = block.by_key().filter(|writes| !is_put(writes)).collect();
        let mut held = Vec::new();
        {
            let existing = Existing::load(&self.transaction.view(), index.keyspace, deleted.iter().copied())?;
            for (at, writes) in deleted.iter().enumerate() {
                let owner = existing.value(at).map(|value| record_key(index, writes.key(), value)).transpose()?;
                held.push(owner.is_some_and(|owner| writes.deletes().any(|deleted_from| deleted_from == owner)));
            }
        }
        let mut held = held.into_iter();
        let (mut writes, mut guards) = (Vec::new(), Vec::<SmallBytes>::new());
        for key in block.by_key() {
            if is_put(&key) || held.next().unwrap_or_default() {
                writes.push((key.key(), key.puts().last()));
            } else {
                guards.push(key.key().into());
            }
        }
        for key in &guards {
            self.transaction.guard(index.keyspace, key, Guard::Shared)?;
        }
        Ok(self.transaction.write(index.keyspace, &writes)?)
    }

    /// Adds the changes to the size of the transaction, where the store limits it.
    ///
    /// # Errors
    /// `TooLarge` if the changes do not fit in the transaction.
    pub(super) fn check_transaction_size(&mut self, collection: &CollectionInfo, changes: &ChangeSet) -> Result<()> {
        let Capabilities { max_transaction_bytes, max_transaction_keys, .. } = self.capabilities();
        let within = |total: usize, limit: usize, what: &str| {
            if total <= limit {
                return Ok(total);
            }
            let name = &collection.name;
            Err(Error::too_large(format!(
                "with this write of collection {name} the transaction has {total} {what}; the store's limit is {limit}"
            )))
        };
        let (mut bytes, mut keys) = (self.bytes_written, self.keys_written);
        if let Some(limit) = max_transaction_bytes {
            bytes = within(bytes.saturating_add(changes.bytes()), limit, "bytes")?;
        }
        if let Some(limit) = max_transaction_keys {
            keys = within(keys.saturating_add(changes.keys()), limit, "keys")?;
        }
        (self.bytes_written, self.keys_written) = (bytes, keys);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slate_query::Code;
    use slate_store::{Keyspace, Store, TransactionExt, View, memory::MemoryStore};

    use super::*;
    use crate::{ErrorKind, catalog::CatalogCache, commit::OptimisticValidator, interrupt::Interrupt};

    #[test]
    fn changes_that_cannot_be_read_back_leave_nothing_and_no_other_transaction_conflicts_for_it() {
        let (store, cache, validator) =
            (MemoryStore::default(), CatalogCache::new(true), OptimisticValidator::default());
        let unreadable =
            || Unwritten::Unreadable(Error::new(ErrorKind::Io, Code::UNKNOWN_ERROR, "the temporary disk failed"));
        let full = || Unwritten::Store(slate_store::Error::Io(Box::new("the device failed".into())));
        cache.load(&store.snapshot().unwrap()).unwrap();
        for fails in [unreadable as fn() -> Unwritten, full] {
            let mut transaction = store.begin(Duration::ZERO).unwrap();
            transaction.put(Keyspace(9), b"key", b"value").unwrap();
            let base = transaction.view().version();
            let limits = Interrupt::default();
            let failed = cache.change(["c"].into_iter(), || {
                validator.commit(base, [].into_iter(), ["c"].into_iter(), &limits, || {
                    commit_with(transaction, Durability::Deferred, |_, _| Err(fails()))
                })
            });
            assert!(failed.is_err_and(|error| error.leaves_nothing() && error.kind() != ErrorKind::TooLarge));
            assert!(cache.try_with(|_| ()).is_some(), "no change of the catalog is pending");
            let reads_all = validator.commit(base, ["c"].into_iter(), [].into_iter(), &limits, || Ok(base));
            assert!(reads_all.is_ok(), "nothing was written to the collection");
            assert_eq!(store.snapshot().unwrap().version(), base);
        }
    }
}
