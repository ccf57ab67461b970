use std::{
    cmp::Ordering,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bson::doc;
use clap::{Args, ValueHint, builder::PossibleValuesParser};
use indicatif::ProgressBar;
use slate_core::Access;

use super::{Run, definitions};
use crate::{
    endpoint::{Endpoint, OnSignal},
    failure::{Exit, Failure, Result},
    input::{self, InputFile, InputOptions, Metadata, Place, Records, Source},
    json::BigIntegers,
    load::{Loader, Mode, Refused, Tally},
    message::message,
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
    /// What to do if an _id is already stored
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
    /// The column delimiter of a table: ';'
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Create no indexes from mongodump's metadata
    #[arg(long)]
    no_indexes: bool,
}

/// How often an import waits until its documents are on the device. A crash loses at most what was imported since.
const SYNC_INTERVAL: Duration = Duration::from_secs(10);

/// Existing documents that are listed one by one; the total is always printed.
const EXISTING_LISTED: u64 = 10;

impl Run for Import {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let mut inputs = Vec::new();
        for path in &self.paths {
            let (found, ignored) = input::find(path).map_err(|error| Failure::file(path, error))?;
            for path in ignored {
                message!("{}: not read, the format is unknown", path.display());
            }
            inputs.extend(found);
        }
        if inputs.is_empty() {
            return Err(Failure::new("there is nothing to import")
                .hint("a folder is read with its files that end with .json, .jsonl, .csv, .tsv or .bson"));
        }
        // Errors of the command line are found before anything is written.
        for input in &inputs {
            self.collection(input)?;
        }
        let target = session.endpoint(Access::CreateOrOpen)?;
        let (mut total, mut dropped) = (Tally::default(), Vec::new());
        for input in &inputs {
            let name = self.collection(input)?;
            let imported = self.import(&target, input, &name, &mut dropped, session)?;
            session.sync()?;
            let path = shown(&input.path);
            match imported {
                Imported::Records(tally) => writeln!(session.out(), "{path}: {tally}, collection {name}")?,
                Imported::View { dropped: 0 } => writeln!(session.out(), "{path}: view {name}")?,
                Imported::View { .. } => writeln!(session.out(), "{path}: not created, view {name}")?,
            }
            session.flush()?;
            total += imported.tally();
        }
        if inputs.len() > 1 {
            writeln!(session.out(), "in all: {total}")?;
        }
        Ok(if total.failed == 0 && total.dropped == 0 { Exit::Success } else { Exit::Incomplete })
    }
}

impl Import {
    fn collection(&self, input: &InputFile) -> Result<String> {
        self.collection.clone().or_else(|| input.collection.clone()).ok_or_else(|| {
            Failure::usage(format!("{} has no name to take the collection's from", shown(&input.path)))
                .hint("add --collection NAME")
        })
    }

    /// Imports a file and the collection options and indexes of its metadata file. `dropped` contains the collections that `--drop` dropped.
    fn import(
        &self,
        target: &Endpoint,
        input: &InputFile,
        name: &str,
        dropped: &mut Vec<String>,
        session: &Session,
    ) -> Result<Imported> {
        let read = |path| Metadata::read(path).map_err(|error| Failure::file(path, error));
        let mut metadata = input.metadata.as_deref().map(read).transpose()?.unwrap_or_default();
        let has_records = input.metadata.as_ref() != Some(&input.path);
        // Nothing is dropped for a file that cannot be read.
        let opened = if has_records { self.open(input, session)? } else { None };
        if self.drop && !dropped.contains(&name.to_owned()) {
            target.drop_collection(name)?;
            dropped.push(name.to_owned());
        }
        let mut refused = 0;
        let mut ignored = |why: &str| {
            refused += 1;
            message!("{}: {why}", input.metadata.as_deref().unwrap_or(&input.path).display());
        };
        definitions::create(target, name, &metadata, &mut ignored)?;
        if metadata.kind == "view" {
            return Ok(Imported::View { dropped: refused });
        }
        let mut tally = match opened {
            Some((records, bar)) => load_file(records, &bar, input, (name, self.mode), target, session)?,
            None => Tally::default(),
        };
        if tally == Tally::default() && !target.has(name)? {
            target.write(&doc! { "create": name })?;
        }
        if self.no_indexes {
            metadata.indexes.clear();
        }
        definitions::complete(target, name, &metadata, session, &mut ignored)?;
        tally.dropped += refused;
        Ok(Imported::Records(tally))
    }

