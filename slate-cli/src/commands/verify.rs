use std::io::Write;

use bson::{RawDocumentBuf, doc};
use clap::Args;
use indicatif::ProgressBar;
use slate_core::{Access, Database, VerifyReport};

use super::{Run, definitions};
use crate::{
    endpoint::{Endpoint, number},
    failure::{Exit, Result},
    output, progress,
    session::{self, Session},
};

/// Check documents and indexes for damage
///
/// Exits with 3 if there is any.
#[derive(Clone, Debug, Args)]
pub(crate) struct Verify {
    /// The collection; otherwise all
    collection: Option<String>,
}

impl Verify {
    /// Lets a server check its collections.
    fn run_on(&self, target: &Endpoint, session: &mut Session) -> Result<Exit> {
        let (mut documents, mut faults) = (0, 0);
        for name in definitions::one_or_all(target, self.collection.as_ref())? {
            let reply = target.run(&doc! { "validate": &name, "full": true })?;
            documents += number(&reply, "nrecords");
            for error in reply.get_array("errors").into_iter().flatten() {
                faults += 1;
                let error = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                writeln!(session.out(), "{name}: {error}")?;
            }
        }
        let counted = output::counted(faults, "fault", "faults");
        writeln!(session.out(), "{}, {counted}", output::documents(documents))?;
        Ok(if faults == 0 { Exit::Success } else { Exit::Incomplete })
    }
}

impl Run for Verify {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(database) => database,
            target @ Endpoint::Server(_) => return self.run_on(&target, session),
        };
        if let Some(name) = &self.collection {
            session::existing(&database, name)?;
        }
        let report = check(&database, self.collection.as_deref(), session)?;
        print(&report, session)
    }
}

/// Verifies one collection, or the database with all of them, and draws the progress.
pub(super) fn check(database: &Database, collection: Option<&str>, session: &Session) -> Result<VerifyReport> {
    let mut bar: Option<(String, ProgressBar)> = None;
    let verify = match collection {
        Some(name) => database.collection::<RawDocumentBuf>(name).verify(),
        None => database.verify(),
    };
    let report = verify.cancel(session.cancel()).progress(|progress| {
        let name = progress.collection;
        if bar.as_ref().is_none_or(|(shown, _)| shown != name) {
            finish(bar.take());
            // The stored number itself may be damaged.
            let number = database.collection::<RawDocumentBuf>(name).estimated_document_count().ok();
            bar = Some((name.to_owned(), progress::documents(number, name)));
        }
        if let Some((_, bar)) = &bar {
            bar.set_position(progress.documents);
        }
    });
    let report = report.run();
    finish(bar);
    Ok(report?)
}

/// Removes the bar of a collection.
fn finish(bar: Option<(String, ProgressBar)>) {
    if let Some((_, bar)) = bar {
        bar.finish_and_clear();
    }
}

/// Prints a report. Returns [`Exit::Incomplete`] if there is damage.
pub(super) fn print(report: &VerifyReport, session: &mut Session) -> Result<Exit> {
    let out = session.out();
    for finding in &report.findings {
        writeln!(out, "{finding}")?;
    }
    let VerifyReport { documents, entries, finding_count, .. } = report;
    let entries = output::counted(*entries, "index entry", "index entries");
    let faults = output::counted(*finding_count, "fault", "faults");
    writeln!(out, "{}, {entries}, {faults}", output::documents(*documents))?;
    Ok(if report.is_sound() { Exit::Success } else { Exit::Incomplete })
}
