//! The express path of `find`: a lookup of one document by its `_id`, the most frequent command of all.
//!
//! It serves a command whose filter is one plain value of `_id`, and whose other fields neither change the result nor open a cursor. It
//! reads the record by its key, without parsing a filter, and writes the document into the reply. Every other command, and every invalid one,
//! takes the common path, which returns the same reply: without this file, only lookups would be slower.

use bson::RawDocumentBuf;
use slate_query::raw::{Doc, Value, validate};

use super::{
    call::CommandScope,
    concern,
    databases::shown_error,
    reply::{Filled, Reply},
};
use crate::{
    Result,
    entry::only_id,
    metrics::{Examined, PlanSummary},
    namespace, stage_names,
};

/// The usual size of a reply without its document in bytes, with the times that a server appends and the head of its message. A long collection name
/// exceeds it.
const AROUND: usize = 300;

/// Fields for sessions, drivers and the choice of a server, which must be documents. Every read sees the latest commit, whatever its read concern.
const WITHOUT_EFFECT: [&[u8]; 4] = [b"$clusterTime", b"$readPreference", b"lsid", b"readConcern"];

/// A `find` by `_id`.
struct Lookup<'c> {
    collection: &'c str,
    database: Option<&'c str>,
    id: Value<'c>,
}

/// Executes a lookup by `_id`; `None` if the common path must execute the command.
pub(super) fn run(at: CommandScope<'_>) -> Option<Result<RawDocumentBuf>> {
    let is_cancelled = || at.running.token.is_some_and(|token| token.is_cancelled());
    let lookup = Lookup::read(at.command).filter(|_| !is_cancelled())?;
    let name = lookup.database.or(at.database);
    if name.is_some_and(|name| namespace::check_database(name).is_err()) {
        return None;
    }
    let stored = match name {
        Some(name) => stage_names::stored(name, lookup.collection).ok()?,
        None => lookup.collection.to_owned(),
    };
    let mut found = None;
    let mut visitor = |document: Doc<'_>| {
        let reply = found.insert(Reply::with_capacity(document.bytes().len() + AROUND));
        append_cursor(reply, &stored, Some(document))
    };
    let is_found = match at.scope.look_up(&stored, lookup.id, &mut visitor, at.running.budget) {
        Ok(is_found) => is_found?,
        Err(error) => return Some(Err(shown_error(error, name))),
    };
    let examined = Examined::lookup(u64::from(is_found));
    at.running.activity.iter().for_each(|activity| activity.read(PlanSummary::LOOKUP, examined));
    let Some(reply) = found else {
        let mut reply = Reply::with_capacity(AROUND);
        return Some(append_cursor(&mut reply, &stored, None).and_then(|()| reply.finish()));
    };
    Some(reply.finish())
}

/// Appends a cursor that has ended, with this document or none.
fn append_cursor(reply: &mut Reply, stored: &str, document: Option<Doc<'_>>) -> Result<()> {
    let fill = |batch: &mut Reply| {
        document.iter().for_each(|document| batch.document("0", *document));
        Ok(Filled { id: 0, token: None })
    };
    reply.cursor("firstBatch", &namespace::full(stored), fill)
}

impl<'c> Lookup<'c> {
    fn read(command: Doc<'c>) -> Option<Self> {
        let collection = command.first("find")?.as_str()?;
        let (mut filter, mut database, mut limit, mut batch, mut is_single) = (None, None, None, None, None);
        let mut are_there = [false; WITHOUT_EFFECT.len()];
        // The length and the terminator; each element adds its type, its name with its terminator, and its value.
        let mut length = 5;
        for (place, element) in command.elements().enumerate() {
            let (name, value) = (element.name, element.value);
            length += 2 + name.len() + value.bytes().len();
            let is_repeated = match name {
                b"find" => place > 0,
                b"filter" => filter.replace(value).is_some(),
                b"$db" => database.replace(value.as_str()?).is_some(),
                b"limit" => limit.replace(integer(value).filter(|limit| *limit >= 0)?).is_some(),
                b"batchSize" => batch.replace(integer(value).filter(|batch| *batch > 0)?).is_some(),
                b"singleBatch" => is_single.replace(value.as_bool()?).is_some(),
                name => {
                    let place = WITHOUT_EFFECT.iter().position(|known| *known == name)?;
                    let document = validate(value.as_document()?.bytes()).ok()?;
                    match name {
                        b"readConcern" => drop(concern::read_concern(document).ok()?),
                        b"$readPreference" => concern::read_preference(document).ok()?,
                        _ => {}
                    }
                    std::mem::replace(are_there.get_mut(place)?, true)
                }
            };
            // A repeated field is an error.
            if is_repeated {
                return None;
            }
        }
        // A full batch leaves the cursor open, except with `limit: 1` or `singleBatch`.
        let stays_open = batch == Some(1) && limit != Some(1) && is_single != Some(true);
        // The iterator ends at a damaged element: the lengths then differ.
        if stays_open || length != command.bytes().len() {
            return None;
        }
        let id = only_id(validate(filter?.as_document()?.bytes()).ok()?)?;
        Some(Self { collection, database, id })
    }
}

fn integer(value: Value<'_>) -> Option<i64> {
    value.as_i32().map(i64::from).or_else(|| value.as_i64())
}
