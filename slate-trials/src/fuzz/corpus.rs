//! Writes `fuzz/corpus`: the inputs with which fuzzers begin, as texts. Those of the query language come from the scripts of
//! slate-core's tests: a few short examples that together contain every operator that the scripts use and the target accepts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use bson::{Bson, Document, doc};
use slate_core::OperatorKind;

use super::{TARGETS, Verdict};

/// The longest input in bytes.
const LONGEST: usize = 400;

/// Examples that do not come from scripts: target, name, and text.
const WRITTEN: [(&str, &str, &str); 19] = [
    ("config", "memory", "url = 'memory:'\n"),
    (
        "config",
        "all",
        "url = 'redb:shop.slate'\naccess = 'read_only'\ndurability = 'deferred'\nrecovery = 'when_opened'\nsharing = 'with_readers'\nverification = 'when_opened'\ncache = '256MiB'\nlock_timeout = '250ms'\nopen_timeout = '5s'\nmemory_limit = 1048576\nslow_query_threshold = '50ms'\ntemp_directory = '/var/tmp'\n",
    ),
    (
        "csv",
        "types",
        "n.int32(),d.date(2006-01-02),s.string(),x.auto(),f.double(),e.decimal(),b.boolean()\n1,2024-02-29,a,7,0.5,1.10,true\n",
    ),
    ("csv", "quotes", "a,b.c,a.0\n\"x\"\"y\n\",,1\n"),
    (
        "json",
        "extended",
        "{\"_id\":{\"$oid\":\"0123456789abcdef01234567\"},\"d\":{\"$date\":{\"$numberLong\":\"1\"}},\"n\":{\"$numberDecimal\":\"1.0\"},\"b\":{\"$binary\":{\"base64\":\"AAEC\",\"subType\":\"00\"}},\"t\":{\"$timestamp\":{\"t\":1,\"i\":2}}}\n",
    ),
    (
        "json",
        "old",
        "{\"d\":{\"$date\":\"2024-02-29T00:00:00Z\"},\"r\":{\"$regex\":\"a\",\"$options\":\"i\"},\"b\":{\"$binary\":\"AAEC\",\"$type\":\"00\"},\"n\":{\"$numberLong\":\"5\"}}\n",
    ),
    (
        "json",
        "shell",
        "{_id: ObjectId('0123456789abcdef01234567'), d: ISODate('2024-02-29'), n: NumberLong(5), r: /a/i, 'x': [1, 2,], /* c */ u: undefined}\n",
    ),
    ("json", "list", "[{\"a\":1},{\"a\":[1,{\"b\":null}]}]"),
    ("url", "memory", "memory:"),
    ("url", "backup", "memory:FOLDER/backup"),
    ("url", "redb", "redb:FOLDER/db"),
    ("url", "missing", "redb:FOLDER/none"),
    ("url", "slashes", "rocksdb://FOLDER"),
    ("url", "tikv", "tikv://pd1:2379,pd2:2379/shop?ca=a&cert=b&key=c"),
    (
        "document",
        "types",
        "{\"_id\":1,\"a\":{\"$numberDecimal\":\"1.0\"},\"b\":[1,{\"c\":null}],\"d\":{\"$date\":{\"$numberLong\":\"1\"}}}",
    ),
    ("stored", "fields", "{\"_id\":1,\"a\":1,\"b\":\"text\",\"c\":[1,2,{\"d\":{}}],\"e\":null,\"f\":0.5,\"g\":true}"),
    (
        "key",
        "values",
        "[1,{\"$numberDecimal\":\"1.00\"},\"a\",null,[1,[2]],{\"a\":{\"b\":1}},{\"$date\":{\"$numberLong\":\"1\"}},true]",
    ),
    (
        "key",
        "numbers",
        "[0.1,{\"$numberLong\":\"9007199254740993\"},{\"$numberDouble\":\"NaN\"},{\"$numberDecimal\":\"-Infinity\"}]",
    ),
    ("sort", "paths", "{\"a\":1,\"b.c.d\":-1}"),
];

