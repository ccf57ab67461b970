//! Recognizes what people type into MongoDB's shell, and names the command of `slate` that does the same.

/// Longest argument that a hint repeats, in characters.
const LONGEST_ARGUMENT: usize = 120;

/// Returns a hint that names the equivalent of a line of MongoDB's shell; `None` if the line is not recognized.
pub(crate) fn hint(line: &str) -> Option<String> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let end = line.find(|character: char| character.is_whitespace() || "(.[=".contains(character));
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    let argument = rest.trim();
    Some(match word {
        "show" if rest.starts_with(' ') => match argument {
            "collections" | "tables" => "`collections` lists the collections and views".into(),
            "dbs" | "databases" => "a URL names one database: `slate redb:PATH` opens another one".into(),
            "profile" | "log" | "logs" => "the library reports slow queries; `explain --analyze` measures one".into(),
            _ => "`help` lists the commands".into(),
        },
        "use" if rest.starts_with(' ') && !argument.contains(' ') => {
            format!("a URL names one database: `slate redb:{}` opens another one", abridged(argument))
        }
        "it" if rest.is_empty() => "`find` prints more documents with --limit; 0 is no limit".into(),
        "exit" | "quit" if rest == "()" => "`exit` leaves the shell".into(),
        "cls" if rest.is_empty() => "Ctrl-L clears the screen".into(),
        "load" if rest.starts_with('(') => "`slate URL < FILE` runs the commands of a file".into(),
        "rs" | "sh" if rest.starts_with('.') => "a database is one file, without replication and shards".into(),
        "var" | "let" | "const" | "for" | "print" | "printjson" | "function" if !rest.is_empty() => {
            "slate runs its own commands, not JavaScript: `help` lists them".into()
        }
        "db" if rest.is_empty() => "the URL names the database; `collections` lists the collections".into(),
        "db" if rest.starts_with(['.', '[']) => return of_database(rest),
        _ => return None,
    })
}

/// A step of `db.users.find({}).limit(5)`: a name, and the arguments if it is called.
#[derive(Debug)]
struct Step<'l> {
    name: &'l str,
    arguments: Option<Vec<&'l str>>,
}

impl Step<'_> {
    fn argument(&self, at: usize) -> Option<String> {
        self.arguments.as_ref()?.get(at).map(|argument| quoted(argument))
    }
}

/// Returns the command for a `db.…` call.
fn of_database(rest: &str) -> Option<String> {
    let steps = steps(rest)?;
    let call = steps.iter().position(|step| step.arguments.is_some())?;
    let (before, calls) = steps.split_at(call);
    let (method, more) = calls.split_first()?;
    let command = match (method.name, before) {
        // db.getCollection("users").find()
        ("getCollection", []) => {
            let name = method.arguments.as_ref()?.first()?.trim_matches(['"', '\'']);
            let (method, more) = more.split_first()?;
            of_collection(name, method, more)
        }
        (name, []) => match name {
            "getCollectionNames" | "getCollectionInfos" | "listCollections" => Some("collections".into()),
            "stats" => Some("stats".into()),
            "runCommand" | "adminCommand" => Some(format!("command {}", method.argument(0)?)),
            "aggregate" => Some(format!("command '{{ aggregate: 1, pipeline: {}, cursor: {{}} }}'", bare(method, 0))),
            "createCollection" => Some(format!("command '{{ create: {} }}'", bare(method, 0))),
            "createView" => {
                let (view, source, pipeline) = (bare(method, 0), bare(method, 1), bare(method, 2));
                Some(format!("command '{{ create: {view}, viewOn: {source}, pipeline: {pipeline} }}'"))
            }
            "help" => Some("help".into()),
            "version" | "serverBuildInfo" => return Some("`slate --version` prints the version".into()),
            "dropDatabase" => return Some("a database is a file: `drop` drops a collection".into()),
            _ => None,
        },
        (_, names) => {
            // The name of a collection can have dots.
            let names: Vec<&str> = names.iter().map(|step| step.name).collect();
            of_collection(&names.join("."), method, more)
        }
    };
    Some(match command {
        Some(command) => format!("in slate: {command}"),
        None => "`help` lists the commands; `command` runs one of MongoDB's, given as a document".into(),
    })
}

