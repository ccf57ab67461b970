use std::time::Duration;

use bson::{Binary, DateTime, RawDocument, RawDocumentBuf, cstr, rawdoc, spec::BinarySubtype};

use super::{SessionId, SessionState, Work};
use crate::{
    failure::{Code, Failure, Result},
    shared::Shared,
};

/// Maximum length in bytes of a part of a record of statements: well below the limit of a document.
const MAX_PART: usize = 12 << 20;

/// The outcome of a session's latest transaction number, as a document of `config.transactions`, as in MongoDB.
///
/// ```text
/// { _id: lsid, txnNum, lastWriteDate, writes: 1, reply: binary, parts }    retryable writes: their number, and the record of their statements
/// { _id: { id: lsid.id, part: 1… }, …, reply: binary }                     the rest of a long one
/// { _id: lsid, txnNum, lastWriteDate, state: "committed" }                 a transaction
/// ```
///
/// The record of the statements (`data::statements`) has their replies. It is stored as binary, because a reply may contain documents that cannot be
/// stored as parts of others. With a document of 16 MiB it exceeds the limit of a document, so it is divided.
pub(crate) struct Record;

impl Record {
    /// The error code (`DuplicateKey`) if another process has written a record with this number or a later one.
    pub(crate) const EXISTS: i32 = 11_000;

    /// Reads the record of a session, if this run of the server has not read it. Ignores a record that is older than the state.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) async fn load(shared: &Shared, id: SessionId, state: &mut SessionState) -> Result<()> {
        if state.is_loaded {
            return Ok(());
        }
        if let Some(record) = Self::find(shared, id.document()).await? {
            let number = record.get_i64("txnNum").ok();
            if number < state.number {
                state.is_loaded = true;
                return Ok(());
            }
            let work = match record.get_binary("reply") {
                Ok(first) => {
                    let mut reply = first.bytes.to_vec();
                    for part in 1..=record.get_i32("parts").unwrap_or_default() {
                        let found = Self::find(shared, Self::part_id(id, part)).await?;
                        let found = found.filter(|found| found.get_i64("txnNum").ok() == number);
                        let lost = || {
                            Failure::new(Code::TRANSACTION_TOO_OLD, "a part of the recorded reply is no longer known")
                        };
                        reply.extend_from_slice(found.ok_or_else(lost)?.get_binary("reply")?.bytes);
                    }
                    Work::Wrote(RawDocumentBuf::from_bytes(reply)?)
                }
                Err(_) => Work::Committed,
            };
            (state.number, state.work) = (number, work);
        }
        state.is_loaded = true;
        Ok(())
    }

    async fn find(shared: &Shared, id: RawDocumentBuf) -> Result<Option<RawDocumentBuf>> {
        let find = rawdoc! {
            "find": "transactions", "$db": "config", "filter": { "_id": id }, "limit": 1, "singleBatch": true,
        };
        let reply = shared.commands.run(find).await?;
        let first = reply.get_document("cursor")?.get_array("firstBatch")?.into_iter().next().transpose()?;
        Ok(first.and_then(|record| record.as_document()).map(ToOwned::to_owned))
    }

    fn part_id(id: SessionId, part: i32) -> RawDocumentBuf {
        let mut part_id = id.document();
        part_id.append(cstr!("part"), part);
        part_id
    }

    /// Returns the commands that write the record of retryable writes in place of the record `before`, which is of the same number; `None` if the number
    /// is new. They run in the transaction of the write. If another process has changed the record, they fail with [`EXISTS`](Self::EXISTS).
    pub(crate) fn of_writes(
        id: SessionId,
        number: i64,
        before: Option<&RawDocument>,
        record: &RawDocument,
    ) -> Vec<RawDocumentBuf> {
        let binary = |bytes: &[u8]| Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() };
        let writes = |record: &RawDocument| {
            let count = record.get_array("writes").map_or(0, |writes| writes.into_iter().count());
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        let earlier = || match before {
            // The parts of a record of this number are replaced, or new.
            Some(_) => rawdoc! { "$lte": number },
            None => rawdoc! { "$lt": number },
        };
        let (mut parts, mut commands) = (0, Vec::with_capacity(1));
        for bytes in record.as_bytes().chunks(MAX_PART).skip(1) {
            parts += 1;
            let (id, reply) = (Self::part_id(id, parts), binary(bytes));
            let filter = rawdoc! { "_id": id.clone(), "txnNum": earlier() };
            commands.push(Self::put(id, number, filter, |record| record.append(cstr!("reply"), reply)));
        }
        let filter = match before {
            Some(before) => rawdoc! { "_id": id.document(), "txnNum": number, "writes": writes(before) },
            None => rawdoc! { "_id": id.document(), "txnNum": earlier() },
        };
        let first = binary(record.as_bytes().chunks(MAX_PART).next().unwrap_or_default());
        commands.push(Self::put(id.document(), number, filter, |entry| {
            entry.append(cstr!("writes"), writes(record));
            entry.append(cstr!("reply"), first);
            if parts > 0 {
                entry.append(cstr!("parts"), parts);
            }
        }));
        commands
    }

    /// Returns the command that writes the record of a commit; it runs in the transaction that is committed.
    pub(crate) fn of_commit(id: SessionId, number: i64) -> RawDocumentBuf {
        let filter = rawdoc! { "_id": id.document(), "txnNum": { "$lt": number } };
        Self::put(id.document(), number, filter, |record| record.append(cstr!("state"), "committed"))
    }

    /// Returns the command that replaces the part of a record that `filter` matches. If there is another one, it can fail with
    /// [`EXISTS`](Self::EXISTS).
    fn put(
        id: RawDocumentBuf,
        number: i64,
        filter: RawDocumentBuf,
        fill: impl FnOnce(&mut RawDocumentBuf),
    ) -> RawDocumentBuf {
        let mut record = rawdoc! { "_id": id, "txnNum": number, "lastWriteDate": DateTime::now() };
        fill(&mut record);
        rawdoc! {
            "update": "transactions",
            "$db": "config",
            "updates": [{ "q": filter, "u": record, "upsert": true }],
        }
    }

    /// Deletes the records of sessions that have ended. Ignores failures: the next sweep tries again.
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
