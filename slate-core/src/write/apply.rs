use std::sync::Arc;

use slate_query::raw::SmallBytes;
use slate_store::{Guard, Transaction};

use super::{
    Session,
    change_set::{ChangeSet, Place},
    entries::{Entries, KeyWrites, Write},
    unique::{Existing, record_key},
};
use crate::{Error, Result, call_context::CallContext, catalog::CollectionInfo};

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
            // The error tells about another document. A serializable transaction has thereby read the collection.
            self.read_all(collection);
        }
        unique?;
        self.apply(collection, changes, call)
    }

    /// Applies changes whose uniqueness has been checked; creates the collection if it does not exist.
    ///
    /// # Errors
    /// `TooLarge` and `Interrupted` leave the transaction unchanged. Any other error comes from the storage and ends it.
    pub(super) fn apply(
        &mut self,
        collection: &Arc<CollectionInfo>,
        mut changes: ChangeSet,
        call: &CallContext,
    ) -> Result<()> {
        changes.finish(call)?;
        self.check_transaction_size(collection, &changes)?;
        let applied = self.apply_all(collection, &mut changes);
        self.end_on_error(applied)
    }

    /// Applies changes that were finished, and whose size was checked.
    pub(super) fn apply_all(&mut self, collection: &Arc<CollectionInfo>, changes: &mut ChangeSet) -> Result<()> {
        self.define_if_new(collection)?;
        self.add_index_properties(&collection.name, changes.take_properties());
        self.added(&collection.name, changes.growth);
        for (keyspace, key) in &changes.guards {
            self.transaction.guard(*keyspace, key, Guard::Shared)?;
        }
        changes.for_each_block(|_| true, |place, block| self.apply_block(collection, place, block))
    }

    /// Applies writes in key order, which is fastest for stores.
    fn apply_block(&mut self, collection: &CollectionInfo, place: Place, block: &Entries) -> Result<()> {
        let keyspace = match place {
            Place::Records => {
                self.wrote(collection);
                collection.records
            }
            Place::Index(at) => {
                let Some(index) = collection.maintained_at(at) else { return Ok(()) };
                self.wrote_entries();
                if index.unique && collection.is_building(at) {
                    return self.apply_to_building(collection, at, block);
                }
                index.keyspace
            }
        };
        // If the block deletes and puts the same key, the put comes last and takes effect.
        let mut writes = Vec::with_capacity(block.len());
        writes.extend(block.writes().map(|(key, write)| match write {
            Write::Put(value) => (key, Some(value)),
            Write::Delete(_) => (key, None),
        }));
        Ok(self.transaction.write(keyspace, &writes)?)
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
        let Some(limit) = self.capabilities().max_transaction_bytes else { return Ok(()) };
        let total = self.bytes_written.saturating_add(changes.bytes());
        if total > limit {
            let name = &collection.name;
            return Err(Error::too_large(format!(
                "with this write of collection {name} the transaction has {total} bytes; the store's limit is {limit}"
            )));
        }
        self.bytes_written = total;
        Ok(())
    }
}
