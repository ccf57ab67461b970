use super::{Direction, MAX_FIELDS};
use crate::{
    Code, Error, Result,
    number::Number,
    path::Path,
    raw::{Doc, Element, Kind, Names, Value},
};

/// The key pattern of an index: paths, each with a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    pub(crate) fields: Box<[(Path, Direction)]>,
    /// The first names of the paths.
    first_names: Names,
}

impl KeyPattern {
    /// Parses a key pattern, such as `{ "org": 1, "age": -1 }`. The sign of a nonzero number is the direction.
    ///
    /// # Errors
    /// Codes of MongoDB's `createIndexes`: `CannotCreateIndex` (67) for an empty pattern and invalid names or values;
    /// `BadValue` (2) for a repeated field; 13103 for more than 32 fields; `NotImplemented` (238) for kinds of indexes
    /// that Slate does not support (text, hashed, geospatial), by name. Wildcard indexes have a [`WildcardPattern`](crate::wildcard::WildcardPattern).
    pub fn parse(pattern: Doc<'_>) -> Result<Self> {
        check_size(pattern)?;
        let fields = fields(pattern.elements())?;
        let first_names = fields.iter().filter_map(|(path, _)| path.parts().first());
        let first_names = first_names.map(|part| part.name().as_bytes()).collect();
        Ok(Self { fields: fields.into(), first_names })
    }

    /// Returns the pattern of a part of a wildcard index.
    pub(crate) fn of_fields(fields: Box<[(Path, Direction)]>) -> Self {
        Self { fields, first_names: Names::default() }
    }

    /// Returns the pattern without fields: that of a wildcard index, whose entries can be about any field.
    pub fn of_no_field() -> Self {
        Self { fields: Box::default(), first_names: Names::default() }
    }

    /// Returns the paths and their directions; none for a wildcard index.
    pub fn fields(&self) -> &[(Path, Direction)] {
        &self.fields
    }

    /// Returns the fields of a document that the paths begin with, in the document's order.
    pub fn first_values<'a>(&self, doc: Doc<'a>) -> impl Iterator<Item = (usize, Value<'a>)> {
        doc.fields_of(&self.first_names).map(|field| (field.number, field.value))
    }
}

/// The kinds of indexes in MongoDB other than ordered ones.
const KINDS: [&str; 8] =
    ["2d", "2dsphere", "2dsphere_bucket", "columnstore", "geoHaystack", "hashed", "queryable_encrypted_range", "text"];

fn refused(message: &str) -> Error {
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

/// Checks the number of fields of a key pattern and its length in bytes.
pub(crate) fn check_size(pattern: Doc<'_>) -> Result<()> {
    if pattern.is_empty() {
        return Err(refused("index keys cannot be an empty document"));
    }
    if pattern.bytes().len() > 2048 {
        return Err(refused("the index key pattern is too large"));
    }
    if pattern.elements().nth(MAX_FIELDS).is_some() {
        return Err(Error::new(Code(13103), format!("an index has at most {MAX_FIELDS} fields")));
    }
    Ok(())
}

/// Parses fields of a key pattern.
pub(crate) fn fields<'p>(pattern: impl Iterator<Item = Element<'p>>) -> Result<Vec<(Path, Direction)>> {
    let mut fields: Vec<(Path, Direction)> = Vec::new();
    for element in pattern {
        let name = element.display_name();
        if fields.iter().any(|(path, _)| path.as_str() == name) {
            let message = "the field appears several times in the index key pattern";
            return Err(Error::new(Code::BAD_VALUE, message).at(name));
        }
        let field = field(element).map_err(|error| error.at(&*name))?;
        fields.push(field);
    }
    Ok(fields)
}

fn field(element: Element<'_>) -> Result<(Path, Direction)> {
    let name = element.display_name();
    if element.value.kind() == Kind::String {
        let kind = element.value.as_str().unwrap_or_default();
        return Err(match kind {
            "" => refused("values in the index key pattern cannot be empty strings"),
            kind if KINDS.binary_search(&kind).is_ok() => Error::unsupported(kind),
            kind => refused(&format!("unknown index plugin '{kind}'")),
        });
    }
    let direction = direction(element)?;
    let path = Path::parse(&name)?;
    for (place, part) in path.parts().iter().enumerate() {
        let name = part.name();
        if name.is_empty() {
            return Err(refused("index keys cannot contain an empty field"));
        }
        // Below the top level the fields of a DBRef are allowed.
        if name.starts_with('$') && (place == 0 || !matches!(name, "$db" | "$id" | "$ref")) {
            return Err(refused("an index key contains an illegal field name: it starts with '$'"));
        }
    }
    Ok((path, direction))
}

pub(crate) fn direction(element: Element<'_>) -> Result<Direction> {
    let kind = element.value.kind().alias();
    let number = Number::of(element.value).ok_or_else(|| {
        refused(&format!("values in an index key pattern are numbers or strings, not of type {kind}"))
    })?;
    if number.is_nan() {
        return Err(refused("values in the index key pattern cannot be NaN"));
    }
    match number.signum() {
        std::cmp::Ordering::Less => Ok(Direction::Descending),
        std::cmp::Ordering::Equal => Err(refused("values in the index key pattern cannot be 0")),
        std::cmp::Ordering::Greater => Ok(Direction::Ascending),
    }
}
