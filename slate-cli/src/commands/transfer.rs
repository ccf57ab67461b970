use std::{
    fs,
    path::{Path, PathBuf},
};

use slate_core::{
    Access, CancelToken, CopyProgress, CopyResult, CopyTo, Database, ErrorKind, ExistingCollections, VerifyFinding,
};
use tempfile::TempDir;

use crate::{
    failure::{Failure, Result},
    output, progress,
    session::Session,
};

/// The files of a database that a copy creates.
pub(super) struct NewFiles(Option<PathBuf>);

impl NewFiles {
    /// Notes whether a database exists at this URL already, because only the files of a new one may be removed.
    pub(super) fn at(url: &str) -> Self {
        let has_files = |scheme: &str| !matches!(scheme, "memory" | "tikv");
        let path = url.split_once(':').filter(|(scheme, _)| has_files(scheme)).map(|(_, path)| Path::new(path));
        Self(path.filter(|path| path.symlink_metadata().is_err()).map(Path::to_owned))
    }

    /// Whether the copy creates the database's files. Otherwise only the collections that it made may be removed.
    pub(super) fn is_new(&self) -> bool {
        self.0.is_some()
    }

    /// Closes the database after a failed copy, and removes it if it was new. `made` are the collections that the copy made under their
    /// own names.
    pub(super) fn remove(self, database: Database, made: &[&str]) {
        // Another program can have created the database just before it was opened here. Then it has collections that this copy did
        // not make. A database on a full disk may not be readable.
        let names = database.list_collection_names().unwrap_or_default();
        let is_own = names.iter().all(|name| name.starts_with(UNFINISHED) || made.contains(&name.as_str()));
        // The failure of the copy is the one to report.
        let _ = database.close();
        if let Some(path) = self.0.filter(|_| is_own) {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// The prefix of the target's collections until the copy is complete.
pub(super) const UNFINISHED: &str = "slate.copy.";

/// Copies all collections of one commit, with their indexes, into a database that has none of them. Draws the progress.
/// Returns a description of what was copied, such as `1 collection with 5 documents`.
///
/// # Errors
/// Fails before anything is written if a collection exists in both. Fails if reading or writing fails.
pub(super) fn copy(from: &Database, to: &Database, cancel: &CancelToken) -> Result<String> {
    drawn(from, to, cancel, |copy| copy.run().map(|copied| described(&copied)))
}

/// Copies like [`copy`] what can be read, and returns also what cannot.
///
/// # Errors
/// Fails as [`copy`] does, but on damage only if the list of collections cannot be read.
pub(super) fn salvage(from: &Database, to: &Database, cancel: &CancelToken) -> Result<(String, Vec<VerifyFinding>)> {
    drawn(from, to, cancel, |copy| copy.salvage().map(|(copied, report)| (described(&copied), report.findings)))
}

/// A copy of what can be read of a damaged database: a database of the same store in a temporary folder, which is deleted with this
/// value.
pub(super) struct Salvaged {
    pub(super) database: Database,
    /// The damaged parts, which the copy lacks.
    pub(super) damages: Vec<VerifyFinding>,
    // Declared after the database, so that the database is closed before the folder is deleted.
    _folder: TempDir,
}

impl Salvaged {
    /// Copies a database as [`salvage`] does.
    ///
    /// # Errors
    /// Fails as [`salvage`] does, and if the store has no files.
    pub(super) fn of(from: &Database, session: &Session) -> Result<Self> {
        let store = from.store();
        if !matches!(store, "redb" | "rocksdb") {
            return Err(Failure::usage(FILES_ONLY));
        }
        let folder = tempfile::Builder::new().prefix("slate-export-").tempdir()?;
        let database =
            session.open_other(&format!("{store}:{}", folder.path().join("saved").display()), Access::CreateOrOpen)?;
        let (_, damages) = salvage(from, &database, &session.cancel())?;
        Ok(Self { database, damages, _folder: folder })
    }
}

/// Why `--skip-damaged` is refused for a server and for a store without files.
pub(super) const FILES_ONLY: &str = "--skip-damaged reads the files of a database";

/// Makes a copy while its progress is drawn.
fn drawn<R>(
    from: &Database,
    to: &Database,
    cancel: &CancelToken,
    run: impl FnOnce(CopyTo<'_>) -> slate_core::Result<R>,
) -> Result<R> {
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
    let copy = from.copy_to(to).existing(ExistingCollections::Keep).cancel(cancel.clone());
    let copied = run(copy.progress(draw));
    if let Some((_, bar)) = &shown {
        bar.finish_and_clear();
    }
    copied.map_err(|error| match error.kind() {
        ErrorKind::Exists => Failure::from(error).hint("copy to a new database, or drop the collection first"),
        _ => error.into(),
    })
}

fn described(copied: &CopyResult) -> String {
    summary(copied.collections, copied.views, copied.documents)
}

/// Returns a description of what was copied, such as `1 collection with 5 documents`.
pub(super) fn summary(collections: u64, views: u64, documents: u64) -> String {
    let collections = output::counted(collections, "collection", "collections");
    let views = match views {
        0 => String::new(),
        views => format!(" and {}", output::counted(views, "view", "views")),
    };
    format!("{collections} with {}{views}", output::documents(documents))
}
