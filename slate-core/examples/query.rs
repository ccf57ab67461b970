//! Queries a collection and prints the result as extended JSON.
//!
//! ```text
//! cargo run --release --example query -- URL COLLECTION FILTER [options]
//! ```

#[path = "support/extjson.rs"]
mod extjson;

use std::{
    error::Error,
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use bson::{Bson, Document, RawDocumentBuf};
use lexopt::{Arg, Parser, ValueExt};
use slate_core::{Database, ExplainVerbosity, Find, Index};

use self::extjson::Regexes;

const USAGE: &str = "\
Queries a collection and prints the result as extended JSON, one document per line.

usage: query URL COLLECTION FILTER [options]

  URL              redb:PATH or rocksdb:PATH
  FILTER           in MongoDB's query language, as extended JSON: '{ \"age\": { \"$gte\": 21 } }'
  --sort SORT      '{ \"age\": -1 }'
  --project SPEC   '{ \"name\": 1, \"_id\": 0 }'
  --skip N         skips the first N
  --limit N        prints at most N
  --distinct PATH  prints the distinct values at a path
  --count          prints the number of matching documents
  --index KEYS     creates this index first if it does not exist: '{ \"org\": 1, \"age\": -1 }'
  --explain        prints the plan instead of running it";

struct Arguments {
    url: String,
    collection: String,
    filter: Document,
    sort: Option<Document>,
    project: Option<Document>,
    skip: u64,
    limit: Option<u64>,
    index: Option<Document>,
    answer: Answer,
    explain: Explain,
}

/// What to print for the matching documents.
enum Answer {
    Documents,
    Distinct(String),
    Count,
}

#[derive(PartialEq)]
enum Explain {
    Instead,
    No,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("query: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match run(arguments, &mut out).and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe.
        Err(error)
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("query: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let (mut values, mut parser) = (Vec::new(), Parser::from_env());
    let (mut sort, mut project, mut index) = (None, None, None);
    let (mut skip, mut limit, mut answer, mut explain) = (0, None, Answer::Documents, Explain::No);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("sort") => sort = Some(document("the sort", &parser.value()?.string()?)?),
            Arg::Long("project") => project = Some(document("the projection", &parser.value()?.string()?)?),
            Arg::Long("index") => index = Some(document("the index", &parser.value()?.string()?)?),
            Arg::Long("skip") => skip = parser.value()?.parse()?,
            Arg::Long("limit") => limit = Some(parser.value()?.parse()?),
            Arg::Long("distinct") => answer = Answer::Distinct(parser.value()?.string()?),
            Arg::Long("count") => answer = Answer::Count,
            Arg::Long("explain") => explain = Explain::Instead,
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(value) => values.push(value.string()?),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected()),
        }
    }
    let [url, collection, filter] = <[String; 3]>::try_from(values)
        .map_err(|values| format!("expected a URL, a collection and a filter, found {} arguments", values.len()))?;
    let filter = document("the filter", &filter)?;
    Ok(Some(Arguments { url, collection, filter, sort, project, skip, limit, index, answer, explain }))
}

fn document(what: &str, text: &str) -> Result<Document, lexopt::Error> {
    extjson::document(text.as_bytes(), Regexes::Operators).map_err(|error| format!("{what}: {error}").into())
}

fn run(arguments: Arguments, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let database = Database::open(&arguments.url)?;
    let collection = database.collection::<RawDocumentBuf>(&arguments.collection);
    if let Some(keys) = arguments.index {
        collection.create_index(Index::on(keys)).run()?;
    }
    if !collection.exists()? {
        return Err(format!("unknown collection {}", arguments.collection).into());
    }
    let mut find = collection.find(arguments.filter).skip(arguments.skip);
    if let Some(sort) = arguments.sort {
        find = find.sort(sort);
    }
    if let Some(project) = arguments.project {
        find = find.projection(project);
    }
    if let Some(limit) = arguments.limit {
        find = find.limit(limit);
    }
    if arguments.explain == Explain::Instead {
        return explain(find, &arguments.answer, out);
    }
    answer(find, &arguments.answer, out)
}

fn explain(find: Find<RawDocumentBuf>, answer: &Answer, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let plan = match answer {
        Answer::Documents => find.explain(ExplainVerbosity::QueryPlanner)?,
        Answer::Distinct(path) => find.distinct(path).explain(ExplainVerbosity::QueryPlanner)?,
        Answer::Count => find.count().explain(ExplainVerbosity::QueryPlanner)?,
    };
    Ok(writeln!(out, "{plan}")?)
}

fn answer(find: Find<RawDocumentBuf>, answer: &Answer, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    match answer {
        Answer::Documents => {
            let mut documents = find.cursor()?;
            while documents.advance()? {
                if let Some(document) = documents.current() {
                    print(Bson::Document(document.try_into()?), out)?;
                }
            }
        }
        Answer::Distinct(path) => {
            for value in find.distinct(path).run()? {
                print(value, out)?;
            }
        }
        Answer::Count => writeln!(out, "{}", find.count().run()?)?,
    }
    Ok(())
}

fn print(value: Bson, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", value.into_relaxed_extjson())
}
