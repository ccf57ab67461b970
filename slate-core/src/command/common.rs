use std::time::Duration;

use slate_query::{Code, number::Number};

use super::{
    concern::{self, Concerns},
    fields::Fields,
    number,
};
use crate::{Error, Result, call_context::CallContext, interrupt::Interrupt};

/// The fields that every command accepts.
#[derive(Debug)]
pub(super) struct Common {
    /// The database name for the namespaces in replies; MongoDB's default if none is given.
    pub(super) database: String,
    pub(super) call: CallContext,
}

impl Common {
    /// Takes the fields that every command accepts.
    ///
    /// # Errors
    /// Fails on wrong types and ranges as MongoDB does. Rejects session transactions as a standalone server does.
    pub(super) fn take(fields: &mut Fields<'_>, concerns: Concerns) -> Result<Self> {
        concern::take(fields, concerns)?;
        let database = fields.string("$db")?.unwrap_or("test").to_owned();
        let call = CallContext::within(max_time(fields)?);
        // Accepted and ignored: they concern logs, drivers and the choice of a server.
        fields.any("comment");
        for name in ["lsid", "$clusterTime", "$readPreference", "$queryOptions", "$client"] {
            fields.object(name)?;
        }
        for name in ["apiStrict", "apiDeprecationErrors", "mayBypassWriteBlocking", "rawData", "help"] {
            fields.truth(name)?;
        }
        if let Some(version) = fields.string("apiVersion")?
            && version != "1"
        {
            let message = format!("unknown API version '{version}'");
            return Err(Error::invalid(Code(322), message).at("apiVersion"));
        }
        if fields.integer("txnNumber")?.is_some() {
            let message = "Transaction numbers are only allowed on a replica set member or mongos";
            return Err(Error::invalid(Code::ILLEGAL_OPERATION, message).at("txnNumber"));
        }
        for name in ["autocommit", "startTransaction"] {
            if fields.boolean(name)?.is_some() {
                let message = "a command in a transaction needs a transaction number";
                return Err(Error::invalid(Code::INVALID_OPTIONS, message).at(name));
            }
        }
        Ok(Self { database, call })
    }

    /// Returns a collection's full name.
    /// Returns the context of a write with these options and the time limit of the command.
    pub(super) fn within(self, options: CallContext) -> CallContext {
        options.with_interrupt(self.call.interrupt)
    }

    pub(super) fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.database)
    }
}

/// Takes the time limit of the command. Zero means no limit.
fn max_time(fields: &mut Fields<'_>) -> Result<Interrupt> {
    let mut interrupt = Interrupt::default();
    for name in ["maxTimeMS", "maxTimeMSOpOnly"] {
        let Some(value) = fields.value(name) else { continue };
        let millis = Number::of(value).ok_or_else(|| {
            Error::invalid(Code::BAD_VALUE, format!("{name} must be a number, not {}", value.kind().alias())).at(name)
        })?;
        let millis = number::exact_i64(name, millis)?;
        let out_of_range = || Error::invalid(Code::BAD_VALUE, format!("{millis} is out of range for {name}")).at(name);
        let millis =
            i32::try_from(millis).ok().and_then(|millis| u64::try_from(millis).ok()).ok_or_else(out_of_range)?;
        if millis > 0 {
            interrupt.deadline(Duration::from_millis(millis));
        }
    }
    Ok(interrupt)
}
