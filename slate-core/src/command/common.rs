use std::time::{Duration, Instant};

use slate_query::{
    Code,
    number::Number,
    raw::{Kind, Value, validate, validate_depth},
};

use super::{
    call::CommandScope,
    concern::{self, Concerns},
    cursor::{CursorOwner, session_id},
    fields::Fields,
    number,
};
use crate::{
    Error, Result, api::aggregate::NO_COLLECTION, call::Scope, call_context::CallContext, error::shown_collection,
    namespace,
};

/// The fields that every command accepts.
#[derive(Debug)]
pub(super) struct Common {
    /// The database name for the namespaces in replies; MongoDB's default if none is given.
    pub(super) database: String,
    pub(super) call: CallContext,
    /// The time limit, which applies to each batch of a cursor separately.
    pub(super) max_time: Option<Duration>,
    /// When the command began.
    pub(super) began: Instant,
    /// The id of the caller's session.
    pub(super) session: Option<Vec<u8>>,
    /// The number of the session's transaction, if the command belongs to one.
    pub(super) transaction: Option<i64>,
    /// Whether the command is a retryable write: it has a transaction number, but is in no transaction.
    pub(super) is_retryable: bool,
    /// The owner of the cursor that the command opens.
    pub(super) owner: Option<CursorOwner>,
}

impl Common {
    /// Reads the fields that every command accepts.
    ///
    /// # Errors
    /// Fails on wrong types and ranges as MongoDB does. Outside of an open transaction and a snapshot, rejects a session's transactions as a
    /// standalone server does.
    pub(super) fn take(fields: &mut Fields<'_>, concerns: Concerns, at: CommandScope<'_>) -> Result<Self> {
        concern::take(fields, concerns)?;
        let database = fields.string("$db")?.or(at.database).unwrap_or(namespace::DEFAULT_DATABASE).to_owned();
        let max_time = max_time(fields)?;
        let mut call = CallContext::default();
        let end = max_time.and_then(|within| at.running.began.checked_add(within));
        call.interrupt.end_at([end, at.running.end].into_iter().flatten().min());
        at.running.token.iter().for_each(|&token| call.cancel(token.clone()));
        call.activity = at.running.activity.cloned();
        at.running.budget.iter().for_each(|budget| call.interrupt.limit_to(budget));
        let session = fields.object("lsid")?.and_then(session_id);
        // Accepted and ignored: they concern logs, drivers and the choice of a server. A comment is validated because code that logs it may recurse
        // over it.
        if let Some(comment) = fields.any("comment") {
            let checked = match comment.as_container() {
                Some(document) => validate(document.bytes()).map(drop),
                None => validate_depth(comment),
            };
            checked.map_err(|error| error.at("comment"))?;
        }
        for name in ["$clusterTime", "$queryOptions", "$client"] {
            fields.object(name)?;
        }
        fields.object("$readPreference")?.map_or(Ok(()), concern::read_preference)?;
        if let Some(key) = fields.value("clientOperationKey").filter(|key| key.kind() != Kind::Binary) {
            return Err(fields.mistyped("clientOperationKey", key, "binData"));
        }
        for name in ["apiStrict", "apiDeprecationErrors", "mayBypassWriteBlocking", "rawData", "help"] {
            fields.truth(name)?;
        }
        if let Some(version) = fields.string("apiVersion")?
            && version != "1"
        {
            let message = format!("unknown API version '{version}'");
            return Err(Error::invalid(Code::API_VERSION_ERROR, message).at("apiVersion"));
        }
        // A snapshot counts as a transaction that only reads.
        let is_outside = matches!(at.scope, Scope::Database(_));
        let number = fields.integer("txnNumber")?;
        if number.is_some() && is_outside {
            let message = "Transaction numbers are only allowed on a replica set member or mongos";
            return Err(Error::invalid(Code::ILLEGAL_OPERATION, message).at("txnNumber"));
        }
        let autocommit = fields.boolean("autocommit")?;
        for (name, given) in [("autocommit", autocommit), ("startTransaction", fields.boolean("startTransaction")?)] {
            if given.is_some() && is_outside {
                let message = "a command in a transaction needs a transaction number";
                return Err(Error::invalid(Code::INVALID_OPTIONS, message).at(name));
            }
        }
        let transaction = number.filter(|_| autocommit == Some(false));
        Ok(Self {
            database,
            call,
            max_time,
            began: at.running.began,
            session,
            transaction,
            is_retryable: number.is_some() && transaction.is_none(),
            owner: at.owner.cloned(),
        })
    }

    /// Returns these options of a write with the limits and the activity of the command.
    pub(super) fn within(&self, options: CallContext) -> CallContext {
        CallContext { activity: self.call.activity.clone(), ..options.with_interrupt(self.call.interrupt.clone()) }
    }

    /// Returns the full name of a collection that the client names.
    pub(super) fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.database)
    }

    /// Returns the full name of a stored collection; for a pipeline without one, that of [`NO_COLLECTION`].
    pub(super) fn full_name(&self, stored: &str) -> String {
        match shown_collection(stored) {
            _ if stored == NO_COLLECTION => self.namespace(stored),
            own if own.len() == stored.len() => self.namespace(own),
            full => full.into(),
        }
    }
}

/// Reads the time limit of the command.
fn max_time(fields: &mut Fields<'_>) -> Result<Option<Duration>> {
    let mut limit = None;
    for name in TIME_LIMITS {
        let Some(value) = fields.value(name) else { continue };
        limit = duration(name, value)?.or(limit);
    }
    Ok(limit)
}

/// Returns the time limit of a command; `None` also for an invalid one.
#[cfg(feature = "async")]
pub(super) fn time_limit(command: slate_query::raw::Doc<'_>) -> Option<Duration> {
    let limit = |name: &str| duration(name, command.get(name)?).ok()?;
    TIME_LIMITS.into_iter().filter_map(limit).next_back()
}

/// The names of the time limit. If both are given and not zero, the second applies.
const TIME_LIMITS: [&str; 2] = ["maxTimeMS", "maxTimeMSOpOnly"];

/// Parses a time limit in milliseconds. Zero means no limit and returns `None`.
fn duration(name: &str, value: Value<'_>) -> Result<Option<Duration>> {
    let millis = Number::of(value).ok_or_else(|| {
        Error::invalid(Code::BAD_VALUE, format!("{name} must be a number, not {}", value.kind().alias())).at(name)
    })?;
    let millis = number::exact_i64(name, millis)?;
    let out_of_range = || Error::invalid(Code::BAD_VALUE, format!("{millis} is out of range for {name}")).at(name);
    let millis = i32::try_from(millis).ok().and_then(|millis| u64::try_from(millis).ok()).ok_or_else(out_of_range)?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}
