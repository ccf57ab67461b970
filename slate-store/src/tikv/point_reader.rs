use super::{
    read::Values,
    snapshot::{Sent, TikvSnapshot},
    value::Stored,
};
use crate::{Keyspace, PointReader, Result};

/// A reader of single keys: each load is one round trip, and one more for each large value.
pub struct TikvPointReader {
    snapshot: TikvSnapshot,
    loaded: Vec<Option<Stored>>,
    /// The load that was requested ahead, and its stored keys.
    ahead: Option<(Vec<Vec<u8>>, Sent<Values>)>,
}

impl TikvPointReader {
    pub(super) fn new(snapshot: TikvSnapshot) -> Self {
        Self { snapshot, loaded: Vec::new(), ahead: None }
    }

    /// Returns the stored key of each key; `None` for a key above the maximum length: it cannot exist, and its read could damage a node.
    fn stored_at(&self, keys: &[(Keyspace, &[u8])]) -> Vec<Option<Vec<u8>>> {
        let layout = &self.snapshot.cluster.layout;
        let exists = |key: &[u8]| key.len() <= super::MAX_KEY;
        keys.iter().map(|(keyspace, key)| exists(key).then(|| layout.entry(*keyspace, key))).collect()
    }
}

/// Returns the stored keys that a load reads.
fn wanted(at: &[Option<Vec<u8>>]) -> Vec<Vec<u8>> {
    let mut wanted: Vec<Vec<u8>> = at.iter().flatten().cloned().collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

impl PointReader for TikvPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.loaded.clear();
        let ahead = self.ahead.take();
        let at = self.stored_at(keys);
        let wanted = wanted(&at);
        if wanted.is_empty() {
            self.loaded.resize(keys.len(), None);
            return Ok(());
        }
        let values = match ahead.filter(|(sent, _)| *sent == wanted) {
            Some((_, sent)) => self.snapshot.receive_many(sent)?,
            None => self.snapshot.read_many(wanted)?,
        };
        let mut loaded = Vec::with_capacity(keys.len());
        for ((keyspace, key), at) in keys.iter().zip(at) {
            let stored = at.and_then(|at| values.get(&at)).map(|bytes| Stored::read(bytes.clone())).transpose()?;
            loaded.push(stored.map(|stored| self.snapshot.assemble(*keyspace, key, stored)).transpose()?);
        }
        self.loaded = loaded;
        Ok(())
    }

    fn load_ahead(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        let wanted = wanted(&self.stored_at(keys));
        if !wanted.is_empty() {
            let sent = self.snapshot.send_many(wanted.clone());
            self.ahead = Some((wanted, sent));
        }
        Ok(true)
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index)?.as_ref()?.inline()
    }
}
