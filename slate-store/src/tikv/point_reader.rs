use super::{snapshot::TikvSnapshot, value::Stored};
use crate::{Keyspace, PointReader, Result};

/// A reader of single keys: each load is one round trip, and one more for each large value.
pub struct TikvPointReader {
    snapshot: TikvSnapshot,
    loaded: Vec<Option<Stored>>,
}

impl TikvPointReader {
    pub(super) fn new(snapshot: TikvSnapshot) -> Self {
        Self { snapshot, loaded: Vec::new() }
    }
}

impl PointReader for TikvPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.loaded.clear();
        let cluster = &self.snapshot.cluster;
        // A longer key cannot exist, and can damage a node.
        let exists = |key: &[u8]| key.len() <= super::MAX_KEY;
        let at: Vec<Option<Vec<u8>>> =
            keys.iter().map(|(keyspace, key)| exists(key).then(|| cluster.layout.entry(*keyspace, key))).collect();
        let mut wanted: Vec<Vec<u8>> = at.iter().flatten().cloned().collect();
        if wanted.is_empty() {
            self.loaded.resize(keys.len(), None);
            return Ok(());
        }
        wanted.sort_unstable();
        wanted.dedup();
        let values = self.snapshot.read_many(wanted)?;
        let mut loaded = Vec::with_capacity(keys.len());
        for ((keyspace, key), at) in keys.iter().zip(at) {
            let stored = at.and_then(|at| values.get(&at)).map(|bytes| Stored::read(bytes.clone())).transpose()?;
            loaded.push(stored.map(|stored| self.snapshot.assemble(*keyspace, key, stored)).transpose()?);
        }
        self.loaded = loaded;
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index)?.as_ref()?.inline()
    }
}