/// Returns the command for a method of a collection; `more` are the methods of its cursor.
fn of_collection(collection: &str, method: &Step<'_>, more: &[Step<'_>]) -> Option<String> {
    let c = quoted(collection);
    let (first, second) = (method.argument(0), method.argument(1));
    let filter = first.clone().map_or(String::new(), |filter| format!(" {filter}"));
    let option =
        |option: &str, value: Option<String>| value.map_or(String::new(), |value| format!(" {option} {value}"));
    let is_set = |name: &str| {
        let options = method.arguments.iter().flatten().skip(2);
        options
            .map(|options| options.split_whitespace().collect::<String>())
            .any(|set| set.contains(&format!("{name}:true")))
    };
    let upsert = if is_set("upsert") { " --upsert" } else { "" };
    let both = || Some(format!("{} {}", first.clone()?, second.clone()?));
    let mut command = match method.name {
        "explain" => {
            let (method, more) = more.split_first()?;
            return of_collection(collection, method, more).map(|command| format!("explain {command}"));
        }
        "find" => format!("find {c}{filter}{}", option("--project", second)),
        "findOne" => format!("find {c}{filter}{} --limit 1", option("--project", second)),
        "count" | "countDocuments" | "estimatedDocumentCount" => format!("count {c}{filter}"),
        "distinct" => format!("distinct {c} {}{}", first?, second.map_or(String::new(), |filter| format!(" {filter}"))),
        "aggregate" => format!("aggregate {c} {}", first?),
        "insertOne" | "insertMany" | "insert" | "save" => format!("insert {c} {}", first?),
        "updateOne" | "update" => format!("update {c} {}{upsert}", both()?),
        "updateMany" => format!("update {c} {} --many{upsert}", both()?),
        "replaceOne" => format!("update {c} {} --replace{upsert}", both()?),
        "deleteOne" => format!("delete {c} {}", first?),
        "deleteMany" | "remove" => format!("delete {c} {} --many", first?),
        "findOneAndUpdate" | "findOneAndReplace" | "findAndModify" | "findOneAndDelete" => {
            format!("command '{{ findAndModify: \"{}\", query: …, update: … }}'", abridged(collection))
        }
        "createIndex" | "ensureIndex" => {
            let unique = method.arguments.iter().flatten().nth(1).is_some_and(|options| options.contains("unique"));
            format!("create-index {c} {}{}", first?, if unique { " --unique" } else { "" })
        }
        "dropIndex" => format!("drop-index {c} {}", first?),
        "getIndexes" | "getIndices" => format!("indexes {c}"),
        "drop" => format!("drop {c}"),
        "stats" | "dataSize" | "totalSize" | "storageSize" => format!("stats {c}"),
        "validate" => format!("verify {c}"),
        _ => return None,
    };
    for step in more {
        let value = || step.argument(0).unwrap_or_default();
        match step.name {
            "sort" => command.push_str(&format!(" --sort {}", value())),
            "limit" => command.push_str(&format!(" --limit {}", value())),
            "skip" => command.push_str(&format!(" --skip {}", value())),
            "hint" => command.push_str(&format!(" --hint {}", value())),
            "projection" | "project" => command.push_str(&format!(" --project {}", value())),
            "collation" => command.push_str(&format!(" --collation {}", value())),
            "count" | "itcount" | "size" => command = format!("count {c}{filter}"),
            "explain" => command = format!("explain {command}"),
            _ => {}
        }
    }
    Some(command)
}

/// Returns an argument as a word of a command.
fn quoted(argument: &str) -> String {
    let argument = argument.trim();
    let text = argument.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\''])).unwrap_or(argument);
    let text = abridged(text);
    let is_plain = text.chars().all(|character| character.is_alphanumeric() || "_-.".contains(character));
    if is_plain && !text.is_empty() || text.contains('\'') { text } else { format!("'{text}'") }
}

/// Returns an argument as it is written within a document; `…` if it is missing.
fn bare(method: &Step<'_>, at: usize) -> String {
    let argument = method.arguments.as_ref().and_then(|arguments| arguments.get(at));
    argument.map_or("…".into(), |argument| abridged(&argument.replace('\'', "\"")))
}

fn abridged(text: &str) -> String {
    crate::message::abridged(&text.replace('\n', " "), LONGEST_ARGUMENT)
}

/// Splits `.users.find({}).limit(5)` into its steps. Returns `None` if it has another form.
fn steps(mut rest: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(|character: char| !(character.is_alphanumeric() || "_$-".contains(character)));
            (name, rest) = after.split_at(end.unwrap_or(after.len()));
        } else {
            let inside = rest.strip_prefix('[')?;
            let end = inside.find(']')?;
            (name, rest) = (inside.get(..end)?.trim_matches(['"', '\'']), inside.get(end + 1..)?);
        }
        let mut arguments = None;
        if rest.starts_with('(') {
            let end = closing(rest).unwrap_or(rest.len());
            let inside = rest.get(1..end)?;
            arguments = Some(split(inside));
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        rest = rest.trim_start();
        steps.push(Step { name, arguments });
    }
    Some(steps)
}

/// Returns the byte offset of the first character outside quotes for which `visit` returns true. Calls `visit` with the character
/// and the number of brackets that are open before it.
fn find_outside_quotes(text: &str, mut visit: impl FnMut(char, usize) -> bool) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, character) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(open) => {
                escaped = character == '\\';
                if character == open {
                    quote = None;
                }
            }
            None => {
                if visit(character, depth) {
                    return Some(at);
                }
                match character {
                    '"' | '\'' | '`' => quote = Some(character),
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }
    None
}

