//! Read and write concerns. A Slate database is a single node whose reads see one commit, so every level that a
//! standalone server supports is satisfied. Levels that need other nodes fail as on a standalone MongoDB.

use slate_query::{
    Code,
    raw::{Doc, Kind},
};

use super::{fields::Fields, number};
use crate::{Error, Result};

/// The read concern levels, sorted.
const LEVELS: [&str; 5] = ["available", "linearizable", "local", "majority", "snapshot"];

/// MongoDB's limit on the number of acknowledging nodes.
const MAX_NODES: i64 = 50;

/// Which concerns a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concerns {
    /// A read: any read concern, no write concern.
    Read,
    /// A change stream: the read concern `majority` or the default, and a write concern, as every pipeline.
    Majority,
    /// A pipeline that only reads: any read concern, and a write concern, which has no effect.
    Pipeline,
    /// A write: a write concern, and only the default read concern.
    Write,
    /// A pipeline that writes (`$out`, `$merge`): a write concern, and any read concern except `linearizable`.
    ReadAndWrite,
    /// Neither: no write concern, and only the default read concern.
    Neither,
}

/// Reads and checks the concerns of a command.
///
/// # Errors
/// Fails with `InvalidOptions` (72) for a concern that the command does not accept; with `TypeMismatch`, `BadValue` and
/// the like for invalid ones.
pub(super) fn take(fields: &mut Fields<'_>, concerns: Concerns) -> Result<()> {
    let (read, write) = (fields.object("readConcern")?, fields.object("writeConcern")?);
    if let Some(read) = read {
        let level = read_concern(read)?;
        let is_taken = match concerns {
            Concerns::Read | Concerns::Pipeline => true,
            Concerns::Majority => matches!(level, None | Some("majority")),
            Concerns::ReadAndWrite => level != Some("linearizable"),
            Concerns::Write | Concerns::Neither => matches!(level, None | Some("local")),
        };
        if !is_taken {
            return Err(not_taken("readConcern"));
        }
    }
    if let Some(write) = write {
        if matches!(concerns, Concerns::Read | Concerns::Neither) {
            return Err(not_taken("writeConcern"));
        }
        write_concern(write)?;
    }
    Ok(())
}

fn not_taken(name: &str) -> Error {
    Error::invalid(Code::INVALID_OPTIONS, format!("the command does not accept {name}")).at(name)
}

/// Returns the level of a read concern; `None` if it has none. Fails for an `afterClusterTime` or `atClusterTime`: a single node has no cluster time.
pub(super) fn read_concern(concern: Doc<'_>) -> Result<Option<&str>> {
    let mut fields = Fields::read("readConcern", concern)?;
    let level = fields.string("level")?;
    if let Some(level) = level.filter(|level| LEVELS.binary_search(level).is_err()) {
        let message = format!("Enumeration value '{level}' for field 'readConcern.level' is not a valid value.");
        return Err(Error::invalid(Code::BAD_VALUE, message).at("level"));
    }
    for name in ["afterClusterTime", "atClusterTime"] {
        if let Some(time) = fields.value(name) {
            if time.kind() != Kind::Timestamp {
                return Err(fields.mistyped(name, time, "timestamp"));
            }
            // A standalone server has no cluster time to wait for.
            let (code, message) = if time.as_timestamp() == Some(0) {
                (Code::INVALID_OPTIONS, "the time of a read concern cannot be a null timestamp")
            } else {
                (Code::ILLEGAL_OPERATION, "a single node has no cluster time to read at")
            };
            return Err(Error::invalid(code, message).at(name));
        }
    }
    provenance(&mut fields)?;
    fields.finish()?;
    Ok(level)
}

/// Checks the `provenance` of a concern, which says where it comes from.
fn provenance(fields: &mut Fields<'_>) -> Result<()> {
    match fields.string("provenance")? {
        None | Some("clientSupplied" | "customDefault" | "getLastErrorDefaults" | "implicitDefault") => Ok(()),
        Some(other) => {
            let message = format!("Enumeration value '{other}' for field 'provenance' is not a valid value.");
            Err(Error::invalid(Code::BAD_VALUE, message).at("provenance"))
        }
    }
}

/// Checks a `$readPreference`. It has no effect: there is one member.
///
/// # Errors
/// Fails with MongoDB's code for an unknown mode, for a staleness below 90 seconds, and for tags or a staleness with the mode `primary`.
pub(super) fn read_preference(preference: Doc<'_>) -> Result<()> {
    let mut fields = Fields::read("$readPreference", preference)?;
    let refused = |message: String| Err(Error::invalid(Code::BAD_VALUE, message).at("$readPreference"));
    let is_primary = match fields.string("mode")? {
        None | Some("primary") => true,
        Some("nearest" | "primaryPreferred" | "secondary" | "secondaryPreferred") => false,
        Some(mode) => return refused(format!("Enumeration value '{mode}' for field 'mode' is not a valid value.")),
    };
    let tags = fields.objects("tags")?.unwrap_or_default();
    if is_primary && tags.iter().any(|tags| !tags.is_empty()) {
        return refused("Only empty tags are allowed with primary read preference".into());
    }
    match fields.integer("maxStalenessSeconds")?.unwrap_or_default() {
        0 => Ok(()),
        seconds if seconds < 0 => refused("maxStalenessSeconds must be a non-negative integer".into()),
        seconds if seconds < MIN_STALENESS => {
            let message = format!("maxStalenessSeconds value can not be less than {MIN_STALENESS}");
            Err(Error::invalid(Code(160), message).at("$readPreference"))
        }
        _ if is_primary => refused("maxStalenessSeconds can not be set for the primary mode".into()),
        _ => Ok(()),
    }
}

/// MongoDB's smallest `maxStalenessSeconds`.
const MIN_STALENESS: i64 = 90;

fn write_concern(concern: Doc<'_>) -> Result<()> {
    let mut fields = Fields::read("writeConcern", concern)?;
    let refused = |code, message: &str| Err(Error::invalid(code, message).at("writeConcern"));
    if let Some(w) = fields.value("w") {
        match w.as_str() {
            Some("majority") => {}
            Some(_) => return refused(Code::BAD_VALUE, "the only 'w' mode of a single node is 'majority'"),
            None => match number::to_i64(w) {
                Some(nodes) if !(0..=MAX_NODES).contains(&nodes) => {
                    return refused(Code::FAILED_TO_PARSE, "'w' is from 0 to 50");
                }
                Some(0 | 1) => {}
                Some(_) => return refused(Code::BAD_VALUE, "cannot use 'w' > 1 when a host is not replicated"),
                None => return refused(Code::FAILED_TO_PARSE, "'w' must be a number or a string"),
            },
        }
    }
    if fields.truth("j")? == Some(true) && fields.truth("fsync")? == Some(true) {
        return refused(Code::FAILED_TO_PARSE, "fsync and j options cannot be used together");
    }
    fields.truth("fsync")?;
    fields.integer("wtimeout")?;
    provenance(&mut fields)?;
    fields.finish()
}
