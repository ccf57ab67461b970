use std::{collections::BTreeSet, io::Write};

use bson::RawDocumentBuf;
use clap::Args;
use slate_core::{Database, Index, VerifyFindingKind};

use super::{Run, verify};
use crate::{
    failure::{Exit, Result},
    output,
    session::Session,
};

/// Complete what a crash interrupted, and rebuild damaged indexes
///
/// Opens the database for writing, which completes or undoes an interrupted commit; finishes interrupted index builds; then
/// checks everything as `verify` does, and drops and creates again each index with a fault. Damaged documents are listed and
/// left as they are. If the file itself is damaged, nothing is changed: `copy --skip-damaged` writes what can be read to a new database, and
/// `export --skip-damaged` to files.
#[derive(Clone, Debug, Args)]
pub(crate) struct Repair {}

/// What to do with a damaged file.
const SALVAGE: &str =
    "`copy --skip-damaged NEW-URL` writes what can be read to a new database, `export --skip-damaged` to files";

impl Run for Repair {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = session.write()?;
        let resumed = database.resume_index_builds()?;
        if resumed > 0 {
            writeln!(
                session.out(),
                "{} finished",
                output::counted(resumed, "interrupted index build", "interrupted index builds")
            )?;
        }
        let report = verify::check(&database, None, session)?;
        if report.findings.iter().any(|finding| finding.kind == VerifyFindingKind::DamagedStorage) {
            // The store cannot free or replace a damaged page, whatever is rebuilt.
            let exit = verify::print(&report, session)?;
            writeln!(session.out(), "nothing was changed; {SALVAGE}")?;
            return Ok(exit);
        }
        let findings = report.findings.iter();
        let damaged = findings.filter_map(|finding| Some((finding.collection.clone(), finding.index.clone()?)));
        let damaged: BTreeSet<(String, String)> = damaged.collect();
        if damaged.is_empty() {
            return verify::print(&report, session);
        }
        for (collection, index) in &damaged {
            rebuild(&database, collection, index)?;
            writeln!(session.out(), "{collection}: index {index} rebuilt")?;
        }
        verify::print(&verify::check(&database, None, session)?, session)
    }
}

fn rebuild(database: &Database, collection: &str, name: &str) -> Result<()> {
    let collection = database.collection::<RawDocumentBuf>(collection);
    let Some(index) = collection.list_indexes()?.into_iter().find(|index| index.name == name) else { return Ok(()) };
    collection.drop_index(name)?;
    collection.create_index(Index::from(&index)).run()?;
    Ok(())
}