/// Commands, the examples of the targets `command` and `message`.
const COMMANDS: [&str; 12] = [
    "{\"find\":\"c\",\"filter\":{\"a\":{\"$gt\":0}},\"sort\":{\"a\":-1},\"projection\":{\"a\":1},\"limit\":1}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$group\":{\"_id\":\"$a\",\"n\":{\"$sum\":1}}}],\"cursor\":{}}",
    "{\"insert\":\"c\",\"documents\":[{\"_id\":3},{\"a\":[1,2]}],\"ordered\":false}",
    "{\"update\":\"c\",\"updates\":[{\"q\":{\"a\":1},\"u\":{\"$set\":{\"b\":2}},\"multi\":true,\"upsert\":true}]}",
    "{\"delete\":\"c\",\"deletes\":[{\"q\":{\"a\":1},\"limit\":0}]}",
    "{\"findAndModify\":\"c\",\"query\":{\"a\":1},\"update\":[{\"$set\":{\"b\":\"$a\"}}],\"new\":true}",
    "{\"createIndexes\":\"c\",\"indexes\":[{\"key\":{\"a\":1},\"name\":\"a_1\",\"unique\":true,\"partialFilterExpression\":{\"a\":{\"$gt\":1}}}]}",
    "{\"create\":\"d\",\"validator\":{\"$jsonSchema\":{\"required\":[\"a\"]}},\"collation\":{\"locale\":\"en\",\"strength\":2}}",
    "{\"explain\":{\"find\":\"c\",\"filter\":{\"a\":1}},\"verbosity\":\"executionStats\"}",
    "{\"bulkWrite\":1,\"ops\":[{\"insert\":0,\"document\":{\"_id\":9}},{\"update\":0,\"filter\":{},\"updateMods\":{\"$inc\":{\"a\":1}}}],\"nsInfo\":[{\"ns\":\"test.c\"}]}",
    "{\"renameCollection\":\"test.c\",\"to\":\"other.c\",\"dropTarget\":true}",
    "{\"listCollections\":1,\"filter\":{\"name\":\"c\"},\"cursor\":{\"batchSize\":1}}",
];

/// Operands, of which each expression operator should accept one.
const OPERANDS: [&str; 46] = [
    "1",
    "[1,2]",
    "[7,2,3]",
    "\"text\"",
    "[\"text\",\"t\"]",
    "[\"text\",1,2]",
    "[\"text\",\"t\",0,4]",
    "true",
    "[true,1]",
    "{}",
    "\"$a\"",
    "[[1,2],[2,3]]",
    "[[1,2],1]",
    "[[1,2],0,1]",
    "[1,[1,2]]",
    "[[\"a\",\"b\"]]",
    "[[[\"a\",1]]]",
    "[{\"a\":1},{\"b\":2}]",
    "{\"a\":1}",
    "[{\"a\":1}]",
    "{\"$date\":{\"$numberLong\":\"1\"}}",
    "{\"date\":{\"$date\":{\"$numberLong\":\"1\"}}}",
    "{\"$timestamp\":{\"t\":1,\"i\":2}}",
    "{\"date\":{\"$date\":{\"$numberLong\":\"1\"}},\"unit\":\"day\"}",
    "{\"startDate\":{\"$date\":{\"$numberLong\":\"1\"}},\"unit\":\"day\",\"amount\":1}",
    "{\"startDate\":{\"$date\":{\"$numberLong\":\"1\"}},\"endDate\":{\"$date\":{\"$numberLong\":\"9\"}},\"unit\":\"day\"}",
    "{\"dateString\":\"2024-02-29\"}",
    "{\"year\":2024,\"month\":2}",
    "\"0123456789abcdef01234567\"",
    "\"01234567-89ab-cdef-0123-456789abcdef\"",
    "{\"input\":\"text\"}",
    "{\"input\":\"text\",\"chars\":\"t\"}",
    "{\"input\":\"text\",\"regex\":\"t\"}",
    "{\"input\":\"text\",\"find\":\"t\",\"replacement\":\"x\"}",
    "{\"input\":\"1\",\"to\":\"int\"}",
    "{\"input\":[1,2],\"in\":\"$$this\"}",
    "{\"input\":[1,2],\"cond\":{\"$gt\":[\"$$this\",1]}}",
    "{\"input\":[1,2],\"initialValue\":0,\"in\":{\"$add\":[\"$$value\",\"$$this\"]}}",
    "{\"input\":[2,1],\"n\":1}",
    "{\"input\":[2,1],\"sortBy\":1}",
    "{\"input\":[2,1],\"p\":[0.5],\"method\":\"approximate\"}",
    "{\"input\":[2,1],\"method\":\"approximate\"}",
    "{\"inputs\":[[1],[2]]}",
    "{\"field\":\"a\",\"input\":{\"a\":1},\"value\":2}",
    "{\"branches\":[{\"case\":true,\"then\":1}],\"default\":2}",
    "{\"vars\":{\"x\":1},\"in\":\"$$x\"}",
];

