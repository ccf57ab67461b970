//! `OP_QUERY`, which only the first `hello` of a driver still uses.

use bson::{RawDocumentBuf, cstr};

use super::{HEADER, WireError, reader::Reader, request::RequestKind};

/// Decodes a query of the pseudo-collection `$cmd`, whose document is a command.
pub(super) fn decode(frame: &[u8]) -> Result<(RequestKind, RawDocumentBuf), WireError> {
    let mut reader = Reader::new(frame);
    reader.take(HEADER, "header")?;
    reader.int("flags")?;
    let collection = reader.text("collection")?;
    reader.int("documents to skip")?;
    reader.int("documents to return")?;
    let document = reader.document("query")?.to_vec();
    let mut command = RawDocumentBuf::from_bytes(document).map_err(|_| WireError::Bson("query"))?;
    // mongosh and old drivers wrap the command to add a read preference.
    let wrapped =
        ["$query", "query"].into_iter().find_map(|name| command.get_document(name).ok()).map(ToOwned::to_owned);
    if let Some(wrapped) = wrapped {
        command = wrapped;
    }
    let full = String::from_utf8_lossy(collection);
    let database = full.strip_suffix(".$cmd").ok_or(WireError::OpCode(super::OP_QUERY))?;
    if !matches!(command.get("$db"), Ok(Some(_))) {
        command.append(cstr!("$db"), database);
    }
    Ok((RequestKind::Query, command))
}
