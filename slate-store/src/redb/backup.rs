use std::{ops::Bound, path::Path};

use ::redb::{Database, ReadOnlyTable, ReadableTable, Table, TableHandle};

use super::{
    RedbSnapshot, error, format,
    open::create_in,
    table::{self, Bytes},
};
use crate::{Access, Result, files::Draft};

/// Cache size for the copy, which is written once and sequentially.
const CACHE: usize = 16 << 20;

/// Copies a snapshot into a new file, table by table. redb has no backup function, and its file must not be copied
/// during writes.
pub(super) fn write(snapshot: &RedbSnapshot, to: &Path) -> Result<()> {
    let draft = Draft::of(to)?;
    let mut builder = Database::builder();
    let opening = |error| error::opening(error, Some(to), Access::CreateOrOpen);
    let copy = create_in(draft.path(), builder.set_cache_size(CACHE)).map_err(opening)?;
    let transaction = copy.begin_write().map_err(error::storage)?;
    format::write_mark(&transaction)?;
    let source = snapshot.transaction();
    for handle in source.list_tables().map_err(error::storage)? {
        if format::is_mark(handle.name()) {
            continue;
        }
        let definition = table::definition(handle.name());
        let from = source.open_table(definition).map_err(error::storage)?;
        copy_entries(&from, &mut transaction.open_table(definition).map_err(error::storage)?)?;
    }
    transaction.commit().map_err(error::committing)?;
    // Closes the copy first, because closing writes the data for a fast open.
    drop(copy);
    draft.publish()
}

fn copy_entries(from: &ReadOnlyTable<Bytes, Bytes>, into: &mut Table<'_, Bytes, Bytes>) -> Result<()> {
    let mut end = into.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(error::storage)?;
    for entry in from.iter().map_err(error::storage)? {
        let (key, value) = entry.map_err(error::storage)?;
        end.insert_before(key.value(), value.value()).map_err(error::storage)?;
    }
    end.close().map_err(error::storage)
}
