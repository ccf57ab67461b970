use std::{marker::PhantomData, path::Path};

use bson::{Binary, Bson, RawDocument, RawDocumentBuf, doc, oid::ObjectId, raw::CStr, rawdoc, spec::BinarySubtype};
use slate_bench_harness::{About, Result};
use slate_core::{Collection, Database, Index};

use super::Backend;
use crate::{Documents, Durability, Feature, Payload, Small};

/// A Slate collection.
pub struct SlateDocuments<B> {
    database: Database,
    documents: Collection<RawDocumentBuf>,
    /// The same collection with the service's own type.
    small: Collection<Small>,
    backend: PhantomData<B>,
}

impl<B: Backend> Documents for SlateDocuments<B> {
    type Id = ObjectId;

    fn about() -> About {
        let settings = "default settings; commits deferred unless a row says otherwise".into();
        About { name: B::NAME.into(), version: env!("CARGO_PKG_VERSION").into(), settings }
    }

    fn lacks() -> &'static [Feature] {
        B::LACKS
    }

    fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let durability = match durability {
            Durability::Deferred => slate_core::Durability::Deferred,
            Durability::Sync => slate_core::Durability::Sync,
        };
        let database = Database::builder(&B::url(folder)).durability(durability).open()?;
        let (documents, small) = (database.collection("documents"), database.collection("documents"));
        Ok(Self { database, documents, small, backend: PhantomData })
    }

    fn insert(&mut self, document: &Small) -> Result<ObjectId> {
        given(&self.small.insert_one(document)?)
    }

    fn insert_key(&mut self, key: i64) -> Result<ObjectId> {
        given(&self.documents.insert_one(&rawdoc! { "key": key })?)
    }

    fn insert_payloads(&mut self, payloads: &[Payload]) -> Result<Vec<ObjectId>> {
        let documents: Vec<_> = payloads
            .iter()
            .map(|payload| rawdoc! { "payload": Binary { subtype: BinarySubtype::Generic, bytes: payload.to_vec() } })
            .collect();
        self.documents.insert_many(&documents).run()?.inserted_ids.values().map(given).collect()
    }

    fn get(&mut self, id: &ObjectId) -> Result<i64> {
        let document = self.documents.find_by_id(*id)?.ok_or("the document does not exist")?;
        Ok(document.get_i64("id")?)
    }

    fn get_payload(&mut self, id: &ObjectId) -> Result<u8> {
        let document = self.documents.find_by_id(*id)?.ok_or("the document does not exist")?;
        Ok(document.get_binary("payload")?.bytes.first().copied().ok_or("the payload is empty")?)
    }

    fn update(&mut self, id: &ObjectId, document: &Small) -> Result<()> {
        match self.small.replace_one(rawdoc! { "_id": *id }, document).run()?.matched {
            1 => Ok(()),
            _ => Err("the document does not exist".into()),
        }
    }

    fn create_index(&mut self, field: &str) -> Result<()> {
        self.documents.create_index(Index::on(doc! { field: 1 })).run()?;
        Ok(())
    }

    /// Slate has no query for ids alone: this lends the documents and reads their `_id`s.
    fn find_ids(&mut self, field: &str, value: i64) -> Result<u64> {
        let mut found = 0;
        self.each(field, value, |document| {
            found += u64::from(document.get("_id")?.is_some());
            Ok(())
        })?;
        Ok(found)
    }

    fn find_documents(&mut self, field: &str, value: i64) -> Result<i64> {
        let mut sum = 0;
        self.each(field, value, |document| {
            sum += document.get_i64(field)?;
            Ok(())
        })?;
        Ok(sum)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.database.flush()?)
    }
}

/// Reads the generated `_id` of a document.
fn given(id: &Bson) -> Result<ObjectId> {
    Ok(id.as_object_id().ok_or("the document has no ObjectId")?)
}

impl<B: Backend> SlateDocuments<B> {
    fn each(&self, field: &str, value: i64, mut look: impl FnMut(&RawDocument) -> Result<()>) -> Result<()> {
        let mut filter = RawDocumentBuf::new();
        filter.append(<&CStr>::try_from(field)?, value);
        let mut rows = self.documents.find(filter).cursor()?;
        while rows.advance()? {
            look(&rows.current().ok_or("the cursor has no current row")?)?;
        }
        Ok(())
    }
}
