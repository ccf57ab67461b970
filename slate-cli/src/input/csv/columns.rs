//! The columns of a table, and the documents that their cells become.

use std::collections::HashMap;

use bson::{Bson, RawBson, RawDocumentBuf, raw::CString};

use super::kind::{Kind, shortened};

/// Maximum number of names in a column's path, the JSON parser's limit.
const MAX_DEPTH: usize = 200;

/// A column: its path, and the type of its cells.
#[derive(Debug)]
pub(super) struct Column {
    path: String,
    kind: Kind,
    /// The kinds of cells so far; `None` if the header names the type.
    seen: Option<Seen>,
}

/// The kinds of cells that a column without a type has had so far.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Neither,
    Numbers,
    /// Numbers that are read as strings, because Slate would write them differently; an example.
    Strings(String),
    /// Numbers and such strings; this is already reported.
    Both,
}

impl Column {
    /// Reads a column's name, which can end with a type: `zip.string()`.
    fn new(name: &str) -> Result<Self, String> {
        if let Some((path, kind, argument)) = typed(name.trim_end()) {
            let kind = Kind::of(kind, argument).map_err(|why| {
                format!("the column {}: {why} (a name that ends so needs a type, as in {name}.auto())", shortened(name))
            })?;
            return Ok(Self { path: path.to_owned(), kind, seen: None });
        }
        Ok(Self { path: name.trim().to_owned(), kind: Kind::Auto, seen: Some(Seen::Neither) })
    }

    /// Records the kind of a value. Returns a message, once, if some numbers of the column become strings.
    fn note(&mut self, text: &str, value: &Bson) -> Option<String> {
        let seen = self.seen.as_mut()?;
        let example = match (value, &*seen) {
            (Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_), Seen::Neither) => {
                *seen = Seen::Numbers;
                return None;
            }
            (Bson::String(_), Seen::Neither) if is_number(text) => {
                *seen = Seen::Strings(shortened(text));
                return None;
            }
            (Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_), Seen::Strings(example)) => example.clone(),
            (Bson::String(_), Seen::Numbers) if is_number(text) => shortened(text),
            _ => return None,
        };
        *seen = Seen::Both;
        let (path, kind) = (&self.path, if example.contains('.') { "decimal" } else { "string" });
        let example = example.trim_matches('"');
        Some(format!(
            "column {path}: some cells are numbers and some, such as {example}, strings: name its type, as in {path}.{kind}()"
        ))
    }
}

/// Splits a column's name with a type into its path, the name of the type and the argument; `None` without a type.
fn typed(name: &str) -> Option<(&str, &str, &str)> {
    let inner = name.strip_suffix(')')?;
    inner.rmatch_indices('.').find_map(|(dot, _)| {
        let (kind, argument) = inner.get(dot + 1..)?.split_once('(')?;
        let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_word.then_some((inner.get(..dot)?, kind, argument))
    })
}

/// Returns whether a text is a number in any notation, such as `007` or `1e3`.
fn is_number(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// Splits a path at its first dot; `None` without a dot, or if a side of it is empty.
fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(first, rest)| !first.is_empty() && !rest.is_empty())
}

/// Returns whether a column of this name leads into a document.
pub(crate) fn is_path(name: &str) -> bool {
    split(name).is_some()
}

/// The columns of a table.
#[derive(Debug, Default)]
pub(super) struct Columns {
    list: Vec<Column>,
    fields: Fields,
    /// The values of a row.
    values: Vec<Option<Bson>>,
}

/// The fields of a document, in the order of the columns.
#[derive(Debug, Default)]
struct Fields {
    list: Vec<(CString, Content)>,
    /// Positions in `list`.
    places: HashMap<String, usize>,
}

#[derive(Debug)]
enum Content {
    /// The position of a column.
    Cell(usize),
    Document(Fields),
}

