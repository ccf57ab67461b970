//! A semantic case: documents, a command and its expected effect.

use std::error::Error;

use bson::{Bson, Document, Regex};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) area: String,
    /// The collection of the command.
    pub(crate) collection: String,
    /// The initial documents by collection; a collection that is not listed does not exist.
    pub(crate) collections: Vec<(String, Vec<Bson>)>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) operation: String,
    /// The rest of the case. The command's arguments are copied from it unchanged, including those of wrong types.
    pub(crate) fields: Document,
    pub(crate) expected: Expected,
    pub(crate) rules: Rules,
    /// The write may fail; only the final content of the collection is known.
    pub(crate) may_be_refused: bool,
}

#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) collection: String,
    pub(crate) keys: Document,
    pub(crate) options: Document,
}

#[derive(Debug)]
pub(crate) enum Expected {
    /// Expected documents or values of the command, or of the find after a write; and a part of a write's reply.
    Answer { values: Option<Vec<Bson>>, reply: Option<Document> },
    /// The expected error code.
    Refusal(i32),
}

/// How results are compared.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) values: Order,
    /// Whether the order of fields matters.
    pub(crate) fields: Order,
    pub(crate) numbers: Precision,
    /// Array fields whose elements can be in any order.
    pub(crate) unordered: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Matters,
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Exact,
    /// Relative tolerance of 1e-9.
    Approximate,
}

impl Case {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Box<dyn Error>> {
        let mut fields: Document = json(line)?.try_into()?;
        if let Some(pipeline) = fields.get_mut("pipeline") {
            read_regexes(pipeline);
        }
        let text = |name: &str| fields.get_str(name).map(str::to_owned);
        let collection = fields.get_str("collection").unwrap_or("c").to_owned();
        let mut collections = Vec::new();
        if !is_true(&fields, "collection_missing") {
            collections.push((collection.clone(), latest(array(&fields, "docs").unwrap_or_default())));
        }
        if let Ok(others) = fields.get_document("other_collections") {
            collections.extend(others.keys().map(|name| (name.clone(), array(others, name).unwrap_or_default())));
        }
        let expected = match fields.get("expected_error").and_then(as_i32) {
            Some(code) => Expected::Refusal(code),
            None => {
                let reply = fields.get_document("expected_reply").cloned().ok();
                Expected::Answer { values: array(&fields, "expected"), reply }
            }
        };
        let indexes = array(&fields, "indexes").unwrap_or_default();
        Ok(Self {
            id: text("id")?,
            area: text("area")?,
            operation: text("op")?,
            indexes: indexes.iter().filter_map(|index| Index::parse(index.as_document()?, &collection)).collect(),
            rules: Rules::parse(&fields),
            may_be_refused: is_true(&fields, "maybe_error"),
            collection,
            collections,
            expected,
            fields,
        })
    }

    pub(crate) fn options(&self) -> Document {
        self.fields.get_document("options").cloned().unwrap_or_default()
    }

    /// Returns whether the command writes at most one document, so that its failure must leave everything unchanged.
    pub(crate) fn writes_one(&self) -> bool {
        let options = self.options();
        match self.operation.as_str() {
            "update" => !is_true(&options, "multi"),
            "delete" => options.get("limit").and_then(as_i32) == Some(1),
            "insert" => array(&self.fields, "insert").is_some_and(|documents| documents.len() == 1),
            "findAndModify" => true,
            _ => false,
        }
    }
}

/// The most levels of a case. MongoDB's documents have up to 200, and a case wraps them in a few more.
const MOST_LEVELS: usize = 512;

/// Reads a line of JSON. The parser's own limit is 128 levels.
fn json(line: &[u8]) -> Result<Map<String, Value>, Box<dyn Error>> {
    if levels(line) > MOST_LEVELS {
        return Err(format!("a case has more than {MOST_LEVELS} levels").into());
    }
    let mut reader = serde_json::Deserializer::from_slice(line);
    reader.disable_recursion_limit();
    let fields = Map::deserialize(&mut reader)?;
    reader.end()?;
    Ok(fields)
}

/// Returns how many arrays and documents are within each other.
fn levels(line: &[u8]) -> usize {
    let (mut level, mut most) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                level += 1;
                most = most.max(level);
            }
            b']' | b'}' if !in_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Reads the regular expressions of `$regexMatch` and its relatives, which some cases have in the obsolete form
