use bson::RawDocumentBuf;
use slate_query::Code;

use super::{call::Call, concern::Concerns, fields::missing, reply::Reply};
use crate::{Error, RenameTarget, Result, namespace};

/// `{renameCollection: "database.collection", to: "database.collection", dropTarget}`: the two may be in different databases.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let from = call.target.as_str().ok_or_else(|| call.fields.mistyped("renameCollection", call.target, "string"))?;
    let to = call.fields.string("to")?.ok_or_else(|| missing("renameCollection", "to"))?;
    let drops = call.fields.truth("dropTarget")?.unwrap_or_default();
    call.fields.truth("stayTemp")?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let (from, to) = (stored(from)?, stored(to)?);
    let target = if drops { RenameTarget::DropExisting } else { RenameTarget::MustNotExist };
    call.at.scope.database("renameCollection")?;
    call.at.scope.write(&common.call, |writer| writer.rename_collection(&from, &to, target))?;
    Reply::default().finish()
}

/// Returns the stored name of a collection that is given by its full name.
fn stored(full: &str) -> Result<String> {
    let invalid = || Error::invalid(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{full}'"));
    let (database, collection) = full.split_once('.').ok_or_else(invalid)?;
    namespace::check_database(database)?;
    if collection.starts_with('$') {
        return Err(invalid());
    }
    let stored = namespace::stored(database, collection);
    namespace::check(&stored)?;
    Ok(stored.into_owned())
}
