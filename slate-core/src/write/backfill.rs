//! Builds an index in many transactions, so that writers of the collection continue and a crash loses little work.
//!
//! The first commit declares the index and conflicts with every writer that began earlier; writers that begin later
//! maintain the index's entries. Then rounds read the documents in key order, put their entries, and store their
//! progress. A round guards the documents that it reads, and a writer guards the entries that it does not find; of a
//! round and a writer that meet at one document, the second to commit conflicts. The round that reads the last document
//! makes the index ready in the same commit.

use std::sync::Arc;

use slate_store::{Bounds, Guard, Keyspace, Transaction, View};

use super::{
    Session,
    build::{IndexSpec, ROUND, existing, find_same, parse},
    changes::put_many,
    entries::EntryMaker,
};
use crate::{
    Result,
    catalog::{BuildPosition, CollectionInfo, IndexInfo},
};

/// How the creation of an index starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildStart {
    /// The index exists already.
    There(String),
    /// The collection is so small that one transaction creates the index.
    Small,
    /// The index is declared, now or before a crash, and has to be filled in rounds.
    Declared { name: String, keyspace: Keyspace },
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildRound {
    /// This many documents have been read, and more remain.
    More(u64),
    /// The index is ready, after this many documents.
    Ready(u64),
    /// The index was dropped in the meantime.
    Gone,
}

impl<T: Transaction> Session<T> {
    /// Declares an index that is filled in rounds.
    pub(crate) fn begin_build(&mut self, name: &str, spec: &IndexSpec) -> Result<BuildStart> {
        self.check_open()?;
        let wanted = parse(spec)?;
        let collection = self.written_or_created(name)?;
        if let Some(there) = existing(&collection, &wanted, spec)? {
            return Ok(BuildStart::There(there));
        }
        if let Some(unfinished) = find_same(&collection.building, &wanted)? {
            return Ok(BuildStart::Declared { name: unfinished.name.to_string(), keyspace: unfinished.keyspace });
        }
        let cap = ROUND as u64;
        let count = self.view().count(collection.records, Bounds::ALL, |counted| counted <= cap)?;
        if count.is_some_and(|count| count <= cap) {
            return Ok(BuildStart::Small);
        }
        let index = IndexInfo { keyspace: self.allocate()?, ..wanted };
        let start = BuildStart::Declared { name: index.name.to_string(), keyspace: index.keyspace };
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.push(Arc::new(index));
        self.define(defined)?;
        Ok(start)
    }

    /// Reads up to `limit` more documents and puts their entries.
    pub(crate) fn build_round(&mut self, keyspace: Keyspace, limit: usize) -> Result<BuildRound> {
        self.check_open()?;
        let mut position = BuildPosition::load(&self.view(), keyspace)?;
        let Some((collection, at)) = self.find_build(keyspace) else {
            let ready = |index: &Arc<IndexInfo>| index.keyspace == keyspace;
            let is_ready = self.catalog().collections().any(|collection| collection.indexes.iter().any(ready));
            return Ok(if is_ready { BuildRound::Ready(position.read) } else { BuildRound::Gone });
        };
        self.written(&collection.name)?;
        let Some(index) = collection.maintained_at(at) else { return Ok(BuildRound::Gone) };
        let mut maker = EntryMaker::default();
        let after = Some(position.after.as_slice()).filter(|key| !key.is_empty());
        let round = self.read_round(&collection, (at, index), after, limit, &mut maker)?;
        for key in &round.keys {
            self.transaction.guard(collection.records, key, Guard::Shared)?;
        }
        self.wrote_entries();
        put_many(&mut self.transaction, keyspace, &round.entries())?;
        self.note(&collection.name, maker.take_notes());
        position.read += round.documents;
        match round.last {
            Some(last) => {
                position.after = last;
                position.store(&mut self.transaction, keyspace)?;
                Ok(BuildRound::More(position.read))
            }
            None => {
                BuildPosition::forget(&mut self.transaction, keyspace)?;
                self.finish_build(&collection.name, keyspace)?;
                Ok(BuildRound::Ready(position.read))
            }
        }
    }

    /// Makes the index available to queries. Writers that still see it as being built maintain its entries all the
    /// same, and do not conflict.
    fn finish_build(&mut self, name: &str, keyspace: Keyspace) -> Result<()> {
        let Some(collection) = self.catalog().collection(name) else { return Ok(()) };
        let mut defined = CollectionInfo::clone(collection);
        let Some(at) = defined.building.iter().position(|index| index.keyspace == keyspace) else { return Ok(()) };
        let index = defined.building.remove(at);
        defined.indexes.push(index);
        self.redescribe(defined);
        Ok(())
    }

    /// Removes an index that is being built.
    pub(crate) fn abandon_build(&mut self, keyspace: Keyspace) -> Result<()> {
        self.check_open()?;
        let Some((collection, _)) = self.find_build(keyspace) else { return Ok(()) };
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.retain(|index| index.keyspace != keyspace);
        BuildPosition::forget(&mut self.transaction, keyspace)?;
        self.doom(keyspace)?;
        self.define(defined)
    }

    /// Returns the collection of an index that is being built, which may have been renamed, and the index's position.
    fn find_build(&self, keyspace: Keyspace) -> Option<(Arc<CollectionInfo>, usize)> {
        self.catalog().collections().find_map(|collection| {
            let at = collection.building.iter().position(|index| index.keyspace == keyspace)?;
            Some((Arc::clone(collection), collection.indexes.len() + at))
        })
    }
}
