//! Loads files of extended JSON into a collection.
//!
//! ```text
//! cargo run --release --example import -- URL COLLECTION FILE…
//! ```
//!
//! A file contains documents, one per line or over several lines, or one array of documents; plain or compressed with
//! gzip. It is read as a stream. Text that cannot be read or stored is reported with file and position, and does not
//! affect other documents.

#[path = "support/documents.rs"]
mod documents;
#[path = "support/extjson.rs"]
mod extjson;
#[path = "support/input.rs"]
mod input;

use std::{
    error::Error,
    fmt,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
};

use bson::{Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use indicatif::{ProgressBar, ProgressStyle};
use slate_core::{Database, Durability};

use self::documents::{Documents, Place};

const USAGE: &str = "\
Loads files of extended JSON into a collection.

usage: import URL COLLECTION FILE…

  URL         memory:, redb:PATH or rocksdb:PATH
  COLLECTION  is created where it is not there
  FILE        a document a line, or one array; plain or compressed by gzip

Exit code 2 where a document could not be read or stored, 1 where nothing could be done.";

/// Largest batch, in documents and in bytes.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// Number of existing documents that are listed individually; the total is always printed.
const DUPLICATES_LISTED: u64 = 10;

/// MongoDB's code for a duplicate key.
const DUPLICATE_KEY: i32 = 11000;

fn main() -> ExitCode {
    let (url, collection, files) = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("import: {error}\n\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match import(&url, &collection, &files) {
        Ok(Tally { faults: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(2),
        Err(error) => {
            eprintln!("import: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Option<(String, String, Vec<PathBuf>)>, lexopt::Error> {
    let mut values = Vec::new();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            lexopt::Arg::Short('h') | lexopt::Arg::Long("help") => return Ok(None),
            lexopt::Arg::Value(value) => values.push(value),
            lexopt::Arg::Short(_) | lexopt::Arg::Long(_) => return Err(argument.unexpected()),
        }
    }
    let mut values = values.into_iter();
    let (Some(url), Some(collection)) = (values.next(), values.next()) else {
        return Err("expected a URL, a collection and files".into());
    };
    let files: Vec<PathBuf> = values.map(PathBuf::from).collect();
    if files.is_empty() {
        return Err("no file given".into());
    }
    Ok(Some((text(url)?, text(collection)?, files)))
}

fn text(value: std::ffi::OsString) -> Result<String, lexopt::Error> {
    value.into_string().map_err(|value| format!("{} is not UTF-8", value.display()).into())
}

fn import(url: &str, collection: &str, files: &[PathBuf]) -> Result<Tally, slate_core::Error> {
    // Waits for the device once at the end.
    let database = Database::builder(url).durability(Durability::Deferred).open()?;
    let mut total = Tally::default();
    for file in files {
        let mut load = Load::new(&database, collection, file);
        let result = load.run();
        load.bar.finish_and_clear();
        match result {
            Ok(()) => {}
            Err(Stop::Store(error)) => return Err(error),
            Err(Stop::Source(error)) => {
                eprintln!("{}: {error}", file.display());
                load.tally.faults += 1;
            }
        }
        println!("{}: {}", file.display(), load.tally);
        total.add(load.tally);
    }
    database.flush()?;
    if files.len() > 1 {
        println!("in all: {total}");
    }
    Ok(total)
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    loaded: u64,
    duplicates: u64,
    /// Number of documents, or rests of files, that could not be read or stored.
    faults: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.loaded += other.loaded;
        self.duplicates += other.duplicates;
        self.faults += other.faults;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaded, {} existing, {} failed", self.loaded, self.duplicates, self.faults)
    }
}

/// Why loading a file ended early.
enum Stop {
    /// The file cannot be read further.
    Source(std::io::Error),
    /// The database cannot store documents.
    Store(slate_core::Error),
}

/// Loads one file.
struct Load<'a> {
    database: &'a Database,
    collection: &'a str,
    file: &'a Path,
    tally: Tally,
    bar: ProgressBar,
    documents: RawArrayBuf,
    places: Vec<Place>,
}

impl<'a> Load<'a> {
    fn new(database: &'a Database, collection: &'a str, file: &'a Path) -> Self {
        Self {
            database,
            collection,
            file,
            tally: Tally::default(),
            bar: ProgressBar::no_length().with_style(style()),
            documents: RawArrayBuf::new(),
            places: Vec::new(),
        }
    }

    /// Stores all readable documents before reporting that a file cannot be read further.
    fn run(&mut self) -> Result<(), Stop> {
        let read = self.read();
        self.store()?;
        read
    }

    fn read(&mut self) -> Result<(), Stop> {
        let file = File::open(self.file).map_err(Stop::Source)?;
        self.bar.set_length(file.metadata().map_err(Stop::Source)?.len());
        self.bar.set_message(self.file.display().to_string());
        let text = input::text(self.bar.wrap_read(file)).map_err(Stop::Source)?;
        for entry in Documents::new(text) {
            let (place, document) = entry.map_err(Stop::Source)?;
            match document.map_err(Into::into).and_then(|document| raw(&document)) {
                Ok(document) => self.add(place, document)?,
                Err(error) => self.fault(place, &*error),
            }
        }
        Ok(())
    }

    fn add(&mut self, place: Place, document: RawDocumentBuf) -> Result<(), Stop> {
        self.documents.push(document);
        self.places.push(place);
        if self.places.len() >= BATCH_DOCUMENTS || self.documents.as_bytes().len() >= BATCH_BYTES {
            self.store()?;
        }
        Ok(())
    }

    /// Stores the batch. A rejected document does not affect the others.
    fn store(&mut self) -> Result<(), Stop> {
        let (documents, places) = (std::mem::take(&mut self.documents), std::mem::take(&mut self.places));
        if places.is_empty() {
            return Ok(());
        }
        let command = rawdoc! { "insert": self.collection, "documents": documents, "ordered": false };
        let reply = self.database.command(&command).map_err(Stop::Store)?;
        let reply = Document::try_from(reply.as_ref()).unwrap_or_default();
        let refused = reply.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
        for error in refused.iter().filter_map(|error| error.as_document()) {
            let index = error.get_i32("index").ok().and_then(|index| usize::try_from(index).ok());
            let Some(place) = index.and_then(|index| places.get(index)) else { continue };
            let message = error.get_str("errmsg").unwrap_or_default();
            if error.get_i32("code").is_ok_and(|code| code == DUPLICATE_KEY) {
                self.duplicate(*place, message);
            } else {
                self.fault(*place, message);
            }
        }
        self.tally.loaded += u64::try_from(places.len() - refused.len()).unwrap_or_default();
        Ok(())
    }

    fn duplicate(&mut self, place: Place, message: &str) {
        self.tally.duplicates += 1;
        if self.tally.duplicates <= DUPLICATES_LISTED {
            self.report(place, message);
        } else if self.tally.duplicates == DUPLICATES_LISTED + 1 {
            self.bar.suspend(|| eprintln!("{}: more documents exist already", self.file.display()));
        }
    }

    fn fault(&mut self, place: Place, why: impl fmt::Display) {
        self.tally.faults += 1;
        self.report(place, why);
    }

    fn report(&self, place: Place, what: impl fmt::Display) {
        self.bar.suspend(|| eprintln!("{}, {place}: {what}", self.file.display()));
    }
}

fn raw(document: &Document) -> Result<RawDocumentBuf, Box<dyn Error>> {
    Ok(RawDocumentBuf::try_from(document)?)
}

/// indicatif draws the bar only on a terminal.
fn style() -> ProgressStyle {
    let template = "{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
