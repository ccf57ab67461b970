use super::{
    keys::write_text,
    selection::{Extent, Selection, at_projection, is_within},
};
use crate::{
    Code, Error, Result,
    interval::{self, Interval, IntervalSet},
    key::{self, Direction},
    order::Bracket,
    path::Path,
    pattern::{KeyPattern, parse},
    raw::{Doc, Element, Kind, Value},
};

/// The key pattern of a wildcard index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardPattern {
    selection: Selection,
    direction: Direction,
    /// The fields other than the wildcard.
    others: Box<[(Path, Direction)]>,
    /// How many of the other fields precede the wildcard.
    before: usize,
}

/// The name by which plans show the path that begins each entry of a wildcard index, as in MongoDB.
pub const PATH_FIELD: &str = "$_path";

impl WildcardPattern {
    /// Returns whether a wildcard is among the keys of an index.
    pub fn is_key_of(keys: Doc<'_>) -> bool {
        keys.elements().any(|element| is_key(&element))
    }

    /// Parses the keys of an index and its `wildcardProjection`. `None` if no key is a wildcard.
    ///
    /// # Errors
    /// MongoDB's codes for invalid keys and projections.
    pub fn parse(keys: Doc<'_>, projection: Option<Doc<'_>>) -> Result<Option<Self>> {
        let mut wildcards = keys.elements().enumerate().filter(|(_, element)| is_key(element));
        let Some((before, key)) = wildcards.next() else {
            return match projection {
                Some(_) => {
                    Err(at_projection(Code::BAD_VALUE, "wildcardProjection is only allowed in wildcard indexes"))
                }
                None => Ok(None),
            };
        };
        let name = key.display_name();
        if wildcards.next().is_some() {
            return Err(Error::new(Code(7_246_201), "an index has at most one wildcard field").at(name));
        }
        parse::check_size(keys)?;
        let direction = parse::direction(key).map_err(|error| error.at(&*name))?;
        let root = name.strip_suffix(".$**").unwrap_or_default();
        let others = others(keys, root).map_err(|error| error.at(&*name))?;
        if root.split('.').any(|part| part.starts_with('$') || (part.is_empty() && !root.is_empty())) {
            let message = "an index key contains an illegal field name: it is empty or starts with '$'";
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message).at(name));
        }
        let paths: Vec<Path> = others.iter().map(|(path, _)| path.clone()).collect();
        let selection = match (root, projection) {
            ("", Some(projection)) => Selection::parse(projection, &paths)?,
            ("", None) if !others.is_empty() => {
                let message = "a compound wildcard index on all fields must have a wildcardProjection";
                return Err(Error::new(Code::CANNOT_CREATE_INDEX, message).at(name));
            }
            ("", None) => Selection::AllBut(vec!["_id".into()]),
            (_, Some(_)) => {
                let message = "wildcardProjection is only allowed beside the key $**";
                return Err(at_projection(Code::FAILED_TO_PARSE, message));
            }
            (root, None) => Selection::Only(vec![root.into()]),
        };
        Ok(Some(Self { selection: selection.reduced(), direction, others: others.into(), before }))
    }

    /// Returns the direction of the values at the wildcard's paths.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the fields other than the wildcard.
    pub fn others(&self) -> &[(Path, Direction)] {
        &self.others
    }

    /// Returns how many of the other fields precede the wildcard.
    pub fn before(&self) -> usize {
        self.before
    }

    /// Returns whether each document also has an entry without a path, for the fields before the wildcard alone. It
    /// serves queries on these fields.
    pub fn has_part_of_others(&self) -> bool {
        self.before > 0
    }

    /// Returns the pattern of the entries about one path of the wildcard.
    ///
    /// # Errors
    /// None in practice: the name of the first field is a valid path.
    pub fn at_path(&self, path: &Path) -> Result<KeyPattern> {
        let (before, after) = self.others.split_at(self.before);
        let fields = [path_field()?].into_iter().chain(before.iter().cloned());
        let fields = fields.chain([(path.clone(), self.direction)]).chain(after.iter().cloned());
        Ok(KeyPattern::of_fields(fields.collect()))
    }

    /// Returns the pattern of the entries about several paths. Only the paths of these entries have bounds.
    ///
    /// # Errors
    /// As [`WildcardPattern::at_path`].
    pub fn at_paths() -> Result<KeyPattern> {
        Ok(KeyPattern::of_fields([path_field()?].into()))
    }

    /// Returns the pattern of the entries of the other fields alone.
    ///
    /// # Errors
    /// As [`WildcardPattern::at_path`].
    pub fn of_others(&self) -> Result<KeyPattern> {
        Ok(KeyPattern::of_fields([path_field()?].into_iter().chain(self.others.iter().cloned()).collect()))
    }

    /// Returns whether the index contains the values at a path, other than documents.
    pub fn covers(&self, path: &Path) -> bool {
        !path.has_position() && matches!(self.extent(path.as_str()), Extent::Partly | Extent::Whole)
    }

    /// Returns whether the index contains everything at and below a path.
    pub fn covers_below(&self, path: &Path) -> bool {
        !path.has_position() && self.extent(path.as_str()) == Extent::Whole
    }

    pub(super) fn extent(&self, path: &str) -> Extent {
        self.selection.extent(path)
    }

    /// Returns bounds on the first field of an entry, which is a path: exactly this one.
    pub fn at(path: &Path) -> IntervalSet {
        Interval::point(path_key(path.as_str())).into()
    }

    /// Returns bounds on the first field of an entry, which is a path: this one and those below it.
    pub fn at_or_below(path: &Path) -> IntervalSet {
        let below: IntervalSet = interval::prefix_interval(format!("{path}.").as_bytes()).into();
        Self::at(path).union(&below)
    }

    /// Returns bounds on the first field of an entry for entries without a path: those of the other fields alone.
    pub fn at_no_path() -> IntervalSet {
        Interval::point(null_key()).into()
    }

    /// Returns whether the index has an entry for every value within `values`, so that it can answer a condition on
    /// them. It has none for documents and missing fields; the latter have the key of null.
    pub fn has_all(values: &IntervalSet) -> bool {
        let documents: IntervalSet = interval::bracket_interval(Bracket::Document).into();
        !values.contains(&null_key()) && values.intersect(&documents).is_empty()
    }
}

/// Parses the fields other than the wildcard.
fn others(keys: Doc<'_>, root: &str) -> Result<Vec<(Path, Direction)>> {
    let others = || keys.elements().filter(|element| !is_key(element));
    if others().any(|other| other.value.kind() == Kind::String) {
        let message = "the other fields of a wildcard index are not text, hashed or geospatial";
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    if !root.is_empty() && others().any(|other| is_within(&other.display_name(), root)) {
        return Err(Error::new(Code(7_246_204), "the wildcard field contains another field of the index"));
    }
    parse::fields(others())
}

fn path_field() -> Result<(Path, Direction)> {
    Ok((Path::parse(PATH_FIELD)?, Direction::Ascending))
}

/// Returns whether the key is that of a wildcard index. `$**` is also the key of a text index on all fields.
fn is_key(element: &Element<'_>) -> bool {
    let is_wildcard = element.name == b"$**" || element.name.ends_with(b".$**");
    is_wildcard && element.value.kind() != Kind::String
}

fn path_key(path: &str) -> Vec<u8> {
    let (mut text, mut out) = (Vec::new(), Vec::new());
    write_text(path, &mut text);
    key::encode(Value::new(Kind::String, &text), &mut out);
    out
}

fn null_key() -> Vec<u8> {
    let mut null = Vec::new();
    key::encode(Value::NULL, &mut null);
    null
}
