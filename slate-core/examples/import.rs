//! Loads files of extended JSON into a collection.
//!
//! ```text
//! cargo run --release --example import -- URL COLLECTION FILE…
//! ```
//!
//! A file holds a document a line (or one over several lines), or one array; plain or compressed by gzip. It is read as a
//! stream. What cannot be read or stored is told by file and place, and costs no other document.

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

/// Documents are stored so many at a time, or so many bytes.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// Of documents that are there already, so many are told one by one; of all, the number.
const DUPLICATES_TOLD: u64 = 10;

/// MongoDB's code for a value that must be unique and is there already.
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
        return Err("a URL, a collection and files are needed".into());
    };
    let files: Vec<PathBuf> = values.map(PathBuf::from).collect();
    if files.is_empty() {
        return Err("no file is named".into());
    }
    Ok(Some((text(url)?, text(collection)?, files)))
}

fn text(value: std::ffi::OsString) -> Result<String, lexopt::Error> {
    value.into_string().map_err(|value| format!("{} is not UTF-8", value.display()).into())
}

fn import(url: &str, collection: &str, files: &[PathBuf]) -> Result<Tally, slate_core::Error> {
    // The device is waited for once, at the end.
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
    /// Documents, or the rest of a file, that could not be read or stored.
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
        write!(f, "{} loaded, {} there already, {} not read", self.loaded, self.duplicates, self.faults)
    }
}

/// What ends the loading of a file.
enum Stop {
    /// The file cannot be read further.
    Source(std::io::Error),
    /// Nothing can be stored.
    Store(slate_core::Error),
}

/// The loading of one file.
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

    /// Stores what can be read, all of it, before it tells of a file that cannot be read further.
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

    /// Stores the batch. One document that is refused keeps no other from being stored.
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
        if self.tally.duplicates <= DUPLICATES_TOLD {
            self.tell(place, message);
        } else if self.tally.duplicates == DUPLICATES_TOLD + 1 {
            self.bar.suspend(|| eprintln!("{}: and more that are there already", self.file.display()));
        }
    }

    fn fault(&mut self, place: Place, why: impl fmt::Display) {
        self.tally.faults += 1;
        self.tell(place, why);
    }

    fn tell(&self, place: Place, what: impl fmt::Display) {
        self.bar.suspend(|| eprintln!("{}, {place}: {what}", self.file.display()));
    }
}

fn raw(document: &Document) -> Result<RawDocumentBuf, Box<dyn Error>> {
    Ok(RawDocumentBuf::try_from(document)?)
}

/// Drawn on a terminal only: indicatif sees to that.
fn style() -> ProgressStyle {
    let template = "{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
