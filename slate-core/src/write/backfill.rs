//! An index built in many transactions, so that writers of its collection go on meanwhile and a crash loses little.
//!
//! The first commit declares the index. It conflicts with every writer that began before; those that begin later keep the
//! index's entries for what they write. Then rounds read the documents in the order of their keys, put their entries, and
//! note how far they have come. A round guards the documents it reads, and a writer the entries it does not find, so that
//! whichever commits second of two that met at one document conflicts. When a round has read the last document, the index
//! has every entry it should, and the same commit makes it ready.

use std::sync::Arc;

use slate_store::{Bounds, Estimate, Keyspace, Transaction, View};

use super::{
    Session,
    build::{IndexSpec, ROUND, existing, find_same, parse},
    entries::EntryMaker,
};
use crate::{
    Result,
    catalog::{BuildPosition, CollectionInfo, IndexInfo},
};

/// How the creation of an index begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildStart {
    /// It is there already.
    There(String),
    /// There is so little to read that it is created as well in one transaction.
    Small,
    /// It is declared, now or before a crash, and is to be filled in rounds.
    Declared { name: String, keyspace: Keyspace },
}

/// How far a round has brought an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildRound {
    /// So many documents have been read, and there are more.
    More(u64),
    /// It is ready, after so many documents.
    Ready(u64),
    /// Somebody dropped it.
    Gone,
}

impl<T: Transaction> Session<T> {
    /// Declares an index that is to be filled in rounds.
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
        if matches!(self.view().estimate(collection.records, Bounds::ALL, cap)?, Estimate::Exact(_)) {
            return Ok(BuildStart::Small);
        }
        let index = IndexInfo { keyspace: self.allocate()?, ..wanted };
        let start = BuildStart::Declared { name: index.name.to_string(), keyspace: index.keyspace };
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.push(Arc::new(index));
        self.define(defined)?;
        Ok(start)
    }

    /// Reads so many documents more, and puts their entries.
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
            self.transaction.guard(collection.records, key)?;
        }
        self.wrote_entries();
        self.transaction.put_many(keyspace, &round.entries())?;
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

    /// Makes the index one that questions are answered by. Writers who still take it for one that is being built keep its
    /// entries all the same, and need not conflict.
    fn finish_build(&mut self, name: &str, keyspace: Keyspace) -> Result<()> {
        let Some(collection) = self.catalog().collection(name) else { return Ok(()) };
        let mut defined = CollectionInfo::clone(collection);
        let Some(at) = defined.building.iter().position(|index| index.keyspace == keyspace) else { return Ok(()) };
        let index = defined.building.remove(at);
        defined.indexes.push(index);
        self.redescribe(defined);
        Ok(())
    }

    /// Gives up an index that is being built; nothing is left of it.
    pub(crate) fn abandon_build(&mut self, keyspace: Keyspace) -> Result<()> {
        self.check_open()?;
        let Some((collection, _)) = self.find_build(keyspace) else { return Ok(()) };
        let mut defined = CollectionInfo::clone(&collection);
        defined.building.retain(|index| index.keyspace != keyspace);
        BuildPosition::forget(&mut self.transaction, keyspace)?;
        self.doom(keyspace)?;
        self.define(defined)
    }

    /// The collection that an index is being built for, whatever its name is by now, and the index's place in it.
    fn find_build(&self, keyspace: Keyspace) -> Option<(Arc<CollectionInfo>, usize)> {
        self.catalog().collections().find_map(|collection| {
            let at = collection.building.iter().position(|index| index.keyspace == keyspace)?;
            Some((Arc::clone(collection), collection.indexes.len() + at))
        })
    }
}