/// `{$regex: …, $options: …}`. In a filter, that form is an operator.
fn read_regexes(value: &mut Bson) {
    let fields = match value {
        Bson::Array(elements) => return elements.iter_mut().for_each(read_regexes),
        Bson::Document(fields) => fields,
        _ => return,
    };
    for (name, value) in fields.iter_mut() {
        if let (true, Bson::Document(operands)) = (name.starts_with("$regex"), &mut *value)
            && let Some(Bson::Document(regex)) = operands.get("regex")
            && let (Ok(pattern), Ok(options), 2) = (regex.get_str("$regex"), regex.get_str("$options"), regex.len())
            && let (Ok(pattern), Ok(options)) = (pattern.to_owned().try_into(), options.to_owned().try_into())
        {
            operands.insert("regex", Bson::RegularExpression(Regex { pattern, options }));
        }
        read_regexes(value);
    }
}

impl Index {
    /// Keys are a list of `[path, direction]`, or a single path.
    fn parse(index: &Document, collection: &str) -> Option<Self> {
        let keys = match index.get("keys")? {
            Bson::String(path) => [(path.clone(), Bson::Int32(1))].into_iter().collect(),
            Bson::Array(keys) => {
                let key = |key: &Bson| match key.as_array()?.as_slice() {
                    [Bson::String(path), direction] => Some((path.clone(), direction.clone())),
                    _ => None,
                };
                keys.iter().map(key).collect::<Option<Document>>()?
            }
            Bson::Document(keys) => keys.clone(),
            _ => return None,
        };
        let collection = index.get_str("coll").unwrap_or(collection).to_owned();
        Some(Self { collection, keys, options: index.get_document("opts").cloned().unwrap_or_default() })
    }
}

impl Rules {
    fn parse(fields: &Document) -> Self {
        let from_regress = fields.get_str("source").is_ok_and(|source| source.starts_with("microsoft/documentdb"));
        let sorted = fields.get_str("order").is_ok_and(|order| order == "sorted");
        let unordered = array(fields, "unordered_fields").unwrap_or_default();
        let order = |matters: bool| if matters { Order::Matters } else { Order::Free };
        Self {
            values: order(sorted),
            fields: order(from_regress),
            numbers: if is_true(fields, "approx") { Precision::Approximate } else { Precision::Exact },
            unordered: unordered.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        }
    }
}

/// Some sources delete and insert again before the command: the last document with an `_id` counts.
fn latest(documents: Vec<Bson>) -> Vec<Bson> {
    let id = |document: &Bson| document.as_document().and_then(|document| document.get("_id")).cloned();
    let mut latest: Vec<Bson> = Vec::with_capacity(documents.len());
    for document in documents {
        let new = id(&document);
        latest.retain(|other| new.is_none() || id(other) != new);
        latest.push(document);
    }
    latest
}

fn array(fields: &Document, name: &str) -> Option<Vec<Bson>> {
    fields.get_array(name).cloned().ok()
}

fn is_true(fields: &Document, name: &str) -> bool {
    fields.get_bool(name).unwrap_or_default()
}

fn as_i32(value: &Bson) -> Option<i32> {
    match value {
        Bson::Int32(int) => Some(*int),
        Bson::Int64(int) => i32::try_from(*int).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_of_mongodb_is_read() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let line = |doc: &str| format!(r#"{{"id": "i", "area": "a", "op": "find", "docs": [{doc}], "expected": []}}"#);
        for levels in [1, 127, 200] {
            let case = Case::parse(line(&nested(levels)).as_bytes()).unwrap();
            let mut inner = &case.collections[0].1[0];
            for _ in 0..levels {
                inner = inner.as_document().and_then(|document| document.get("a")).unwrap();
            }
            assert_eq!(inner, &Bson::Int32(1));
        }
        let error = Case::parse(line(&nested(100_000)).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("levels"));
        assert!(Case::parse(format!("{} x", line("{}")).as_bytes()).is_err());
    }

    #[test]
    fn every_double_is_read_exactly() {
        for text in
            ["5e-324", "-5e-324", "4.9406564584124654e-324", "2.2250738585072011e-308", "1e-310", "0.1", "1e308"]
        {
            let line = format!(
                r#"{{"id": "i", "area": "a", "op": "find", "docs": [{text}, {{"$numberDouble": "{text}"}}], "expected": []}}"#
            );
            let case = Case::parse(line.as_bytes()).unwrap();
            let expected = Bson::Double(text.parse().unwrap());
            assert_eq!(case.collections[0].1, [expected.clone(), expected], "{text}");
        }
    }
}
