//! Completes what is being entered: commands, options and their values, collections, indexes, fields and operators.

use std::collections::BTreeSet;

use bson::{Bson, doc};
use clap::ValueHint;
use slate_core::Access;

use super::{line, operators, paths, words};
use crate::{commands::indexes_of, endpoint::Endpoint, session::Session};

/// Number of documents that are read for their fields.
const SAMPLE: i64 = 50;

/// Maximum depth of the fields that are offered.
const DEPTH: usize = 3;

/// Returns the byte offset at which the completed word begins, and what it can become.
pub(super) fn complete(line: &str, session: &mut Session) -> (usize, Vec<String>) {
    let (words, open) = words::split_open(line);
    if open {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        return within_document(line, &texts, session);
    }
    let ends_with_space = line.is_empty() || line.ends_with(char::is_whitespace);
    let (start, prefix) = match words.last() {
        Some(word) if !ends_with_space => (word.start, word.text.as_str()),
        _ => (line.len(), ""),
    };
    let before = if ends_with_space { words.as_slice() } else { words.get(..words.len() - 1).unwrap_or_default() };
    let before: Vec<&str> = before.iter().map(|word| word.text.as_str()).collect();
    let mut found = candidates(&line::definition(), &before, prefix, session);
    found.retain(|candidate| candidate.starts_with(prefix));
    (start, found.iter().map(|candidate| written(candidate)).collect())
}

/// Returns what the last word of a command line can become. `definition` is that of the command line.
pub(crate) fn command_line(line: &str, definition: &clap::Command) -> Vec<String> {
    let (words, open) = words::split_open(line);
    let ends_with_space = line.ends_with(char::is_whitespace);
    // The first word is the program.
    let mut words = words.get(1..).unwrap_or_default();
    let prefix = match words.last() {
        _ if open => return Vec::new(),
        Some(word) if !ends_with_space => word.text.as_str(),
        _ => "",
    };
    if !ends_with_space {
        words = words.get(..words.len().saturating_sub(1)).unwrap_or_default();
    }
    let mut before: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let is_command = |word: &str| word.starts_with('-') || definition.find_subcommand(word).is_some();
    let has_url = before.first().is_some_and(|first| !is_command(first));
    let url = if has_url { Some(before.remove(0).to_owned()) } else { std::env::var("SLATE_URL").ok() };
    let is_first = before.is_empty();
    let mut found = candidates(definition, &before, prefix, &mut Session::at(url));
    if is_first && !has_url {
        found.extend(paths::urls(prefix));
    }
    found.retain(|candidate| candidate.starts_with(prefix));
    found
}

/// Returns a word as it is typed: in quotes if needed, and with a space after it. No space follows a word without
/// quotes that ends with `/` or `:`, because it can continue.
fn written(word: &str) -> String {
    let goes_on = word.ends_with(['/', ':']);
    let is_plain = !word.contains(|character: char| character.is_whitespace() || "{}[]()\"'#".contains(character));
    match (is_plain, goes_on) {
        (true, true) => word.to_owned(),
        (true, false) => format!("{word} "),
        (false, _) => format!("'{}' ", word.replace('\'', "\\'")),
    }
}

/// Returns the candidates for the word that follows `before` and begins with `prefix`.
fn candidates(definition: &clap::Command, before: &[&str], prefix: &str, session: &mut Session) -> Vec<String> {
    let mut definition = definition.clone();
    definition.build();
    let (command, arguments) = command(&definition, before);
    if command.has_subcommands() && !prefix.starts_with('-') {
        return command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .flat_map(clap::Command::get_name_and_visible_aliases)
            .map(str::to_owned)
            .collect();
    }
    if prefix.starts_with('-') {
        let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
        return options.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
    }
    let option = arguments.last().and_then(|word| word.strip_prefix("--"));
    let option = option.and_then(|name| command.get_arguments().find(|argument| argument.get_long() == Some(name)));
    if let Some(option) = option.filter(|option| option.get_action().takes_values()) {
        return values(option, before, prefix, session);
    }
    let place = positionals(command, arguments);
    let repeated = |argument: &&clap::Arg| argument.get_num_args().is_some_and(|number| number.max_values() > 1);
    let argument = command.get_positionals().nth(place).or_else(|| command.get_positionals().last().filter(repeated));
    argument.map_or_else(Vec::new, |argument| values(argument, before, prefix, session))
}

/// Returns the values that an argument can have.
fn values(argument: &clap::Arg, before: &[&str], prefix: &str, session: &mut Session) -> Vec<String> {
    match argument.get_id().as_str() {
        "collection" => collections(session),
        "field" => fields(before, session),
        "index" | "hint" => indexes(before, session),
        "urls" => paths::urls(prefix),
        _ if matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::DirPath) => paths::files(prefix),
        _ => argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
    }
}

/// Returns the command that words name, such as `explain find`, and the words after it.
fn command<'d, 'w>(definition: &'d clap::Command, words: &'w [&'w str]) -> (&'d clap::Command, &'w [&'w str]) {
    match words.split_first() {
        Some((first, rest)) => match definition.find_subcommand(first) {
            Some(command) => self::command(command, rest),
            // An option before the subcommand, as in `explain --analyze find`.
            None if definition.has_subcommands() && first.starts_with('-') => self::command(definition, rest),
            None => (definition, words),
        },
        None => (definition, words),
    }
}

/// Returns how many of the words are positional.
fn positionals(command: &clap::Command, words: &[&str]) -> usize {
    let mut count = 0;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some(name) => {
                let option = command.get_arguments().find(|argument| argument.get_long() == Some(name));
                if option.is_some_and(|option| option.get_action().takes_values()) {
                    words.next();
                }
            }
            None => count += 1,
        }
    }
    count
}

