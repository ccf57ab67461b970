//! Behaviour as scripts: each file of `tests/scripts` is run on every store.
//!
//! A script consists of blocks separated by blank lines. A block has commands, one per line (a line that starts with a
//! space continues the previous one), a line `---`, and the output. `#` begins a comment. Documents are extended JSON
//! whose field names need no quotes. `UPDATE=1 cargo test -p slate-core --test scripts` replaces the expected output
//! with the actual one; review the difference before committing it, because the scripts are the specification.
//!
//! | command | output |
//! |---|---|
//! | `insert C {…} …` | count |
//! | `fill C N {…}` | N documents; a text `=i`, `=i/10` or `=i%10` is replaced by that number for document `i` |
//! | `index C {keys} [unique] [sparse] [hidden] [named N] [only {…}] [collation {…}] [project {…}]` | its name |
//! | `drop index C N`, `hide C N`, `show C N`, `drop C`, `create C [collation {…}]`, `indexes C`, `collections` | |
//! | `create V on C {stage} … [collation {…}]`, `redefine V C {stage} …` | |
//! | `find C {filter} [sort {…}] [project {…}] [skip N] [limit N] [hint N or {keys}]` | one row per line |
//! | `aggregate C {stage} …` | one row per line |
//! | `count C {filter} …`, `distinct C PATH {filter} …` | |
//! | `explain find …`, `explain aggregate …`, `explain count …`, `explain distinct …` | the plan, drawn |
//! | `update one C {filter} {update} [upsert] [sort {…}] [hint …] [where {…} …]`, `update many …`, `replace C …` | counts |
//! | `delete one C {filter}`, `delete many …` | count |
//! | `take and update C {filter} {update} [after] [upsert] [sort {…}] [project {…}] …`, `take and delete …` | a row |
//! | `begin`, `commit`, `rollback`, `reopen` | |

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{fmt::Write as _, fs, path::Path};

use bson::{Bson, Document, RawDocumentBuf};
use common::{STORES, TestDatabase, raw};
use slate_core::{
    Aggregate, Collection, CollectionOptions, Error, Explain, ExplainVerbosity, Find, Hint, Index, ReturnDocument,
    Transaction, UpdateModifications, View,
};

type Documents = Collection<RawDocumentBuf>;

