use slate_query::{collation::Collation, raw::Doc};

use crate::{Error, Result};

/// Refuses a collation that is not the simple one, of a collection or an index.
pub(super) fn refuse(collation: Option<Doc<'_>>) -> Result<()> {
    match collation.map(Collation::parse).transpose()?.flatten() {
        Some(_) => Err(Error::unsupported_by_name("collation").at("collation")),
        None => Ok(()),
    }
}
