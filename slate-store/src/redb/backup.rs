use std::{
    ops::{Bound, ControlFlow},
    path::Path,
};

use ::redb::{Database, ReadOnlyTable, ReadableTable, ReadableTableMetadata, TableHandle, WriteTransaction};

use super::{
    RedbSnapshot, error, format,
    open::create_in,
    table::{self, Bytes},
};
use crate::{Access, BackupProgress, Result, files::Draft, store::PROGRESS_ENTRIES};

/// Cache size in bytes for the copy, which is written once and sequentially.
const CACHE: usize = 16 << 20;

/// Bytes of entries after which the copy is committed, because redb holds in memory the number of each page that a transaction
/// has written.
const PART: usize = 256 << 20;

/// Copies a snapshot into a new file, table by table. redb has no backup function, and its file must not be copied
/// during writes.
pub(super) fn write(snapshot: &RedbSnapshot, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
    let draft = Draft::of(to)?;
    let mut builder = Database::builder();
    let opening = |error| error::opening(error, Some(to), Access::CreateOrOpen);
    let copy = create_in(draft.path(), builder.set_cache_size(CACHE)).map_err(opening)?;
    let mut transaction = copy.begin_write().map_err(error::storage)?;
    format::write_mark(&transaction)?;
    let source = snapshot.transaction();
    let (mut names, mut all, mut copied) = (Vec::new(), 0, 0);
    for handle in source.list_tables().map_err(error::storage)? {
        if !format::is_mark(handle.name()) {
            let table = source.open_table(table::definition(handle.name())).map_err(error::storage)?;
            all += table.len().map_err(error::storage)?;
            names.push(handle.name().to_owned());
        }
    }
    let mut progress = || {
        copied += 1;
        if copied % PROGRESS_ENTRIES == 1 { progress(copied - 1, all) } else { ControlFlow::Continue(()) }
    };
    let mut part = 0;
    for name in names {
        let from = source.open_table(table::definition(&name)).map_err(error::storage)?;
        transaction = match copy_entries(&from, &copy, transaction, &name, &mut part, &mut progress)? {
            ControlFlow::Continue(transaction) => transaction,
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
    }
    transaction.commit().map_err(error::committing)?;
    // Closes the copy first, because closing writes the data for a fast open.
    drop(copy);
    draft.publish().map(ControlFlow::Continue)
}

/// Copies the entries of a table, and commits after each [`PART`]. Returns the transaction to continue with; `Break` if
/// `progress` breaks.
fn copy_entries(
    from: &ReadOnlyTable<Bytes, Bytes>,
    copy: &Database,
    mut transaction: WriteTransaction,
    name: &str,
    part: &mut usize,
    mut progress: impl FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<(), WriteTransaction>> {
    let mut entries = from.iter().map_err(error::storage)?;
    loop {
        let mut into = transaction.open_table(table::definition(name)).map_err(error::storage)?;
        let mut end = into.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(error::storage)?;
        while *part < PART
            && let Some(entry) = entries.next()
        {
            if progress().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let (key, value) = entry.map_err(error::storage)?;
            end.insert_before(key.value(), value.value()).map_err(error::storage)?;
            *part += key.value().len() + value.value().len();
        }
        end.close().map_err(error::storage)?;
        drop(into);
        if *part < PART {
            return Ok(ControlFlow::Continue(transaction));
        }
        transaction.commit().map_err(error::committing)?;
        transaction = copy.begin_write().map_err(error::storage)?;
        *part = 0;
    }
}
