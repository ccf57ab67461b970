//! Builds an index in many transactions, so that writers of the collection continue and a crash loses little work.
//!
//! The first commit declares the index and conflicts with every writer that began earlier; writers that begin later maintain the index's entries.
//! Then rounds read the documents in key order, put their entries, and store their progress. A round guards the documents that it reads, and a writer
//! guards the entries that it does not find. If a round and a writer access the same document, the second to commit conflicts. When the last document
//! is read, one more commit makes the index ready, together with the other indexes of the same call.

use std::{ops::ControlFlow, sync::Arc};

use slate_store::{Bounds, Keyspace, Transaction, View, crash_point};

use super::{
    Session,
    build::{IndexSpec, ROUND, existing, find_same, parse},
    definitions::Created,
};
use crate::{
    Result,
    call_context::CallContext,
    catalog::{BuildPosition, CollectionInfo, IndexInfo},
    changes::EventKind,
};

/// Bytes of entries, with their bookkeeping, after which a round ends: it bounds the memory of a round, and how long other writers wait for it.
const ROUND_BYTES: usize = 4 << 20;

/// How an index is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildSteps {
    /// In one transaction if the collection is small, else in rounds.
    Any,
    /// In rounds.
    Rounds,
}

/// What the first step of an index creation found, which decides how the index is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildStart {
    /// The index exists already.
    Exists(String),
    /// The collection is so small that one transaction creates the index of this name.
    Small(String),
    /// The index has to be filled in rounds. It is declared: by this call, or by another one, which may be running or have crashed.
    Declared { name: String, keyspace: Keyspace, declared: Created },
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildRound {
    /// This many documents have been read, and more remain.
    More(u64),
    /// All documents have been read, this many.
    Filled(u64),
    /// The index was dropped in the meantime.
    Gone,
}

impl<T: Transaction> Session<T> {
    /// Declares an index that is filled in rounds, unless it exists, is declared already, or one transaction may and can create it.
    pub(crate) fn begin_build(&mut self, name: &str, spec: &IndexSpec, steps: BuildSteps) -> Result<BuildStart> {
        self.begin_call()?;
        let collection = self.written_or_new(name)?;
        let wanted = parse(spec, &collection)?;
        if let Some(there) = existing(&collection, &wanted, spec)? {
            self.define_if_new(&collection)?;
            return Ok(BuildStart::Exists(there));
        }
        if let Some(unfinished) = find_same(&collection.building, &wanted)? {
            let (name, keyspace) = (unfinished.name.to_string(), unfinished.keyspace);
            return Ok(BuildStart::Declared { name, keyspace, declared: Created::Exists });
        }
        if steps == BuildSteps::Any && self.fits_in_a_round(&collection)? {
            return Ok(BuildStart::Small(wanted.name.to_string()));
        }
        let index = IndexInfo { keyspace: self.allocate()?, ..wanted };
        let (name, keyspace) = (index.name.to_string(), index.keyspace);
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.push(Arc::new(index));
        self.define(&defined)?;
        Ok(BuildStart::Declared { name, keyspace, declared: Created::New })
    }

    /// Returns whether the collection is so small that one round would read it. An entry takes more space than the value that it
    /// indexes, but not by orders of magnitude. Where the store limits the number of keys, the entries can still be too many.
    fn fits_in_a_round(&self, collection: &CollectionInfo) -> Result<bool> {
        let (mut documents, mut bytes) = (0, 0);
        let exceeded = self.view().scan(collection.records, Bounds::ALL, |_, stored| {
            documents += 1;
            bytes += stored.len();
            if documents > ROUND || bytes > ROUND_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(exceeded.is_none())
    }

    /// Reads up to `limit` more documents, fewer if they have many entries, and puts their entries. Does nothing if the index is ready or was
    /// dropped.
    pub(crate) fn build_round(&mut self, keyspace: Keyspace, limit: usize, call: &CallContext) -> Result<BuildRound> {
        self.begin_call()?;
        let mut position = BuildPosition::load(&self.view(), keyspace)?;
        let Some((collection, at)) = self.find_build(keyspace) else {
            let is_ready = self.catalog().owner(keyspace).is_some();
            return Ok(if is_ready { BuildRound::Filled(position.read) } else { BuildRound::Gone });
        };
        self.written(&collection.name)?;
        let mut changes = self.change_set(&collection, call);
        let most_keys = self.most_keys_of_round();
        let after = Some(position.after.as_slice()).filter(|key| !key.is_empty());
        let last = self.read_records(&collection, after, call, |key, document| {
            changes.guards.push((collection.records, key.into()));
            changes.index(&collection, at, key, document)?;
            let is_full = changes.guards.len() >= limit || changes.size() >= ROUND_BYTES || changes.keys() >= most_keys;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        changes.check_unique(&self.view(), &collection)?;
        position.read += changes.guards.len() as u64;
        crash_point("in-build-round");
        self.apply(&collection, changes, call)?;
        self.wrote_entries();
        match last {
            Some(last) => {
                position.after = last;
                position.store(&mut self.transaction, keyspace)?;
                Ok(BuildRound::More(position.read))
            }
            // A build that is resumed repeats this round.
            None => Ok(BuildRound::Filled(position.read)),
        }
    }

    /// Makes filled indexes available to queries. Returns false, and changes nothing, if one of them was dropped in the meantime.
    pub(crate) fn finish_builds(&mut self, keyspaces: &[Keyspace]) -> Result<bool> {
        self.begin_call()?;
        if keyspaces.iter().any(|keyspace| self.catalog().owner(*keyspace).is_none()) {
            return Ok(false);
        }
        keyspaces.iter().try_for_each(|keyspace| self.finish_build(*keyspace))?;
        Ok(true)
    }

    /// Makes an index available to queries, unless another call has done so. Writers that still see it as being built maintain its
    /// entries all the same, and do not conflict.
    fn finish_build(&mut self, keyspace: Keyspace) -> Result<()> {
        let Some((collection, _)) = self.find_build(keyspace) else { return Ok(()) };
        self.written(&collection.name)?;
        BuildPosition::forget(&mut self.transaction, keyspace)?;
        let mut defined = CollectionInfo::clone(&collection);
        let Some(at) = defined.building.iter().position(|index| index.keyspace == keyspace) else { return Ok(()) };
        let index = defined.building.remove(at);
        defined.indexes.push(Arc::clone(&index));
        self.log_index(EventKind::CreateIndexes, &collection, &index);
        self.set_properties(defined);
        Ok(())
    }

    /// Removes an index that is being built, if it still is.
    pub(crate) fn abandon_build(&mut self, keyspace: Keyspace) -> Result<()> {
        self.begin_call()?;
        let Some((collection, _)) = self.find_build(keyspace) else { return Ok(()) };
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.retain(|index| index.keyspace != keyspace);
        BuildPosition::forget(&mut self.transaction, keyspace)?;
        self.unlink(keyspace)?;
        self.define(&defined)
    }

    /// Returns the collection of an index that is being built, which may have been renamed, and the index's position.
    fn find_build(&self, keyspace: Keyspace) -> Option<(Arc<CollectionInfo>, usize)> {
        let collection = self.catalog().owner(keyspace)?;
        let at = collection.building.iter().position(|index| index.keyspace == keyspace)?;
        Some((Arc::clone(collection), collection.indexes.len() + at))
    }
}
