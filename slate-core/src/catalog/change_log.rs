use std::time::Duration;

use slate_query::raw::{Doc, Kind, Value, Writer};
use slate_store::{Keyspace, Transaction, TransactionExt as _, View};

use super::{
    CATALOG, damaged,
    index::{keyspace, put_keyspace},
    keys,
};
use crate::{Result, options::ChangeLog};

/// Where the log of changes is, and its limits. It exists while changes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLogInfo {
    pub(crate) keyspace: Keyspace,
    /// Distinguishes this log from others, so that a position in another one is not taken for a position in this one.
    pub(crate) id: u32,
    /// The time at which logging began: seconds in the upper half, a counter in the lower half. Nothing before it is in the log.
    pub(crate) since: u64,
    pub(crate) limits: ChangeLog,
}

impl ChangeLogInfo {
    /// `None` if the document does not describe a log.
    pub(super) fn read(doc: Doc<'_>) -> Option<Self> {
        let number = |name: &str| doc.get(name).and_then(Value::as_i64).and_then(|number| u64::try_from(number).ok());
        let id = u32::try_from(number("id")?).ok()?;
        let limits = ChangeLog::new().bytes(number("bytes")?).age(Duration::from_secs(number("age")?));
        let since = doc.get("since").and_then(Value::as_timestamp)?;
        Some(Self { keyspace: keyspace(doc, "keyspace")?, id, since, limits })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        put_keyspace(&mut writer, "keyspace", self.keyspace);
        let numbers = [("id", self.id.into()), ("bytes", self.limits.bytes), ("age", self.limits.age.as_secs())];
        for (name, number) in numbers {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            writer.append(name.as_bytes(), Value::new(Kind::Int64, &number.to_le_bytes()));
        }
        writer.append(b"since", Value::new(Kind::Timestamp, &self.since.to_le_bytes()));
        writer.finish()
    }
}

/// Returns the version and the number of the last event that was deleted from the log; `None` before the first deletion.
pub(crate) fn trimmed_changes(view: &impl View, log: &ChangeLogInfo) -> Result<Option<(u64, u32)>> {
    let stored = view.get(CATALOG, &keys::trimmed(log.keyspace), |stored| {
        let (version, event) = stored.split_first_chunk()?;
        Some((u64::from_be_bytes(*version), u32::from_be_bytes(event.try_into().ok()?)))
    })?;
    stored.map(|stored| stored.ok_or_else(|| damaged("how far the log of changes is trimmed"))).transpose()
}

/// Records up to which event the log is deleted, in the transaction that deletes the events.
pub(crate) fn set_trimmed_changes(
    transaction: &mut impl Transaction,
    log: &ChangeLogInfo,
    (version, event): (u64, u32),
) -> Result<()> {
    let stored = [version.to_be_bytes().as_slice(), &event.to_be_bytes()].concat();
    Ok(transaction.put(CATALOG, &keys::trimmed(log.keyspace), &stored)?)
}