/// Completes a field or an operator in a document that is not closed yet.
fn within_document(line: &str, words: &[&str], session: &mut Session) -> (usize, Vec<String>) {
    let boundary = |character: char| character.is_whitespace() || "{[(,:\"'".contains(character);
    let start = line
        .rfind(boundary)
        .map_or(0, |at| at + line.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let prefix = line.get(start..).unwrap_or_default();
    // A name that is not an identifier is written in quotes, unless one is open.
    let quoted = line.get(..start).is_some_and(|before| before.ends_with(['"', '\'']));
    let mut found: Vec<String> = match prefix.starts_with('$') {
        // The value of a field, in an expression.
        true if quoted => fields(words, session).into_iter().map(|field| format!("${field}")).collect(),
        true => operators::of(words).into_iter().map(str::to_owned).collect(),
        false => fields(words, session),
    };
    found.retain(|candidate| candidate.starts_with(prefix));
    let is_plain = |name: &str| name.chars().all(|character| character.is_alphanumeric() || "_$".contains(character));
    let written = found.into_iter().map(|name| if quoted || is_plain(&name) { name } else { format!("\"{name}\"") });
    (start, written.collect())
}

fn collections(session: &mut Session) -> Vec<String> {
    // Nothing can be offered where the database cannot be read.
    session.endpoint(Access::ReadOnly).and_then(|target| target.names()).unwrap_or_default()
}

/// Returns the first word that is the name of a collection, with the database; `None` without one.
fn collection(words: &[&str], session: &mut Session) -> Option<(Endpoint, String)> {
    let names = collections(session);
    let name = words.iter().find(|word| names.iter().any(|name| name == *word))?;
    Some((session.endpoint(Access::ReadOnly).ok()?, (*name).to_owned()))
}

fn indexes(words: &[&str], session: &mut Session) -> Vec<String> {
    let Some((target, name)) = collection(words, session) else { return Vec::new() };
    let indexes = indexes_of(&target, &name, &bson::Document::new()).unwrap_or_default();
    indexes.iter().filter_map(|index| Some(index.get_str("name").ok()?.to_owned())).collect()
}

/// Returns the fields of a collection's first documents, and of documents within them as paths.
fn fields(words: &[&str], session: &mut Session) -> Vec<String> {
    let mut found = BTreeSet::new();
    let Some((target, name)) = collection(words, session) else { return Vec::new() };
    let sample = doc! { "find": name, "limit": SAMPLE, "singleBatch": true };
    for document in target.listed(&sample).unwrap_or_default() {
        add(&document, "", DEPTH, &mut found);
    }
    found.into_iter().collect()
}

fn add(document: &bson::Document, prefix: &str, depth: usize, found: &mut BTreeSet<String>) {
    for (name, value) in document {
        let path = format!("{prefix}{name}");
        let inner = match value {
            Bson::Document(inner) => Some(inner),
            Bson::Array(elements) => elements.first().and_then(Bson::as_document),
            _ => None,
        };
        if let Some(inner) = inner.filter(|_| depth > 1) {
            add(inner, &format!("{path}."), depth - 1, found);
        }
        found.insert(path);
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    fn session() -> Session {
        let mut session = Session::at(Some("memory:".into()));
        let database = session.create().unwrap();
        let users = database.collection("users");
        users
            .insert_one(&rawdoc! { "_id": 1, "name": "Ada", "full name": "x", "address": { "city": "Oslo" } })
            .unwrap();
        users.create_index(slate_core::Index::on(doc! { "name": 1 })).run().unwrap();
        for name in ["orders", "my users"] {
            database.collection(name).insert_one(&rawdoc! { "_id": 1 }).unwrap();
        }
        session
    }

    #[test]
    fn each_place_of_a_line_has_its_candidates() {
        let mut session = session();
        let mut check = |line: &str, start: usize, expected: &[&str]| {
            let found = complete(line, &mut session);
            assert_eq!(found, (start, expected.iter().map(|text| (*text).to_owned()).collect()), "{line}");
        };
        check("cou", 0, &["count "]);
        check("find ", 5, &["'my users' ", "orders ", "users "]);
        check("find us", 5, &["users "]);
        check("explain --analyze fi", 18, &["find "]);
        check("explain count or", 14, &["orders "]);
        check("explain count orders --ana", 21, &["--analyze "]);
        check("find users { na", 13, &["name"]);
        check("find users { \"ad", 14, &["address", "address.city"]);
        check("find users { address.", 13, &["\"address.city\""]);
        check("find users { fu", 13, &["\"full name\""]);
        check("find users { name: { $ni", 21, &["$nin"]);
        check("find users { $set", 13, &[]);
        check("update users { name: 1 } { $setO", 27, &["$setOnInsert"]);
        check("aggregate users [{ $sortB", 19, &["$sortByCount"]);
        check("aggregate users [{ $group: { _id: { $dateT", 36, &["$dateToParts", "$dateToString", "$dateTrunc"]);
        check("aggregate users [{ $match: { na", 29, &["name"]);
        check("aggregate users [{ $group: { _id: \"$na", 35, &["$name"]);
        check("aggregate users [{ $group: { _id: \"$address.c", 35, &["$address.city"]);
        check("find users {} --sor", 14, &["--sort "]);
        check("find users --limit 5 --format cs", 30, &["csv "]);
        check("find users --hint na", 18, &["name_1 "]);
        check("distinct users address.", 15, &["address.city "]);
        check("drop-index users ", 17, &["name_1 "]);
        check("count nowhere { a", 16, &[]);
        check("count my", 6, &["'my users' "]);
        check("copy memo", 5, &["memory:"]);
    }
}
