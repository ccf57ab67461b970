use slate_core::{CancelToken, CopyProgress, Database, ErrorKind, ExistingCollections};

use crate::{
    failure::{Failure, Result},
    output, progress,
};

/// Copies all collections of one commit, with their indexes, into a database that has none of them. Draws the progress.
/// Returns what was copied, for people.
///
/// # Errors
/// Fails before anything is written if a collection exists in both. Fails if reading or writing fails.
pub(super) fn copy(from: &Database, to: &Database, cancel: &CancelToken) -> Result<String> {
    let mut shown: Option<(String, indicatif::ProgressBar)> = None;
    let draw = |at: &CopyProgress<'_>| {
        let label = at.index.map_or_else(|| at.collection.to_owned(), |index| format!("{}.{index}", at.collection));
        if shown.as_ref().is_none_or(|(drawn, _)| *drawn != label) {
            let bar = progress::documents(Some(at.total), &label);
            if let Some((_, before)) = shown.replace((label, bar)) {
                before.finish_and_clear();
            }
        }
        if let Some((_, bar)) = &shown {
            bar.set_position(at.documents);
        }
    };
    let copied = from.copy_to(to).existing(ExistingCollections::Keep).cancel(cancel.clone()).progress(draw).run();
    if let Some((_, bar)) = &shown {
        bar.finish_and_clear();
    }
    let copied = copied.map_err(|error| match error.kind() {
        ErrorKind::Exists => Failure::from(error).hint("copy to a new database, or drop the collection first"),
        _ => error.into(),
    })?;
    let collections = output::counted(copied.collections, "collection", "collections");
    let views = match copied.views {
        0 => String::new(),
        views => format!(" and {}", output::counted(views, "view", "views")),
    };
    Ok(format!("{collections} with {}{views}", output::documents(copied.documents)))
}