    /// Opens a file. Returns `None` if the file is empty and its format is unknown.
    fn open(&self, input: &InputFile, session: &Session) -> Result<Option<(Records, ProgressBar)>> {
        if input.path == Path::new("-") && session.reads_commands() {
            return Err(Failure::usage("standard input has the commands, and no documents").hint("import a file"));
        }
        if input.path == Path::new("-") && std::io::stdin().is_terminal() {
            message!("reading standard input, up to Ctrl-D");
        }
        let fault = |error| Failure::file(Path::new(&shown(&input.path)), error);
        let source = Source::open(&input.path, &session.interrupt()).map_err(fault)?;
        let format = match &self.format {
            Some(name) => input::by_name(name),
            None => source.format(),
        };
        let Some(format) = format else {
            if source.is_empty() {
                return Ok(None);
            }
            let failure = Failure::new(format!("{}: the format is unknown", shown(&input.path)));
            return Err(failure.hint(format!("add --format with one of {}", input::names().join(", "))));
        };
        let bar = source.bar.clone();
        let options =
            InputOptions { big_integers: self.big_integers, columns: self.columns.clone(), delimiter: self.delimiter };
        let records = (format.open)(source.text, &options).map_err(fault)?;
        Ok(Some((records, bar)))
    }
}

/// The result of importing one file.
#[derive(Clone, Copy, Debug)]
enum Imported {
    Records(Tally),
    View {
        /// Number of faults in the definition. If there is a fault, the view is not created.
        dropped: u64,
    },
}

impl Imported {
    fn tally(self) -> Tally {
        match self {
            Self::Records(tally) => tally,
            Self::View { dropped } => Tally { dropped, ..Tally::default() },
        }
    }
}

/// Writes the records of a file, and draws the progress.
fn load_file(
    records: Records,
    bar: &ProgressBar,
    input: &InputFile,
    (collection, mode): (&str, Mode),
    target: &Endpoint,
    session: &Session,
) -> Result<Tally> {
    let mut loader = Loader::new(target, collection, mode, OnSignal::End);
    let loaded = load(records, &mut loader, &Report { path: &input.path, bar: bar.clone() }, target, session);
    bar.finish_and_clear();
    loaded.inspect_err(|_| message!("{}: {} before this", shown(&input.path), loader.tally))?;
    Ok(loader.tally)
}

/// Writes all records, and reports those that cannot be read or stored.
fn load(
    records: Records,
    loader: &mut Loader<Place>,
    report: &Report<'_>,
    target: &Endpoint,
    session: &Session,
) -> Result<()> {
    let mut synced = Instant::now();
    let mut existing = 0;
    let mut refuse = |place: &Place, why: Refused, failure: &Failure| {
        existing += u64::from(why == Refused::Existing);
        match existing.cmp(&EXISTING_LISTED) {
            Ordering::Greater if why == Refused::Existing => {
                if existing == EXISTING_LISTED + 1 {
                    report.line(&"more documents exist already");
                }
            }
            _ => report.at(place, &failure.line()),
        }
    };
    let (cancel, mut unreadable) = (session.cancel(), 0);
    for record in records {
        if cancel.is_cancelled() {
            return Err(Failure::interrupted());
        }
        if synced.elapsed() >= SYNC_INTERVAL {
            loader.write(&mut refuse)?;
            target.flush()?;
            synced = Instant::now();
        }
        match record {
            Ok(record) => {
                if let Some(note) = record.note {
                    report.at(&record.place, &note);
                }
                match record.document {
                    Ok(document) => loader.add(record.place, document, &mut refuse)?,
                    Err(why) => {
                        unreadable += 1;
                        report.at(&record.place, &why);
                    }
                }
            }
            // All documents before the failure are stored.
            Err(error) => {
                unreadable += 1;
                report.line(&error);
                break;
            }
        }
    }
    loader.write(&mut refuse)?;
    loader.tally.failed += unreadable;
    Ok(())
}

/// Reports what is refused, above the progress bar.
struct Report<'a> {
    path: &'a Path,
    bar: ProgressBar,
}

impl Report<'_> {
    fn at(&self, place: &Place, what: &dyn std::fmt::Display) {
        self.line(&format_args!("{place}: {what}"));
    }

    fn line(&self, what: &dyn std::fmt::Display) {
        self.bar.suspend(|| message!("{}: {what}", shown(self.path)));
    }
}

/// Parses a delimiter.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [character] if !matches!(character, b'"' | b'\r' | b'\n') && character.is_ascii() => Ok(*character),
        _ if text == "\\t" => Ok(b'\t'),
        _ => Err("expected one ASCII character, such as ';'".into()),
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}
