use std::fmt;

use crate::{
    Code, Error, Result,
    collation::Collation,
    key::Direction,
    number::{Number, Rounding},
    path::Path,
    pattern::MAX_FIELDS,
    raw::{Doc, Element},
};

/// A sort: paths, each with a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    pub(super) fields: Box<[(Path, Direction)]>,
    natural: Option<Direction>,
    pub(super) collation: Option<Collation>,
}

impl Sort {
    /// Parses a sort, such as `{ "age": -1, "name": 1 }`. An empty one requires no order.
    ///
    /// # Errors
    /// MongoDB's codes: 15974 for a direction that is not a number, 15975 for one that is not 1 or -1 after truncation,
    /// 17312 for documents in its place, 13103 for more than 32 fields, 40352, 40353, 15998 and 16410 for invalid
    /// names, 7472500 for a field that is given twice, `BadValue` (2) for an invalid `$natural`; `NotImplemented` (238) for `$meta`.
    pub fn parse(sort: Doc<'_>) -> Result<Self> {
        if let Some(element) = sort.elements().find(|element| element.name == b"$natural") {
            let natural = natural(sort, element)?;
            return Ok(Self { fields: Box::default(), natural: Some(natural), collation: None });
        }
        let mut fields: Vec<(Path, Direction)> = Vec::new();
        for element in sort.elements() {
            let name = element.display_name();
            let direction = direction(element).map_err(|error| error.at(&*name))?;
            let path = path(&name).map_err(|error| error.at(&*name))?;
            if fields.iter().any(|(before, _)| before.as_str() == path.as_str()) {
                return Err(Error::new(Code(7_472_500), "a sort has a field twice").at(&*name));
            }
            fields.push((path, direction));
        }
        if fields.len() > MAX_FIELDS {
            return Err(Error::new(Code(13103), format!("a sort has at most {MAX_FIELDS} fields")));
        }
        Ok(Self { fields: fields.into(), natural: None, collation: None })
    }

    /// Returns the sort by one path.
    pub fn by(path: Path, direction: Direction) -> Self {
        Self { fields: Box::new([(path, direction)]), natural: None, collation: None }
    }

    /// Returns the same sort with strings compared by a collation.
    #[must_use]
    pub fn with_collation(self, collation: Option<Collation>) -> Self {
        Self { collation, ..self }
    }

    /// Returns the same sort for records whose ties are ordered by `_id`, without an ascending `_id` at its end. An `_id` that
    /// other fields follow stays: these fields do not affect the order, but two of them may be arrays, which is an error. With a
    /// collation the `_id` stays, too, because the order of the records does not use the collation.
    #[must_use]
    pub fn up_to_id(mut self) -> Self {
        let is_id =
            |(path, direction): &(Path, Direction)| path.as_str() == "_id" && *direction == Direction::Ascending;
        if self.collation.is_none()
            && let [_, .., last] = &*self.fields
            && is_id(last)
        {
            let before = self.fields.len() - 1;
            self.fields = self.fields.iter().take(before).cloned().collect();
        }
        self
    }

    /// Returns the collation that compares the strings, if there is one.
    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_ref()
    }

    /// Returns the paths and their directions, the most significant first; empty if no order is required.
    pub fn fields(&self) -> &[(Path, Direction)] {
        &self.fields
    }

    /// Returns whether no order is required, neither by value nor `$natural`.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.natural.is_none()
    }

    /// Returns the direction of `$natural`, the order of the records, if the sort requires it.
    pub fn natural(&self) -> Option<Direction> {
        self.natural
    }
}

/// Writes the sort as in a query, without quotes.
impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.iter().map(|(path, direction)| (path.as_str(), *direction));
        let fields = self.natural.iter().map(|direction| ("$natural", *direction)).chain(fields);
        let fields: Vec<String> = fields.map(|(path, direction)| format!("{path}: {}", direction.sign())).collect();
        write!(f, "{{ {} }}", fields.join(", "))
    }
}

fn natural(sort: Doc<'_>, element: Element<'_>) -> Result<Direction> {
    if sort.elements().count() > 1 {
        return Err(Error::new(Code::BAD_VALUE, "'$natural' cannot be part of a compound sort").at("$natural"));
    }
    match Number::of(element.value).and_then(Number::to_i64) {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => Err(Error::new(Code::BAD_VALUE, "a $natural sort is 1 or -1").at("$natural")),
    }
}

fn direction(element: Element<'_>) -> Result<Direction> {
    if let Some(expression) = element.value.as_document() {
        return Err(match expression.elements().next() {
            Some(first) if first.name == b"$meta" && expression.elements().count() == 1 => Error::unsupported("$meta"),
            Some(first) if first.name == b"$meta" => {
                Error::new(Code::FAILED_TO_PARSE, "a $meta sort has no other keys beside $meta")
            }
            _ => Error::new(Code(17312), "$meta is the only expression that a sort takes"),
        });
    }
    let number = Number::of(element.value).ok_or_else(|| Error::new(Code(15974), "a sort direction is a number"))?;
    // As in MongoDB, decimals are rounded and doubles are truncated.
    let whole = match number {
        Number::Decimal(decimal) => Number::Decimal(decimal.to_places(0, Rounding::HalfEven)),
        number => number,
    };
    match whole.to_i64_truncating() {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => Err(Error::new(Code(15975), "a sort direction is 1 (ascending) or -1 (descending)")),
    }
}

fn path(name: &str) -> Result<Path> {
    let refused = |code, message: &'static str| Err(Error::new(Code(code), message));
    if name.is_empty() {
        return refused(40352, "a field path cannot be empty");
    }
    if name.ends_with('.') {
        return refused(40353, "a field path must not end with a '.'");
    }
    for part in name.split('.') {
        if part.is_empty() {
            return refused(15998, "a field path cannot have empty names");
        }
        // The fields of a DBRef are allowed.
        if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
            return refused(16410, "a field path's names may not start with '$'");
        }
    }
    Path::parse(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{Kind, Value, Writer};

    #[test]
    fn a_field_is_given_once() {
        let one = 1_i32.to_le_bytes();
        let mut writer = Writer::new();
        writer.append(b"a.b", Value::new(Kind::Int32, &one));
        writer.append(b"a", Value::new(Kind::Int32, &one));
        writer.append(b"a.b", Value::new(Kind::Int32, &one));
        let error = Sort::parse(Doc::new(&writer.finish())).unwrap_err();
        assert_eq!(error.code(), Code(7_472_500));
    }
}
