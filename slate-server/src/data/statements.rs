//! The statements of retryable writes. A client numbers them (`stmtId`, `stmtIds`); the record of a transaction number says which of them were executed,
//! by one or several commands:
//!
//! ```text
//! { writes: [{ command, ids: [from, to, …], new, upserted: [{ id, _id }, …], reply }, …] }
//! ```
//!
//! A statement that failed is not recorded, so a repetition executes it. A `bulkWrite` is recorded as a whole with its failed operations, and a
//! repetition gets its reply.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use bson::{Bson, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use crate::{
    auth::needs::is_true,
    command::Command,
    failure::{Code, Failure, Result},
};

/// Maximum number of statements of a command. The library refuses more.
const MAX_STATEMENTS: usize = 100_000;

/// Maximum length of a record, in bytes, to which another command adds statements.
const MAX_RECORD: usize = 48 << 20;

/// The statements of a command, by their ids.
pub(super) struct Statements<'c> {
    command: &'c Command,
    /// The field with the statements; `None` for a `findAndModify`, which is one statement.
    field: Option<&'static str>,
    ids: Vec<i32>,
}

/// What the record of a transaction number says about a command with that number.
pub(super) enum Recorded {
    /// All statements were executed, with this reply.
    All(RawDocumentBuf),
    /// The statements at these positions were not executed.
    AllBut(Vec<usize>),
}

/// One of the commands in a record.
struct Write<'r> {
    command: &'r str,
    /// The ids of the executed statements.
    ids: Vec<Range<i32>>,
    document: &'r RawDocument,
    reply: &'r RawDocument,
}

impl<'c> Statements<'c> {
    /// Reads the ids of a command's statements; counts from 0 if it has none. The library refuses another number of ids than statements.
    ///
    /// # Errors
    /// Fails if an id is no integer of 32 bits or the last one of these.
    pub(super) fn of(command: &'c Command) -> Result<Self> {
        let field = match &*command.name {
            "insert" => Some("documents"),
            "update" => Some("updates"),
            "delete" => Some("deletes"),
            "bulkWrite" => Some("ops"),
            _ => None,
        };
        let array = |name: &str| Ok::<_, Failure>(command.get(name)?.and_then(RawBsonRef::as_array));
        let count = match field {
            Some(field) => array(field)?.map_or(0, |all| all.into_iter().take(MAX_STATEMENTS).count()),
            None => 1,
        };
        let id_of = |value| integer(value).ok_or_else(|| Failure::mistyped("stmtId", "an integer of 32 bits"));
        let first = command.get("stmtId")?.map_or(Ok(0), id_of)?;
        let given = match array("stmtIds")? {
            Some(ids) => ids.into_iter().take(MAX_STATEMENTS).map(|id| id_of(id?)).collect::<Result<Vec<i32>>>()?,
            None => Vec::new(),
        };
        let end = i32::try_from(count).ok().and_then(|count| first.checked_add(count));
        let end = end.filter(|_| !given.contains(&i32::MAX));
        let end = end.ok_or_else(|| Failure::new(Code::INVALID_OPTIONS, "the ids of statements exceed 32 bits"))?;
        let ids = if given.len() == count { given } else { (first..end).collect() };
        Ok(Self { command, field, ids })
    }

    /// Returns the record of these statements and of those that `before` records, after a command that has executed the statements at `positions`
    /// with this reply.
    pub(super) fn record(
        &self,
        before: Option<&RawDocument>,
        positions: &[usize],
        reply: &RawDocument,
    ) -> Result<RawDocumentBuf> {
        let failed: HashSet<usize> = errors(reply).collect();
        let end = if self.is_ordered()? { failed.iter().min().copied() } else { None };
        let was_executed = |nth: &usize| end.is_none_or(|end| *nth < end) && !failed.contains(nth);
        let id_at = |nth: usize| positions.get(nth).and_then(|&position| self.ids.get(position)).copied();
        let mut ids: Vec<Range<i32>> = Vec::new();
        for id in (0..positions.len()).filter(was_executed).filter_map(id_at) {
            match ids.last_mut() {
                Some(range) if range.end == id => range.end = id.saturating_add(1),
                _ => ids.push(id..id.saturating_add(1)),
            }
        }
        if let Some(before) = before.filter(|_| ids.is_empty()) {
            return Ok(before.to_owned());
        }
        let mut upserted = RawArrayBuf::new();
        for one in documents(reply.get_array("upserted").ok()) {
            if let (Some(id), Some(value)) = (position(one).and_then(id_at), one.get("_id")?) {
                let mut entry = rawdoc! { "id": id };
                entry.append(cstr!("_id"), value);
                upserted.push(entry);
            }
        }
        let mut writes =
            before.and_then(|before| before.get_array("writes").ok()).map_or_else(RawArrayBuf::new, ToOwned::to_owned);
        writes.push(rawdoc! {
            "command": &*self.command.name,
            "ids": ids.iter().flat_map(|range| [range.start, range.end]).collect::<RawArrayBuf>(),
            "new": self.returns_new()?,
            "upserted": upserted,
            "reply": reply.to_owned(),
        });
        if before.is_some() && writes.as_bytes().len() > MAX_RECORD {
            let message = format!("the record of the statements with this txnNumber exceeds {MAX_RECORD} bytes");
            return Err(Failure::new(Code::OBJECT_TOO_LARGE, message));
        }
        Ok(rawdoc! { "writes": writes })
    }

