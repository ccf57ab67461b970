use std::time::Duration;

use bson::{Binary, DateTime, RawDocument, RawDocumentBuf, cstr, rawdoc, spec::BinarySubtype};
use slate_core::aio;

use super::{SessionId, SessionState, Work};
use crate::{failure::Result, shared::Shared};

/// The latest work of a session, as a document of `config.transactions`: MongoDB's place for it.
///
/// ```text
/// { _id: lsid, txnNum, lastWriteDate, reply: binary }          a retryable write
/// { _id: lsid, txnNum, lastWriteDate, state: "committed" }     a transaction
/// ```
///
/// The reply is binary, because it may contain documents that cannot be stored as parts of others.
pub(crate) struct Record;

impl Record {
    /// Reads the record of a session that this run of the server has not yet seen.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) async fn load(shared: &Shared, id: SessionId, state: &mut SessionState) -> Result<()> {
        if state.is_loaded {
            return Ok(());
        }
        let find = rawdoc! {
            "find": "transactions",
            "$db": "config",
            "filter": { "_id": id.document() },
            "limit": 1,
            "singleBatch": true,
        };
        let reply = shared.commands.run(find).await?;
        state.is_loaded = true;
        let batch = reply.get_document("cursor")?.get_array("firstBatch")?;
        let first = batch.into_iter().next().transpose()?;
        if let Some(record) = first.as_ref().and_then(|record| record.as_document()) {
            state.number = record.get_i64("txnNum").ok();
            state.work = match record.get_binary("reply") {
                Ok(reply) => Work::Wrote(RawDocumentBuf::from_bytes(reply.bytes.to_vec())?),
                Err(_) => Work::Committed,
            };
        }
        Ok(())
    }

    /// Writes the record of a retryable write in the transaction of the write.
    ///
    /// # Errors
    /// Fails as a write of the library does.
    pub(crate) async fn write(within: &aio::Commands, id: SessionId, number: i64, reply: &RawDocument) -> Result<()> {
        let bytes = Binary { subtype: BinarySubtype::Generic, bytes: reply.as_bytes().to_vec() };
        Self::put(within, id, number, |record| record.append(cstr!("reply"), bytes)).await
    }

    /// Writes the record of a commit in its transaction.
    ///
    /// # Errors
    /// Fails as a write of the library does.
    pub(crate) async fn commit(within: &aio::Commands, id: SessionId, number: i64) -> Result<()> {
        Self::put(within, id, number, |record| record.append(cstr!("state"), "committed")).await
    }

    async fn put(
        within: &aio::Commands,
        id: SessionId,
        number: i64,
        fill: impl FnOnce(&mut RawDocumentBuf),
    ) -> Result<()> {
        let mut record = rawdoc! { "_id": id.document(), "txnNum": number, "lastWriteDate": DateTime::now() };
        fill(&mut record);
        let update = rawdoc! {
            "update": "transactions",
            "$db": "config",
            "updates": [{ "q": { "_id": id.document() }, "u": record, "upsert": true }],
        };
        let reply = within.run(update).await?;
        crate::data::first_write_error(&reply).map_or(Ok(()), Err)
    }

    /// Deletes the records of sessions that have ended. A failure is of no consequence: the next sweep repeats it.
    pub(crate) async fn delete_old(shared: &Shared, life: Duration) {
        let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
        let before = DateTime::from_millis(DateTime::now().timestamp_millis().saturating_sub(life));
        let delete = rawdoc! {
            "delete": "transactions",
            "$db": "config",
            "deletes": [{ "q": { "lastWriteDate": { "$lt": before } }, "limit": 0 }],
        };
        let _ = shared.commands.run(delete).await;
    }
}
