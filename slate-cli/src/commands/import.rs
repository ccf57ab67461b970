use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use bson::RawDocumentBuf;
use clap::{Args, ValueHint, builder::PossibleValuesParser};
use slate_core::{Database, ErrorKind};

use super::Run;
use crate::{
    failure::{Exit, Failure, Result},
    input::{self, Input, Metadata, Options, Place, Source},
    json::BigIntegers,
    load::{Loader, Mode, Refused, Tally},
    session::Session,
};

/// Load files into collections
///
/// Reads JSON in every common form (a document per line, arrays, extended JSON, literals of MongoDB's shell), CSV and TSV with
/// a header, and BSON dumps; plain or compressed with gzip or zstd. A folder is read with all its files, as mongodump writes
/// them, and indexes are created from their metadata. A bad record costs only itself and is reported by place; the exit code
/// is then 3.
#[derive(Clone, Debug, Args)]
pub(crate) struct Import {
    /// Files, folders, or - for standard input
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// The collection; otherwise the file's name without its endings
    #[arg(long, short)]
    collection: Option<String>,
    /// The format; otherwise the file's ending or its first bytes say it
    #[arg(long, value_parser = PossibleValuesParser::new(input::names()))]
    format: Option<String>,
    /// What happens to a document whose _id exists
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Drop each collection first
    #[arg(long)]
    drop: bool,
    /// What an integer beyond 64 bits becomes
    #[arg(long, value_enum, default_value_t)]
    big_integers: BigIntegers,
    /// The columns of a table without a header: name,zip.string(),address.city
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Option<Vec<String>>,
    /// Create no indexes from mongodump's metadata
    #[arg(long)]
    no_indexes: bool,
}

/// Existing documents that are listed one by one; the total is always printed.
const EXISTING_LISTED: u64 = 10;

impl Run for Import {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let mut inputs = Vec::new();
        for path in &self.paths {
            let (found, ignored) = input::find(path).map_err(|error| Failure::file(path, error))?;
            for path in ignored {
                eprintln!("{}: not read, the format is unknown", path.display());
            }
            inputs.extend(found);
        }
        if inputs.is_empty() {
            return Err(Failure::new("there is nothing to import")
                .hint("a folder is read with its files that end with .json, .jsonl, .csv, .tsv or .bson"));
        }
        // What can be wrong with the command line is found before anything is written.
        for input in &inputs {
            self.collection(input)?;
        }
        let database = session.create()?;
        let (mut total, mut dropped) = (Tally::default(), Vec::new());
        for input in &inputs {
            let name = self.collection(input)?;
            if self.drop && !dropped.contains(&name) {
                database.collection::<RawDocumentBuf>(&name).drop()?;
                dropped.push(name.clone());
            }
            let tally = self.import(&database, input, &name, session)?;
            writeln!(session.out(), "{}: {tally}, collection {name}", shown(&input.path))?;
            session.sync()?;
            session.flush()?;
            total += tally;
        }
        if inputs.len() > 1 {
            writeln!(session.out(), "in all: {total}")?;
        }
        Ok(if total.failed == 0 && total.dropped == 0 { Exit::Success } else { Exit::Incomplete })
    }
}

impl Import {
    fn collection(&self, input: &Input) -> Result<String> {
        self.collection.clone().or_else(|| input.collection.clone()).ok_or_else(|| {
            Failure::usage("standard input has no name to take the collection's from").hint("add --collection NAME")
        })
    }

    fn import(&self, database: &Database, input: &Input, name: &str, session: &Session) -> Result<Tally> {
        let collection = database.collection::<RawDocumentBuf>(name);
        if input.path == Path::new("-") && std::io::stdin().is_terminal() {
            eprintln!("reading standard input, up to Ctrl-D");
        }
        let source = Source::open(&input.path).map_err(|error| Failure::file(&input.path, error))?;
        let format = match &self.format {
            Some(name) => input::by_name(name),
            None => source.format(),
        };
        let format = format.ok_or_else(|| {
            Failure::new(format!("{}: the format is unknown", shown(&input.path)))
                .hint(format!("add --format with one of {}", input::names().join(", ")))
        })?;
        let bar = source.bar.clone();
        let options = Options { big_integers: self.big_integers, columns: self.columns.clone() };
        let records = (format.open)(source.text, &options).map_err(|error| Failure::file(&input.path, error))?;
        let mut loader = Loader::new(collection.clone(), self.mode);
        let report = Report { path: &input.path, bar: bar.clone() };
        let (mut existing, mut failed) = (0, 0);
        let mut refuse = |place: &Place, why: Refused, error: &slate_core::Error| {
            existing += u64::from(why == Refused::Existing);
            match existing.cmp(&EXISTING_LISTED) {
                std::cmp::Ordering::Greater if why == Refused::Existing => {
                    if existing == EXISTING_LISTED + 1 {
                        report.line(&"more documents exist already");
                    }
                }
                _ => report.at(place, error),
            }
        };
        let cancel = session.cancel();
        for record in records {
            if cancel.is_cancelled() {
                bar.finish_and_clear();
                return Err(Failure::new("interrupted").hint("what was reported as inserted before stays"));
            }
            match record {
                Ok(record) => match record.document {
                    Ok(document) => loader.add(record.place, document, &mut refuse)?,
                    Err(why) => {
                        failed += 1;
                        report.at(&record.place, &why);
                    }
                },
                // All documents before the failure are stored.
                Err(error) => {
                    failed += 1;
                    report.line(&error);
                    break;
                }
            }
        }
        loader.write(&mut refuse)?;
        bar.finish_and_clear();
        let mut tally = loader.tally;
        tally.failed += failed;
        if tally == Tally::default() && !collection.exists()? {
            collection.create()?;
        }
        if let Some(path) = input.metadata.as_ref().filter(|_| !self.no_indexes) {
            tally.dropped = self.create_indexes(&collection, path)?;
        }
        Ok(tally)
    }

    /// Creates the indexes that a file of metadata describes. Returns how many cannot be created.
    fn create_indexes(&self, collection: &slate_core::Collection<RawDocumentBuf>, path: &Path) -> Result<u64> {
        let metadata = Metadata::read(path).map_err(|error| Failure::file(path, error))?;
        let mut failed = 0;
        for why in &metadata.ignored {
            failed += 1;
            eprintln!("{}: {why}", path.display());
        }
        for index in metadata.indexes {
            match collection.create_index(index).run() {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Full | ErrorKind::Corrupt) => {
                    return Err(error.into());
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("{}: {error}", path.display());
                }
            }
        }
        Ok(failed)
    }
}

/// Reports what is refused, above the progress bar.
struct Report<'a> {
    path: &'a Path,
    bar: indicatif::ProgressBar,
}

impl Report<'_> {
    fn at(&self, place: &Place, what: &dyn std::fmt::Display) {
        self.line(&format_args!("{place}: {what}"));
    }

    fn line(&self, what: &dyn std::fmt::Display) {
        self.bar.suspend(|| eprintln!("{}: {what}", shown(self.path)));
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}
