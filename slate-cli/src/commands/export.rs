use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use bson::{Document, RawDocumentBuf, doc};
use clap::{Args, ValueHint, builder::PossibleValuesParser};
use slate_core::{Access, CancelToken};

use super::{
    Run, definitions, documents,
    selection::{Fields, Slice},
    source::CopySource,
    transfer::{self, Salvaged},
};
use crate::{
    endpoint::{Endpoint, Rows},
    failure::{Exit, Failure, Result},
    input,
    message::message,
    output::{self, Cells, File, Format},
    progress,
    session::Session,
};

/// Write collections to files
///
/// `export COLLECTION` writes to standard output, or to the file after --output. `export --output FOLDER` writes all
/// collections: by default as mongodump does, to FOLDER/DATABASE/COLLECTION.bson with their indexes beside them, which
/// mongorestore and `slate import FOLDER` read. All files show one commit.
#[derive(Clone, Debug, Args)]
pub(crate) struct Export {
    /// The collection; otherwise all
    collection: Option<String>,
    /// The filter, in MongoDB's query language
    #[arg(default_value = "{}", hide_default_value = true, value_parser = documents::query)]
    filter: Document,
    #[command(flatten)]
    slice: Slice,
    #[command(flatten)]
    fields: Fields,
    /// The file, or the folder for all collections; compressed if it ends with .gz
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    output: Option<PathBuf>,
    /// The format; otherwise the file's ending says it
    #[arg(long, value_parser = PossibleValuesParser::new(output::names()))]
    format: Option<String>,
    /// Write types into the header of a table, so that `import` reads the same documents
    #[arg(long)]
    typed: bool,
    /// Compress the files of a folder with gzip
    #[arg(long, conflicts_with = "collection")]
    gzip: bool,
    /// Leave out damaged parts of the database and list them; exits with 3 if there are any
    #[arg(long)]
    skip_damaged: bool,
    /// The name of the database in a folder of BSON dumps
    #[arg(long, default_value = "slate", value_name = "NAME")]
    database: String,
}

/// What is exported.
#[derive(Clone, Copy)]
enum Exported<'e> {
    /// This collection.
    One(&'e str),
    /// All collections, into this folder.
    All(&'e Path),
}

impl Run for Export {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let place = match (&self.collection, &self.output) {
            (Some(name), _) => Exported::One(name),
            (None, Some(folder)) => Exported::All(folder),
            (None, None) => {
                return Err(Failure::usage("standard output takes one collection")
                    .hint("name the collection, or add --output FOLDER for all of them"));
            }
        };
        let endpoint = session.endpoint(Access::ReadOnly)?;
        if !self.skip_damaged {
            return self.write_from(&CopySource::of(endpoint)?, place, session);
        }
        let database = match endpoint {
            Endpoint::Embedded(database) => database,
            Endpoint::Server(_) => return Err(Failure::usage(transfer::FILES_ONLY)),
        };
        // A query may read the documents twice, sort them, or read another collection, so it runs on a copy of all that can be read.
        let saved = Salvaged::of(&database, session)?;
        let source = CopySource::of(Endpoint::Embedded(saved.database.clone()))?;
        let exit = self.write_from(&source, place, session)?;
        // A view shows documents of other collections.
        let defined = definitions::read(&source.endpoint())?;
        let is_view = |name: &String| defined.get(name).is_some_and(|metadata| metadata.kind == "view");
        let shows_all = self.collection.as_ref().is_none_or(is_view);
        let is_concerned = |of: &str| shows_all || of.is_empty() || self.collection.as_deref() == Some(of);
        let damages = saved.damages.iter().filter(|damage| is_concerned(&damage.collection));
        // Written to standard error, because standard output may contain the documents.
        let left_out = damages.inspect(|damage| message!("left out: {damage}")).count();
        Ok(if left_out == 0 { exit } else { Exit::Incomplete })
    }
}

impl Export {
    fn cells(&self) -> Cells {
        if self.typed { Cells::Typed } else { Cells::Plain }
    }

    fn write_from(&self, source: &CopySource, place: Exported<'_>, session: &mut Session) -> Result<Exit> {
        match place {
            Exported::One(name) => {
                source.endpoint().check(name)?;
                self.one(source, name, session)
            }
            Exported::All(folder) => self.all(source, folder, session),
        }
    }

    /// Runs the query.
    fn rows(&self, source: &CopySource, collection: &str, cancel: &CancelToken) -> Result<Rows> {
        match source {
            CopySource::Embedded(_, snapshot) => {
                let collection = snapshot.collection::<RawDocumentBuf>(collection);
                let find = self.fields.apply(collection.find(&self.filter).cancel(cancel.clone()));
                Ok(Rows::Embedded(self.slice.apply(find).cursor()?))
            }
            CopySource::Server(server) => {
                let mut find = doc! { "find": collection, "filter": self.filter.clone() };
                self.slice.add_to(&mut find, "skip", "limit");
                self.slice.add_sort_to(&mut find);
                self.fields.add_to(&mut find);
                server.rows(&find).map(Rows::Server)
            }
        }
    }