/// Operands, of which each filter or update operator should accept one.
const FIELD_OPERANDS: [&str; 16] = [
    "1",
    "\"a\"",
    "true",
    "[1,2]",
    "[2,1]",
    "[[0,0],[9,9]]",
    "{}",
    "{\"b\":1}",
    "{\"$gt\":1}",
    "{\"$each\":[1,2],\"$slice\":-2}",
    "{\"and\":7}",
    "\"i\"",
    "null",
    "[{\"b\":1}]",
    "[{\"$elemMatch\":{\"b\":1}}]",
    "{\"$type\":\"date\"}",
];

/// Returns for each operator the call with the first operand that the target accepts. Leaves out operators without one.
fn accepted_calls(
    names: &BTreeSet<&str>,
    operands: &[&str],
    call: impl Fn(&str, &str) -> String,
    target: &str,
) -> Vec<String> {
    let target = TARGETS.iter().find(|known| known.name == target);
    let is_accepted = |text: &String| target.is_some_and(|target| (target.call)(text.as_bytes()) == Verdict::Accepted);
    names.iter().filter_map(|name| operands.iter().map(|operand| call(name, operand)).find(is_accepted)).collect()
}

/// Returns the accepted calls of a target's operators, in texts of up to eight calls each.
fn calls(target: &str) -> Vec<String> {
    let joined = |calls: Vec<String>, begin: &str, end: &str| {
        calls.chunks(8).map(|calls| format!("{begin}{}{end}", calls.join(","))).collect::<Vec<String>>()
    };
    match target {
        "expression" => {
            let call = |name: &str, operand: &str| format!("{{\"{name}\":{operand}}}");
            joined(accepted_calls(&OperatorKind::Expression.names(), &OPERANDS, call, target), "[", "]")
        }
        "filter" => {
            let call = |name: &str, operand: &str| format!("{{\"a\":{{\"{name}\":{operand}}}}}");
            joined(accepted_calls(&OperatorKind::Filter.names(), &FIELD_OPERANDS, call, target), "{\"$or\":[", "]}")
        }
        "update" => {
            let call = |name: &str, operand: &str| format!("{{\"{name}\":{{\"x.y\":{operand}}}}}");
            accepted_calls(&OperatorKind::Update.names(), &FIELD_OPERANDS, call, target)
        }
        _ => Vec::new(),
    }
}

/// Writes the corpus into `folder`, with a subfolder for each target. Removes nothing, so that inputs that a fuzzer has found stay.
///
/// # Errors
/// Fails if the scripts cannot be read or the folder cannot be written to.
pub fn write(folder: &Path) -> io::Result<()> {
    let mut examples = Examples::default();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slate-core/tests/scripts");
    let mut paths =
        fs::read_dir(scripts)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        fs::read_to_string(path)?.lines().for_each(|line| examples.add(line));
    }
    for target in TARGETS {
        let inputs = folder.join(target.name);
        fs::create_dir_all(&inputs)?;
        let written = WRITTEN.iter().filter(|(name, ..)| *name == target.name);
        for (_, name, text) in written {
            fs::write(inputs.join(name), text)?;
        }
        if matches!(target.name, "command" | "message") {
            for text in COMMANDS {
                let name: String = text.chars().skip(2).take_while(|character| *character != '"').collect();
                fs::write(inputs.join(name), text)?;
            }
        }
        for (name, text) in examples.chosen(target.name, |text| (target.call)(text.as_bytes()) == Verdict::Accepted) {
            fs::write(inputs.join(name), text)?;
        }
        for (number, text) in calls(target.name).iter().enumerate() {
            fs::write(inputs.join(format!("calls-{number}")), text)?;
        }
        // Targets whose inputs are not text begin with accepted inputs from a fixed seed.
        if fs::read_dir(&inputs)?.next().is_none() {
            let mut random = fastrand::Rng::with_seed(1);
            let inputs_of_seed = std::iter::repeat_with(|| (0..100).map(|_| random.u8(..)).collect::<Vec<u8>>());
            let accepted = inputs_of_seed.take(1_000).filter(|data| (target.call)(data) == Verdict::Accepted);
            for (number, data) in accepted.take(8).enumerate() {
                fs::write(inputs.join(format!("random-{number}")), data)?;
            }
        }
    }
    Ok(())
}