#[test]
fn scripts_produce_their_expected_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "slate"));
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let script = fs::read_to_string(&path).unwrap();
        for store in STORES {
            let answered = run(&script, store.open());
            if answered == fs::read_to_string(&path).unwrap() {
                continue;
            }
            if std::env::var_os("UPDATE").is_some() && store == STORES[0] {
                fs::write(&path, &answered).unwrap();
            } else {
                wrong.push(format!("{} on {store:?}:\n{}", path.display(), difference(&script, &answered)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the lines that differ.
fn difference(wanted: &str, answered: &str) -> String {
    let (mut wanted, mut answered) = (wanted.lines(), answered.lines());
    let mut output = String::new();
    loop {
        match (wanted.next(), answered.next()) {
            (None, None) => return output,
            (left, right) if left == right => {}
            (left, right) => {
                let show = |line: Option<&str>| line.unwrap_or("(nothing)").to_owned();
                writeln!(output, "- {}\n+ {}", show(left), show(right)).unwrap();
            }
        }
    }
}

/// Returns the script with the actual output.
fn run(script: &str, database: TestDatabase) -> String {
    let mut session = Session { database: Some(database), transaction: None };
    let mut output = String::new();
    for block in script.split("\n\n") {
        let block = block.trim_matches('\n');
        let commands = block.split_once("\n---").map_or(block, |(commands, _)| commands);
        if block.is_empty() {
            continue;
        }
        if !output.is_empty() {
            output.push('\n');
        }
        writeln!(output, "{commands}").unwrap();
        let joined = commands.replace("\n ", " ");
        let mut lines = joined.lines().filter(|line| !line.starts_with('#')).peekable();
        if lines.peek().is_none() {
            continue;
        }
        output.push_str("---\n");
        for line in lines {
            let answer = session.run(line).unwrap_or_else(|error| refusal(&error));
            if !answer.is_empty() {
                writeln!(output, "{answer}").unwrap();
            }
        }
    }
    output
}

fn refusal(error: &Error) -> String {
    format!("error {} {}: {error}", error.code(), error.code_name())
}

/// The state of a script.
struct Session {
    database: Option<TestDatabase>,
    transaction: Option<Transaction>,
}

/// The rest of a command.
struct Words<'s> {
    left: &'s str,
}

impl<'s> Words<'s> {
    fn peek(&self) -> &'s str {
        self.left.split_whitespace().next().unwrap_or_default()
    }

    fn next(&mut self) -> &'s str {
        let word = self.peek();
        self.left = self.left.trim_start()[word.len()..].trim_start();
        word
    }

    /// Consumes the word if it is next.
    fn take(&mut self, word: &str) -> bool {
        let comes = self.peek() == word;
        if comes {
            self.next();
        }
        comes
    }

    fn number(&mut self) -> u64 {
        self.next().parse().unwrap()
    }

    fn is_document(&self) -> bool {
        self.left.trim_start().starts_with('{')
    }

    fn document(&mut self) -> Document {
        let mut values = serde_json::Deserializer::from_str(self.left).into_iter::<serde_json::Value>();
        let value = values.next().unwrap_or_else(|| panic!("expected a document at {:?}", self.left));
        let value = value.unwrap_or_else(|error| panic!("{error}: {:?}", self.left));
        self.left = self.left[values.byte_offset()..].trim_start();
        let bson = Bson::try_from(value).unwrap();
        bson.as_document().unwrap_or_else(|| panic!("{bson} is not a document")).clone()
    }

    /// Returns all documents that come next.
    fn documents(&mut self) -> Vec<Document> {
        let mut documents = Vec::new();
        while self.is_document() {
            documents.push(self.document());
        }
        documents
    }

    /// Parses an update: operators, or an array of stages.
    fn update(&mut self) -> UpdateModifications {
        if self.is_document() {
            return UpdateModifications::Operators(raw(&self.document()));
        }
        let mut values = serde_json::Deserializer::from_str(self.left).into_iter::<Vec<serde_json::Value>>();
        let stages = values.next().unwrap().unwrap();
        self.left = self.left[values.byte_offset()..].trim_start();
        let stages = stages.into_iter().map(|stage| raw(Bson::try_from(stage).unwrap().as_document().unwrap()));
        UpdateModifications::Pipeline(stages.collect())
    }

    /// Parses the next document, or returns an empty filter.
    fn filter(&mut self) -> Document {
        if self.is_document() { self.document() } else { Document::new() }
    }

    fn hint(&mut self) -> Hint {
        if self.is_document() {
            return Hint::Keys(raw(&self.document()));
        }
        match self.next() {
            "forward" => Hint::Forward,
            "backward" => Hint::Backward,
            name => Hint::Name(name.into()),
        }
    }

    fn end(&self) {
        assert!(self.left.trim().is_empty(), "unexpected {:?}", self.left);
    }
}

/// Quotes unquoted field names.
fn quoted(line: &str) -> String {
    let mut out = String::new();
    let (mut word, mut in_string, mut escaped) = (String::new(), false, false);
    for character in line.chars() {
        if in_string {
            in_string = character != '"' || escaped;
            escaped = character == '\\' && !escaped;
            out.push(character);
        } else if character.is_alphanumeric() || "_$.*-".contains(character) {
            word.push(character);
        } else {
            match character {
                ':' if !word.is_empty() => write!(out, "{word:?}").unwrap(),
                _ => out.push_str(&word),
            }
            word.clear();
            in_string = character == '"';
            out.push(character);
        }
    }
    out + &word
}

impl Session {
    fn collection(&self, name: &str) -> Documents {
        match &self.transaction {
            Some(transaction) => transaction.collection(name),
            None => self.database.as_ref().unwrap().collection(name),
        }
    }

    fn run(&mut self, line: &str) -> Result<String, Error> {
        let line = quoted(line);
        let mut words = Words { left: &line };
        let answer = match words.next() {
            "begin" => {
                self.transaction = Some(self.database.as_ref().unwrap().db.begin()?);
                String::new()
            }
            "commit" => self.transaction.take().unwrap().commit().map(|()| String::new())?,
            "rollback" => {
                self.transaction.take().unwrap().rollback();
                String::new()
            }
            "reopen" => {
                self.database = self.database.take().map(TestDatabase::reopen);
                String::new()
            }
            "collections" => self.database.as_ref().unwrap().db.list_collection_names()?.join("\n"),
            "create" => {
                let collection = self.collection(words.next());
                let options = CollectionOptions::new();
                let options = match words.take("on") {
                    true => options.view(&View::new(words.next(), words.documents())),
                    false => options,
                };
                let options = if words.take("collation") { options.collation(words.document()) } else { options };
                collection.create_with(&options).map(|()| String::new())?
            }
            "redefine" => {
                let view = self.collection(words.next());
                view.set_view(&View::new(words.next(), words.documents())).map(|()| String::new())?
            }
            "insert" => self.insert(&mut words)?,
            "fill" => self.fill(&mut words)?,
            "index" => self.index(&mut words)?,
            "indexes" => self.indexes(&mut words)?,
            "hide" => self.collection(words.next()).hide_index(words.next()).map(|_| String::new())?,
            "show" => self.collection(words.next()).show_index(words.next()).map(|_| String::new())?,
            "drop" if words.take("index") => {
                let dropped = self.collection(words.next()).drop_index(words.next())?;
                if dropped { "dropped".into() } else { "did not exist".into() }
            }
            "drop" => {
                let dropped = self.collection(words.next()).drop()?;
                if dropped { "dropped".into() } else { "did not exist".into() }
            }
            "find" => self
                .find(&mut words)
                .run()?
                .map(|row| row.map(|row| show(&row)))
                .collect::<Result<Vec<_>, _>>()?
                .join("\n"),
            "aggregate" => {
                let rows = self.aggregate(&mut words).run()?.map(|row| row.map(|row| show(&row)));
                rows.collect::<Result<Vec<_>, _>>()?.join("\n")
            }
            "count" => self.find(&mut words).count().run()?.to_string(),
            "distinct" => {
                let (find, path) = self.distinct(&mut words);
                find.distinct(&path).run()?.into_iter().map(show_value).collect::<Vec<_>>().join("\n")
            }
            "explain" => self.explain(&mut words)?.to_string(),
            "update" => self.update(&mut words)?,
            "replace" => self.replace(&mut words)?,
            "delete" => self.delete(&mut words)?,
            "take" => self.take(&mut words)?,
            other => panic!("unknown command {other:?}"),
        };
        words.end();
        Ok(answer)
    }

    fn insert(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let collection = self.collection(words.next());
        let mut documents = Vec::new();
        while words.is_document() {
            documents.push(raw(&words.document()));
        }
        Ok(format!("inserted {}", collection.insert_many(&documents).run()?.inserted_ids.len()))
    }

    fn fill(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let collection = self.collection(words.next());
        let (count, template) = (words.number(), words.document());
        let documents = (0..i32::try_from(count).unwrap()).map(|place| {
            let filled = filled(&Bson::Document(template.clone()), place);
            raw(filled.as_document().unwrap())
        });
        let documents: Vec<RawDocumentBuf> = documents.collect();
        Ok(format!("inserted {}", collection.insert_many(&documents).run()?.inserted_ids.len()))
    }

    fn index(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let collection = self.collection(words.next());
        let mut index = Index::on(words.document());
        loop {
            index = match words.peek() {
                "unique" => index.unique(),
                "sparse" => index.sparse(),
                "hidden" => index.hidden(),
                "named" => {
                    words.next();
                    index.named(words.peek())
                }
                "only" => {
                    words.next();
                    index = index.only(words.document());
                    continue;
                }
                "collation" => {
                    words.next();
                    index = index.collation(words.document());
                    continue;
                }
                "project" => {
                    words.next();
                    index = index.wildcard_projection(words.document());
                    continue;
                }
                _ => return collection.create_index(index).run(),
            };
            words.next();
        }
    }

    fn indexes(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let indexes = self.collection(words.next()).list_indexes()?.into_iter().map(|index| {
            let mut line = format!("{} {}", index.name, show(&index.keys));
            let flags = [
                (index.unique, "unique"),
                (index.sparse, "sparse"),
                (index.hidden, "hidden"),
                (index.multikey, "multikey"),
            ];
            for (flag, name) in flags {
                if flag {
                    write!(line, " {name}").unwrap();
                }
            }
            let projection = index.wildcard_projection.iter();
            projection.for_each(|projection| write!(line, " project {}", show(projection)).unwrap());
            index.only.iter().for_each(|only| write!(line, " only {}", show(only)).unwrap());
            index.collation.iter().for_each(|collation| write!(line, " collation {}", show(collation)).unwrap());
            line
        });
        Ok(indexes.collect::<Vec<_>>().join("\n"))
    }

    fn find(&self, words: &mut Words<'_>) -> Find<RawDocumentBuf> {
        let collection = self.collection(words.next());
        let mut find = collection.find(words.filter());
        loop {
            find = match words.peek() {
                "sort" | "project" | "skip" | "limit" | "hint" | "let" | "collation" => match words.next() {
                    "collation" => find.collation(words.document()),
                    "let" => find.let_variables(words.document()),
                    "sort" => find.sort(words.document()),
                    "project" => find.projection(words.document()),
                    "skip" => find.skip(words.number()),
                    "limit" => find.limit(words.number()),
                    _ => find.hint(words.hint()),
                },
                _ => return find,
            };
        }
    }

    fn aggregate(&self, words: &mut Words<'_>) -> Aggregate<RawDocumentBuf> {
        let collection = words.next();
        let mut stages = Vec::new();
        while words.is_document() {
            stages.push(words.document());
        }
        // As in the command, the number 1 stands for no collection.
        let aggregate = match collection {
            "1" => self.database.as_ref().unwrap().db.aggregate(stages).with_type(),
            name => self.collection(name).aggregate(stages).with_type(),
        };
        let aggregate = if words.take("let") { aggregate.let_variables(words.document()) } else { aggregate };
        if words.take("collation") { aggregate.collation(words.document()) } else { aggregate }
    }

    fn distinct(&self, words: &mut Words<'_>) -> (Find<RawDocumentBuf>, String) {
        let (collection, path) = (words.next(), words.next().to_owned());
        let rest = format!("{collection} {}", words.left);
        words.left = "";
        (self.find(&mut Words { left: &rest }), path)
    }

    fn explain(&self, words: &mut Words<'_>) -> Result<Explain, Error> {
        match words.next() {
            "aggregate" => self.aggregate(words).explain(ExplainVerbosity::QueryPlanner),
            "find" => self.find(words).explain(ExplainVerbosity::QueryPlanner),
            "count" => self.find(words).count().explain(ExplainVerbosity::QueryPlanner),
            "distinct" => {
                let (find, path) = self.distinct(words);
                find.distinct(&path).explain(ExplainVerbosity::QueryPlanner)
            }
            other => panic!("{other:?} cannot be explained"),
        }
    }

    fn update(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let many = match words.next() {
            "one" => false,
            "many" => true,
            other => panic!("update {other:?}?"),
        };
        let collection = self.collection(words.next());
        let (filter, update) = (words.document(), words.update());
        let update = if many { collection.update_many(filter, update) } else { collection.update_one(filter, update) };
        changed(update, words)
    }

    fn replace(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let collection = self.collection(words.next());
        let (filter, replacement) = (words.document(), raw(&words.document()));
        changed(collection.replace_one(filter, &replacement), words)
    }

    fn delete(&self, words: &mut Words<'_>) -> Result<String, Error> {
        let many = words.next() == "many";
        let collection = self.collection(words.next());
        let filter = words.document();
        let delete = if many { collection.delete_many(filter) } else { collection.delete_one(filter) };
        Ok(format!("deleted {}", delete.run()?))
    }

    fn take(&self, words: &mut Words<'_>) -> Result<String, Error> {
        assert!(words.take("and"), "expected `and` after `take`");
        let deletes = words.next() == "delete";
        let collection = self.collection(words.next());
        let filter = words.document();
        let found = if deletes {
            let mut delete = collection.find_one_and_delete(filter);
            loop {
                delete = match words.peek() {
                    "sort" | "project" => match words.next() {
                        "sort" => delete.sort(words.document()),
                        _ => delete.projection(words.document()),
                    },
                    _ => break delete.run()?,
                };
            }
        } else {
            let mut update = collection.find_one_and_update(filter, words.update());
            loop {
                update = match words.peek() {
                    "sort" | "project" | "after" | "upsert" => match words.next() {
                        "sort" => update.sort(words.document()),
                        "project" => update.projection(words.document()),
                        "after" => update.return_document(ReturnDocument::After),
                        _ => update.upsert(),
                    },
                    _ => break update.run()?,
                };
            }
        };
        Ok(found.map_or_else(|| "none".into(), |row| show(&row)))
    }
}

/// Fills in a template for document number `place`.
fn filled(template: &Bson, place: i32) -> Bson {
    match template {
        Bson::Document(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), filled(value, place))).collect::<Document>().into()
        }
        Bson::Array(elements) => elements.iter().map(|element| filled(element, place)).collect::<Vec<_>>().into(),
        Bson::String(text) => match text.strip_prefix("=i") {
            Some("") => place.into(),
            Some(rest) if rest.starts_with('/') => (place / rest[1..].parse::<i32>().unwrap()).into(),
            Some(rest) if rest.starts_with('%') => (place % rest[1..].parse::<i32>().unwrap()).into(),
            Some(_) | None => template.clone(),
        },
        other => other.clone(),
    }
}