impl Columns {
    /// Reads the names of columns.
    ///
    /// # Errors
    /// Fails if a name cannot be that of a field, is too deep, has an unknown type, or excludes another name.
    pub(super) fn new(names: &[String]) -> Result<Self, String> {
        let mut columns = Self::default();
        for (at, name) in names.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(format!("column {} has no name", at + 1));
            }
            let column = Column::new(name)?;
            let depth = column.path.split('.').count();
            if depth > MAX_DEPTH {
                return Err(format!("the column {} leads into more than {MAX_DEPTH} documents", shortened(name)));
            }
            if is_path(&column.path) && column.path.split('.').any(str::is_empty) {
                return Err(format!("the column {} has an empty name beside a dot", shortened(name)));
            }
            columns.fields.insert(&column.path, &column.path, at, &columns.list)?;
            columns.list.push(column);
        }
        Ok(columns)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether no column has a type.
    pub(super) fn are_untyped(&self) -> bool {
        self.list.iter().all(|column| column.seen.is_some())
    }

    /// Makes a document of cells; an empty or missing cell is a missing field. Returns also what to report about a column.
    ///
    /// # Errors
    /// Fails if a cell is not UTF-8 or not of the type of its column.
    pub(super) fn document<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<&'a str>>,
    ) -> Result<(RawDocumentBuf, Option<String>), String> {
        let mut note = None;
        self.values.clear();
        for (column, cell) in self.list.iter_mut().zip(cells) {
            let text = cell.ok_or("the text is not UTF-8")?;
            if text.is_empty() {
                self.values.push(None);
                continue;
            }
            let value = column.kind.value(text).map_err(|why| format!("column {}: {why}", column.path))?;
            if note.is_none() {
                note = column.note(text, &value);
            }
            self.values.push(Some(value));
        }
        Ok((self.fields.document(&mut self.values)?.unwrap_or_default(), note))
    }
}

impl Fields {
    /// Adds a field for the column at this position, which follows the columns of `list`. `path` is the rest of `whole`,
    /// relative to these fields.
    fn insert(&mut self, path: &str, whole: &str, column: usize, list: &[Column]) -> Result<(), String> {
        let (name, rest) = split(path).map_or((path, None), |(name, rest)| (name, Some(rest)));
        let content = self.places.get(name).and_then(|place| self.list.get_mut(*place)).map(|(_, content)| content);
        let other = match (content, rest) {
            (Some(Content::Document(fields)), Some(rest)) => return fields.insert(rest, whole, column, list),
            (Some(Content::Document(fields)), None) => fields.first(),
            (Some(Content::Cell(other)), _) => *other,
            (None, rest) => {
                let content = match rest {
                    None => Content::Cell(column),
                    Some(rest) => {
                        let mut fields = Self::default();
                        fields.insert(rest, whole, column, list)?;
                        Content::Document(fields)
                    }
                };
                let field = CString::try_from(name);
                let field = field.map_err(|_| format!("the column {} has the character NUL", shortened(whole)))?;
                self.places.insert(name.to_owned(), self.list.len());
                self.list.push((field, content));
                return Ok(());
            }
        };
        let other = list.get(other).map_or("", |column| column.path.as_str());
        Err(if other == whole {
            format!("the header has the column {} twice", shortened(whole))
        } else {
            let (one, two) = (shortened(other), shortened(whole));
            format!("the columns {one} and {two} exclude each other: a field is a value or a document")
        })
    }

    /// Returns the position of the first column of these fields.
    fn first(&self) -> usize {
        match self.list.first() {
            Some((_, Content::Cell(column))) => *column,
            Some((_, Content::Document(fields))) => fields.first(),
            None => 0,
        }
    }

    /// Moves the values into a document; `None` if all are missing.
    fn document(&self, values: &mut [Option<Bson>]) -> Result<Option<RawDocumentBuf>, String> {
        let mut document = None;
        for (name, content) in &self.list {
            let value = match content {
                Content::Cell(column) => values.get_mut(*column).and_then(Option::take).map(RawBson::try_from),
                Content::Document(fields) => fields.document(values)?.map(|inner| Ok(RawBson::Document(inner))),
            };
            if let Some(value) = value {
                let value = value.map_err(|error| error.to_string())?;
                document.get_or_insert_with(RawDocumentBuf::new).append(name, value);
            }
        }
        Ok(document)
    }
}