    fn one(&self, source: &CopySource, name: &str, session: &mut Session) -> Result<Exit> {
        let cancel = session.cancel();
        let open = || self.rows(source, name, &cancel);
        let Some(path) = &self.output else {
            let format = output::on_standard_output(self.format.as_deref(), &output::JSON_LINES)?;
            output::write(format, self.cells(), session.out(), open, || {})?;
            return Ok(Exit::Success);
        };
        let format = match &self.format {
            Some(name) => output::by_name(name),
            None => input::uncompressed_name(path)
                .and_then(|name| output::by_extension(Path::new(&name).extension()?.to_str()?)),
        };
        let format = format.ok_or_else(|| {
            Failure::usage(format!("the name of {} does not say the format", path.display()))
                .hint(format!("add --format with one of {}", output::names().join(", ")))
        })?;
        let count = self.write(format, path, &open, self.expected(source, name)?)?;
        writeln!(session.out(), "{} written to {}", output::documents(count), path.display())?;
        Ok(Exit::Success)
    }

    /// Returns the estimated number of documents to export; `None` with a filter, because only the query can count them.
    fn expected(&self, source: &CopySource, collection: &str) -> Result<Option<u64>> {
        let most = self.slice.limit.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
        if self.filter.is_empty() {
            let count = source.endpoint().estimated_count(collection)?;
            Ok(Some(count.saturating_sub(self.slice.skip).min(most)))
        } else {
            Ok(None)
        }
    }

    /// Writes a file. After a failure the incomplete file is removed.
    fn write(
        &self,
        format: &Format,
        path: &Path,
        open: &dyn Fn() -> Result<Rows>,
        expected: Option<u64>,
    ) -> Result<u64> {
        let mut file = File::create(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::file(path, error).hint("export never overwrites a file"),
            _ => Failure::file(path, error),
        })?;
        let bar = progress::documents(expected, &path.display().to_string());
        let written = output::write(format, self.cells(), &mut file, open, || bar.inc(1));
        bar.finish_and_clear();
        match written {
            Ok(count) => file.finish().map(|()| count).map_err(|error| Failure::file(path, error)),
            Err(failure) => {
                file.discard();
                Err(failure.in_file(path))
            }
        }
    }

    fn all(&self, source: &CopySource, folder: &Path, session: &mut Session) -> Result<Exit> {
        let format = output::by_name(self.format.as_deref().unwrap_or("bson"));
        let Some((format, extension)) = format.and_then(|format| Some((format, *format.extensions.first()?))) else {
            return Err(Failure::usage("files of this format have no ending of their own")
                .hint("choose bson, json, jsonl, csv or tsv, or export one collection"));
        };
        let dump = extension == "bson";
        let folder = if dump { folder.join(input::encoded(&self.database)) } else { folder.to_owned() };
        let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
        self.all_into(source, &folder, (format, extension), session).inspect_err(|_| {
            // Fails for a folder with files, which stays.
            let _ = missing.iter().try_for_each(fs::remove_dir);
        })
    }

    /// Writes all collections into an existing folder.
    fn all_into(
        &self,
        source: &CopySource,
        folder: &Path,
        (format, extension): (&Format, &str),
        session: &mut Session,
    ) -> Result<Exit> {
        let dump = extension == "bson";
        let end = if self.gzip { ".gz" } else { "" };
        let (mut definitions, cancel) = (definitions::read(&source.endpoint())?, session.cancel());
        for name in source.names()? {
            let stem = input::encoded(&name);
            let mut metadata = definitions.remove(&name).unwrap_or_default();
            // A view has no documents of its own.
            if metadata.kind == "collection" {
                let path = folder.join(format!("{stem}.{extension}{end}"));
                let open = || self.rows(source, &name, &cancel);
                let count = self.write(format, &path, &open, self.expected(source, &name)?)?;
                writeln!(session.out(), "{name}: {} written to {}", output::documents(count), path.display())?;
                metadata.indexes = source.indexes(&name, &metadata.options)?;
            }
            if dump {
                let path = folder.join(format!("{stem}{}{end}", input::METADATA_SUFFIX));
                let mut file = File::create(&path).map_err(|error| Failure::file(&path, error))?;
                let written = match file.write_all(metadata.write(&name).as_bytes()) {
                    Ok(()) => file.finish(),
                    Err(error) => {
                        file.discard();
                        Err(error)
                    }
                };
                written.map_err(|error| Failure::file(&path, error))?;
            }
        }
        Ok(Exit::Success)
    }
}