fn changed(mut update: slate_core::Update, words: &mut Words<'_>) -> Result<String, Error> {
    loop {
        update = match words.peek() {
            "upsert" | "sort" | "hint" | "where" | "collation" => match words.next() {
                "collation" => update.collation(words.document()),
                "upsert" => update.upsert(),
                "sort" => update.sort(words.document()),
                "hint" => update.hint(words.hint()),
                _ => {
                    let mut filters = Vec::new();
                    while words.is_document() {
                        filters.push(words.document());
                    }
                    update.array_filters(filters)
                }
            },
            _ => break,
        };
    }
    let result = update.run()?;
    let mut output = format!("matched {} modified {}", result.matched, result.modified);
    if let Some(id) = result.upserted_id {
        write!(output, " upserted {}", show_value(id)).unwrap();
    }
    Ok(output)
}

fn show(document: &RawDocumentBuf) -> String {
    show_value(Bson::Document(document.try_into().unwrap()))
}

/// Formats a value as extended JSON, with quotes only around names that need them.
fn show_value(value: Bson) -> String {
    show_json(&value.into_relaxed_extjson())
}

fn show_json(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(elements) => {
            format!("[{}]", elements.iter().map(show_json).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Object(fields) => {
            let bare = |name: &str| {
                !name.is_empty()
                    && name.chars().all(|character| character.is_alphanumeric() || "_$.".contains(character))
            };
            let field = |(name, value): (&String, &serde_json::Value)| {
                let name = if bare(name) { name.clone() } else { format!("{name:?}") };
                format!("{name}: {}", show_json(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => value.to_string(),
    }
}