/// Returns the byte offset of the `)` that closes the first bracket.
fn closing(text: &str) -> Option<usize> {
    find_outside_quotes(text, |character, depth| character == ')' && depth == 1)
}

/// Splits arguments at the commas outside quotes and brackets.
fn split(mut arguments: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(at) = find_outside_quotes(arguments, |character, depth| character == ',' && depth == 0) {
        let (argument, rest) = arguments.split_at(at);
        found.push(argument.trim());
        arguments = rest.strip_prefix(',').unwrap_or(rest);
    }
    if !arguments.trim().is_empty() {
        found.push(arguments.trim());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn idioms_have_equivalents() {
        for (line, expected) in [
            ("db.users.find()", "find users"),
            ("db.users.find({ age: { $gt: 21 } });", "find users '{ age: { $gt: 21 } }'"),
            (
                "db.users.find({ age: 5 }, { name: 1 }).sort({ age: -1 }).skip(10).limit(5).pretty()",
                "find users '{ age: 5 }' --project '{ name: 1 }' --sort '{ age: -1 }' --skip 10 --limit 5",
            ),
            ("db.users.find({ name: 'it, (x)' }).count()", "count users { name: 'it, (x)' }"),
            ("db.users.findOne({ _id: 1 })", "find users '{ _id: 1 }' --limit 1"),
            ("db.getCollection('my users').find({})", "find 'my users' '{}'"),
            ("db['users'].countDocuments({ a: 1 })", "count users '{ a: 1 }'"),
            ("db.app.users.distinct('age', { a: 1 })", "distinct app.users age '{ a: 1 }'"),
            ("db.users.aggregate([{ $match: {} }])", "aggregate users '[{ $match: {} }]'"),
            ("db.users.insertOne({ a: 1 })", "insert users '{ a: 1 }'"),
            ("db.users.insertMany([{ a: 1 }, { a: 2 }])", "insert users '[{ a: 1 }, { a: 2 }]'"),
            (
                "db.users.updateOne({ a: 1 }, { $set: { b: 2 } }, { upsert: true })",
                "update users '{ a: 1 }' '{ $set: { b: 2 } }' --upsert",
            ),
            ("db.users.updateMany({}, { $inc: { n: 1 } })", "update users '{}' '{ $inc: { n: 1 } }' --many"),
            ("db.users.replaceOne({ a: 1 }, { b: 1 })", "update users '{ a: 1 }' '{ b: 1 }' --replace"),
            ("db.users.deleteMany({ a: 1 })", "delete users '{ a: 1 }' --many"),
            ("db.users.deleteOne({ a: 1 })", "delete users '{ a: 1 }'"),
            ("db.users.createIndex({ mail: 1 }, { unique: true })", "create-index users '{ mail: 1 }' --unique"),
            ("db.users.dropIndex('mail_1')", "drop-index users mail_1"),
            ("db.users.getIndexes()", "indexes users"),
            ("db.users.drop()", "drop users"),
            ("db.users.stats()", "stats users"),
            ("db.users.explain().find({ a: 1 })", "explain find users '{ a: 1 }'"),
            ("db.users.find({ a: 1 }).explain('executionStats')", "explain find users '{ a: 1 }'"),
            ("db.getCollectionNames()", "collections"),
            ("db.stats()", "stats"),
            ("db.runCommand({ ping: 1 })", "command '{ ping: 1 }'"),
            ("db.createCollection('users')", "command '{ create: \"users\" }'"),
        ] {
            assert_eq!(hint(line), Some(format!("in slate: {expected}")), "{line}");
        }
        for (line, part) in [
            ("show collections", "`collections`"),
            ("show tables", "`collections`"),
            ("show dbs", "slate redb:PATH"),
            ("use shop", "slate redb:shop"),
            ("db", "the URL"),
            ("it", "--limit"),
            ("exit()", "`exit`"),
            ("var x = db.users.find()", "not JavaScript"),
            ("const x = 5", "not JavaScript"),
            ("db.users.mapReduce(1, 2)", "`command`"),
            ("db.users.renameCollection('x')", "`command`"),
            ("rs.status()", "replication"),
        ] {
            assert!(hint(line).is_some_and(|hint| hint.contains(part)), "{line}: {:?}", hint(line));
        }
        for line in ["find users", "fnid users", "user", "showing", "database", "db5", "", "items", "exit"] {
            assert_eq!(hint(line), None, "{line}");
        }
        let long = format!("db.users.insertOne({{ text: \"{}\" }})", "x".repeat(1_000_000));
        assert!(hint(&long).is_some_and(|hint| hint.len() < 200));
    }
}