    /// Returns what a record says about the statements.
    ///
    /// # Errors
    /// Fails with MongoDB's code if one of them was executed by another kind of command.
    pub(super) fn look_up(&self, record: &RawDocument) -> Result<Recorded> {
        let writes: Vec<Write<'_>> = documents(record.get_array("writes").ok()).filter_map(Write::read).collect();
        let mut ranges: Vec<(&Range<i32>, &Write<'_>)> =
            writes.iter().flat_map(|write| write.ids.iter().map(move |range| (range, write))).collect();
        ranges.sort_by_key(|(range, _)| range.start);
        let of_id = |id: i32| {
            let (range, write) = ranges.get(ranges.partition_point(|(range, _)| range.start <= id).checked_sub(1)?)?;
            range.contains(&id).then_some(*write)
        };
        let mut missing = Vec::new();
        for (position, &id) in self.ids.iter().enumerate() {
            match of_id(id) {
                Some(write) => self.check(write)?,
                None => missing.push(position),
            }
        }
        let all = |write: &&Write<'_>| write.ids.iter().cloned().flatten().eq(self.ids.iter().copied());
        if let Some(write) = writes.iter().find(all) {
            return Ok(Recorded::All(write.reply.to_owned()));
        }
        if missing.len() < self.ids.len() && matches!(self.field, None | Some("ops")) {
            return Err(Failure::not_implemented("a bulkWrite of which a part was executed"));
        }
        if missing.is_empty() {
            return self.merged(record, &missing, None).map(Recorded::All);
        }
        Ok(Recorded::AllBut(missing))
    }

    /// Fails if the statement was executed by a command that is not compatible with this one.
    fn check(&self, write: &Write<'_>) -> Result<()> {
        let command = &*self.command.name;
        let is_find_and_modify = |name: &str| name.eq_ignore_ascii_case("findAndModify");
        let truth = |name: &str| Ok::<_, Failure>(self.command.get(name)?.is_some_and(is_true));
        let code = if is_find_and_modify(write.command) && is_find_and_modify(command) {
            let last = write.reply.get_document("lastErrorObject")?;
            match last.get_bool("updatedExisting") {
                Err(_) if !truth("remove")? => 40606,
                Ok(false) if last.get("upserted")?.is_some() && !truth("upsert")? => 40608,
                Ok(true) if write.document.get_bool("new").unwrap_or_default() != self.returns_new()? => {
                    if self.returns_new()? { 40611 } else { 40612 }
                }
                _ => return Ok(()),
            }
        } else if write.command == command {
            return Ok(());
        } else {
            match (write.command, command) {
                ("insert", _) if is_find_and_modify(command) => 40608,
                ("update", _) if is_find_and_modify(command) => 40612,
                ("delete", "update") => 40638,
                _ => 40606,
            }
        };
        let message = format!(
            "the retry of {command} is not compatible with the previous write {} of its transaction number",
            write.command
        );
        Err(Failure::located(code, message))
    }

    /// Returns the command with only the statements at these positions.
    pub(super) fn only(&self, positions: &[usize]) -> Result<RawDocumentBuf> {
        let mut copy = RawDocumentBuf::new();
        for element in self.command.for_library()?.iter() {
            let (name, value) = element?;
            match value {
                RawBsonRef::Array(all) if self.field.is_some_and(|field| name == field) => {
                    let mut some = RawArrayBuf::new();
                    let mut wanted = positions.iter().peekable();
                    for (position, statement) in all.into_iter().enumerate() {
                        if wanted.next_if_eq(&&position).is_some() {
                            some.push(statement?);
                        }
                    }
                    copy.append(name, some);
                }
                _ if name == "stmtIds" || name == "stmtId" => {}
                value => copy.append(name, value),
            }
        }
        Ok(copy)
    }

    /// Returns the reply for statements of which those at `positions` were executed now, with the reply `now`, and the others earlier. Of these, a
    /// command that is repeated with all its executed statements counts as in its reply. Each of the others counts as one that changed a document.
    pub(super) fn merged(
        &self,
        record: &RawDocument,
        positions: &[usize],
        now: Option<&RawDocument>,
    ) -> Result<RawDocumentBuf> {
        let place = |nth: usize| positions.get(nth).copied().unwrap_or(nth);
        let failed = now.into_iter().flat_map(errors).map(place).min().filter(|_| self.is_ordered().unwrap_or(true));
        let known: HashMap<i32, usize> = (0..failed.unwrap_or(self.ids.len()))
            .filter(|position| positions.binary_search(position).is_err())
            .filter_map(|position| Some((*self.ids.get(position)?, position)))
            .collect();
        let number = |reply: &RawDocument, name: &str| reply.get_i32(name).unwrap_or_default();
        let of_now = |name: &str| now.map_or(0, |now| number(now, name));
        let (mut n, mut modified) = (of_now("n"), of_now("nModified"));
        let mut upserted: Vec<(usize, Bson)> = Vec::new();
        for write in documents(record.get_array("writes").ok()).filter_map(Write::read) {
            let executed = write.ids.iter().cloned().flatten();
            let (repeated, all) = (executed.clone().filter(|id| known.contains_key(id)).count(), executed.count());
            let before = upserted.len();
            for one in documents(write.document.get_array("upserted").ok()) {
                if let (Some(position), Some(value)) = (known.get(&number(one, "id")), one.get("_id")?) {
                    upserted.push((*position, value.try_into()?));
                }
            }
            if repeated == all {
                n += number(write.reply, "n");
                modified += number(write.reply, "nModified");
            } else {
                n += count(repeated);
                modified += count(repeated) - count(upserted.len() - before);
            }
        }
        for one in now.into_iter().flat_map(|now| documents(now.get_array("upserted").ok())) {
            if let (Some(nth), Some(value)) = (position(one), one.get("_id")?) {
                upserted.push((place(nth), value.try_into()?));
            }
        }
        upserted.sort_by_key(|(position, _)| *position);
        let mut reply = rawdoc! { "n": n };
        if !upserted.is_empty() {
            let all: Vec<Bson> =
                upserted.into_iter().map(|(at, id)| bson::doc! { "index": count(at), "_id": id }.into()).collect();
            reply.append(cstr!("upserted"), RawArrayBuf::try_from(all)?);
        }
        if self.field == Some("updates") {
            reply.append(cstr!("nModified"), modified);
        }
        let mut refused = RawArrayBuf::new();
        for error in now.into_iter().flat_map(|now| documents(now.get_array("writeErrors").ok())) {
            let mut copy = RawDocumentBuf::new();
            for field in error {
                match field? {
                    (name, _) if name == "index" => {
                        copy.append(name, count(place(position(error).unwrap_or_default())))
                    }
                    (name, value) => copy.append(name, value),
                }
            }
            refused.push(copy);
        }
        if !refused.is_empty() {
            reply.append(cstr!("writeErrors"), refused);
        }
        reply.append(cstr!("ok"), 1.0);
        Ok(reply)
    }

    fn is_ordered(&self) -> Result<bool> {
        Ok(self.command.get("ordered")?.is_none_or(|ordered| ordered.as_bool() != Some(false)))
    }

    fn returns_new(&self) -> Result<bool> {
        Ok(self.command.get("new")?.is_some_and(is_true))
    }

    pub(super) fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the positions of all statements.
    pub(super) fn positions(&self) -> Vec<usize> {
        (0..self.count()).collect()
    }
}

impl<'r> Write<'r> {
    fn read(document: &'r RawDocument) -> Option<Self> {
        let mut ends = document.get_array("ids").ok()?.into_iter().filter_map(|end| end.ok()?.as_i32());
        let mut ids = Vec::new();
        while let (Some(start), Some(end)) = (ends.next(), ends.next()) {
            ids.push(start..end);
        }
        let (command, reply) = (document.get_str("command").ok()?, document.get_document("reply").ok()?);
        Some(Self { command, ids, document, reply })
    }
}

/// Returns the positions of the statements that failed.
fn errors(reply: &RawDocument) -> impl Iterator<Item = usize> {
    documents(reply.get_array("writeErrors").ok()).filter_map(position)
}

fn documents(array: Option<&RawArray>) -> impl Iterator<Item = &RawDocument> {
    array.into_iter().flatten().filter_map(|one| one.ok()?.as_document())
}

fn position(entry: &RawDocument) -> Option<usize> {
    usize::try_from(entry.get_i32("index").ok()?).ok()
}

fn integer(value: RawBsonRef<'_>) -> Option<i32> {
    value.as_i32().or_else(|| i32::try_from(value.as_i64()?).ok())
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
