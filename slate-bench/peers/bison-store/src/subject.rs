use std::path::Path;

use bison_db::{Db, DbOptions, DocId, Document, SyncPolicy, Value};
use slate_bench_harness::{About, Result};
use slate_store_bench::{Documents, Durability, Feature, Payload, Small};

/// bison-db, opened as in its own benchmarks.
pub struct Bison(Db);

impl Documents for Bison {
    type Id = DocId;

    fn about() -> About {
        About {
            name: "bison-db".into(),
            version: "1".into(),
            settings: "SyncPolicy::Manual, Always in rows that say so".into(),
        }
    }

    fn lacks() -> &'static [Feature] {
        &[]
    }

    fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let policy = match durability {
            Durability::Deferred => SyncPolicy::Manual,
            Durability::Sync => SyncPolicy::Always,
        };
        Ok(Self(Db::open_with(folder.join("data.bison"), DbOptions::new().sync(policy))?))
    }

    fn insert(&mut self, document: &Small) -> Result<DocId> {
        Ok(self.0.insert(made(document))?)
    }

    fn insert_key(&mut self, key: i64) -> Result<DocId> {
        let mut document = Document::new();
        document.set("key", key);
        Ok(self.0.insert(document)?)
    }

    fn insert_payloads(&mut self, payloads: &[Payload]) -> Result<Vec<DocId>> {
        let insert = |payload: &Payload| {
            let mut document = Document::new();
            document.set("payload", Value::Bytes(payload.to_vec()));
            Ok(self.0.insert(document)?)
        };
        payloads.iter().map(insert).collect()
    }

    fn get(&mut self, id: &DocId) -> Result<i64> {
        let document = self.0.get(*id)?.ok_or("the document does not exist")?;
        Ok(document.get("id").and_then(Value::as_int).ok_or("the field does not exist")?)
    }

    fn get_payload(&mut self, id: &DocId) -> Result<u8> {
        let document = self.0.get(*id)?.ok_or("the document does not exist")?;
        let payload = document.get("payload").and_then(Value::as_bytes).ok_or("the payload does not exist")?;
        Ok(payload.first().copied().ok_or("the payload is empty")?)
    }

    fn update(&mut self, id: &DocId, document: &Small) -> Result<()> {
        if self.0.update(*id, made(document))? { Ok(()) } else { Err("the document does not exist".into()) }
    }

    fn create_index(&mut self, field: &str) -> Result<()> {
        Ok(self.0.create_index(field)?)
    }

    fn find_ids(&mut self, field: &str, value: i64) -> Result<u64> {
        Ok(u64::try_from(self.0.find(field, &Value::from(value))?.len())?)
    }

    fn find_documents(&mut self, field: &str, value: i64) -> Result<i64> {
        let mut sum = 0;
        for id in self.0.find(field, &Value::from(value))? {
            let document = self.0.get(id)?.ok_or("the document does not exist")?;
            sum += document.get(field).and_then(Value::as_int).ok_or("the field does not exist")?;
        }
        Ok(sum)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

fn made(small: &Small) -> Document {
    let mut document = Document::new();
    let tags = Value::Array(small.tags.map(Value::from).to_vec());
    document
        .set("id", small.id)
        .set("name", small.name)
        .set("active", small.active)
        .set("score", small.score)
        .set("tags", tags);
    document
}