/// The examples of the scripts, by target.
#[derive(Default)]
struct Examples(BTreeMap<&'static str, BTreeSet<String>>);

impl Examples {
    /// Adds the examples in a line of a script: a command, its collection, and arguments, of which the first ones have no name before
    /// them.
    fn add(&mut self, line: &str) {
        let parts = parts(line);
        let words: Vec<&str> = parts.iter().map_while(Part::word).collect();
        let arguments: Vec<&Bson> = parts.iter().skip(words.len()).map_while(Part::value).collect();
        match (words.first().copied().unwrap_or_default(), &*arguments) {
            ("find" | "count" | "explain" | "delete" | "take", [Bson::Document(filter)]) => {
                self.insert("filter", filter)
            }
            ("update", [_, Bson::Document(update)]) => self.insert("update", update),
            ("update", [_, stages @ Bson::Array(_)]) => self.insert_value("update", stages),
            ("index", [Bson::Document(keys)]) => self.insert("index", keys),
            ("aggregate", stages @ [_, ..]) => {
                self.insert_value("pipeline", &Bson::Array(stages.iter().map(|stage| (*stage).clone()).collect()));
                for stage in stages.iter().filter_map(|stage| stage.as_document()) {
                    self.expressions(stage);
                }
            }
            _ => {}
        }
        for pair in parts.windows(2) {
            match pair {
                [Part::Word(word), Part::Value(Bson::Document(document))] if word == "sort" => {
                    self.insert("sort", document)
                }
                [Part::Word(word), Part::Value(Bson::Document(document))] if word == "project" => {
                    self.insert("projection", document);
                }
                _ => {}
            }
        }
    }

    /// Adds the expressions of a stage that computes fields.
    fn expressions(&mut self, stage: &Document) {
        for name in ["$project", "$set", "$addFields"] {
            for (_, value) in stage.get_document(name).into_iter().flatten() {
                if let Bson::Document(expression) = value
                    && expression.keys().next().is_some_and(|key| key.starts_with('$'))
                {
                    self.insert("expression", expression);
                }
            }
        }
    }

    fn insert(&mut self, target: &'static str, document: &Document) {
        self.insert_value(target, &Bson::Document(document.clone()));
    }

    fn insert_value(&mut self, target: &'static str, value: &Bson) {
        let text = value.clone().into_relaxed_extjson().to_string();
        if text.len() <= LONGEST {
            self.0.entry(target).or_default().insert(text);
        }
    }

    /// Returns a few accepted examples, by name, that together contain every operator in the accepted examples. Repeatedly takes the one
    /// with the most missing operators, among equals the shortest, and names it after its first missing operator.
    fn chosen(&self, target: &str, is_accepted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let Some(texts) = self.0.get(target) else { return Vec::new() };
        let operators: BTreeSet<&str> = OperatorKind::ALL.into_iter().flat_map(OperatorKind::names).collect();
        let of_text = |text: &str| -> BTreeSet<String> {
            let words = text.split('"').filter(|word| operators.contains(word));
            words.map(str::to_owned).collect()
        };
        let mut left: Vec<(BTreeSet<String>, &String)> =
            texts.iter().filter(|text| is_accepted(text)).map(|text| (of_text(text), text)).collect();
        let (mut covered, mut chosen) = (BTreeSet::new(), Vec::new());
        loop {
            left.sort_by_key(|(operators, text)| (usize::MAX - operators.difference(&covered).count(), text.len()));
            let Some((operators, text)) = left.first() else { break };
            let Some(first) = operators.difference(&covered).next() else { break };
            chosen.push((first.trim_start_matches('$').to_owned(), (*text).clone()));
            covered.extend(operators.clone());
        }
        if chosen.is_empty() {
            chosen.extend(
                left.iter().take(4).enumerate().map(|(at, (_, text))| (format!("example-{at}"), (*text).clone())),
            );
        }
        chosen
    }
}

/// A part of a line.
enum Part {
    Word(String),
    Value(Bson),
}

impl Part {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Value(_) => None,
        }
    }

    fn value(&self) -> Option<&Bson> {
        match self {
            Self::Word(_) => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// Splits a line into words and values. A value that cannot be read is an empty document.
fn parts(line: &str) -> Vec<Part> {
    let (mut parts, mut rest) = (Vec::new(), line.trim());
    while !rest.is_empty() {
        let end = if rest.starts_with(['{', '[']) { end_of_value(rest) } else { rest.find(' ').unwrap_or(rest.len()) };
        let (part, later) = rest.split_at(end);
        parts.push(if rest.starts_with(['{', '[']) {
            Part::Value(slate_cli::fuzz::argument(part).unwrap_or_else(|| doc! {}.into()))
        } else {
            Part::Word(part.to_owned())
        });
        rest = later.trim_start();
    }
    parts
}

/// Returns the length of the value that the text begins with: the offset after its closing bracket.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' => is_in_string = !is_in_string,
            _ if is_in_string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}
