//! Wildcard indexes: `$**` indexes every field of a document, `path.$**` every field at and below a path.
//!
//! A document has an entry for each value at the end of a path: the path as a string, then the value. For an array there is an entry
//! per element; for an empty array the entry of undefined. For a nested document there are the entries of its fields; only an
//! empty one has an entry of its own. A missing field has no entry.
//!
//! The entries at one path are therefore the same as in an index on that path, except that documents and missing fields have none.

use std::collections::HashSet;

use super::{Direction, Keys, parse::direction};
use crate::{
    Code, Error, Result,
    interval::{Interval, IntervalSet},
    key,
    number::Number,
    order::Bracket,
    path::Path,
    pipeline::Bindings,
    projection::Projection,
    raw::{Doc, Element, Kind, Value},
};

/// The key pattern of a wildcard index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardPattern {
    selection: Selection,
    direction: Direction,
}

/// The paths that an index contains, each with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    Only(Vec<Box<str>>),
    AllBut(Vec<Box<str>>),
}

impl Selection {
    /// Returns the selection with each path once, in order, and without those within another one.
    fn reduced(self) -> Self {
        let reduce = |mut paths: Vec<Box<str>>| {
            paths.sort_unstable();
            paths.dedup();
            let within: Vec<bool> =
                paths.iter().map(|path| paths.iter().any(|other| other != path && is_within(path, other))).collect();
            let mut within = within.into_iter();
            paths.retain(|_| within.next() != Some(true));
            paths
        };
        match self {
            Self::Only(paths) => Self::Only(reduce(paths)),
            Self::AllBut(paths) => Self::AllBut(reduce(paths)),
        }
    }
}

/// How much of what is at and below a path an index contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Nothing,
    /// Not the value at the path, but something below it.
    OnlyBelow,
    /// The value at the path, and some of what is below it.
    Partly,
    Whole,
}

/// The path of a wildcard index's entries in plans, as in MongoDB.
pub const PATH_FIELD: &str = "$_path";

/// The most fields of a document whose names are compared with each other one by one.
const FEW_FIELDS: usize = 16;

impl WildcardPattern {
    /// Returns whether a wildcard is among the keys of an index.
    pub fn is_key_of(keys: Doc<'_>) -> bool {
        keys.elements().any(|element| is_key(&element))
    }

    /// Parses the keys of an index and its `wildcardProjection`. `None` if no key is a wildcard.
    ///
    /// # Errors
    /// MongoDB's codes for invalid keys and projections; `NotImplemented` (238) for a compound index.
    pub fn parse(keys: Doc<'_>, projection: Option<Doc<'_>>) -> Result<Option<Self>> {
        let mut wildcards = keys.elements().filter(is_key);
        let Some(key) = wildcards.next() else {
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
        let direction = direction(key).map_err(|error| error.at(&*name))?;
        let root = name.strip_suffix(".$**").unwrap_or_default();
        if keys.elements().count() > 1 {
            return Err(compound(keys, root, projection).at(name));
        }
        if root.split('.').any(|part| part.starts_with('$') || (part.is_empty() && !root.is_empty())) {
            let message = "an index key contains an illegal field name: it is empty or starts with '$'";
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message).at(name));
        }
        let selection = match (root, projection) {
            ("", Some(projection)) => selected(projection)?,
            ("", None) => Selection::AllBut(vec!["_id".into()]),
            (_, Some(_)) => {
                let message = "wildcardProjection is only allowed beside the key $**";
                return Err(at_projection(Code::FAILED_TO_PARSE, message));
            }
            (root, None) => Selection::Only(vec![root.into()]),
        };
        Ok(Some(Self { selection: selection.reduced(), direction }))
    }

    /// Returns the direction of the values.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns whether the index contains the values at a path, other than documents.
    pub fn covers(&self, path: &Path) -> bool {
        !path.has_position() && matches!(self.extent(path.as_str()), Extent::Partly | Extent::Whole)
    }

    /// Returns whether the index contains everything at and below a path.
    pub fn covers_below(&self, path: &Path) -> bool {
        !path.has_position() && self.extent(path.as_str()) == Extent::Whole
    }

    fn extent(&self, path: &str) -> Extent {
        let any = |paths: &[Box<str>], holds: &dyn Fn(&str) -> bool| paths.iter().any(|path| holds(path));
        match &self.selection {
            Selection::Only(paths) if any(paths, &|selected| is_within(path, selected)) => Extent::Whole,
            Selection::Only(paths) if any(paths, &|selected| is_within(selected, path)) => Extent::OnlyBelow,
            Selection::Only(_) => Extent::Nothing,
            Selection::AllBut(paths) if any(paths, &|excluded| is_within(path, excluded)) => Extent::Nothing,
            Selection::AllBut(paths) if any(paths, &|excluded| is_within(excluded, path)) => Extent::Partly,
            Selection::AllBut(_) => Extent::Whole,
        }
    }

    /// Replaces the content of `out` by the entries of `doc`. There may be none.
    pub fn keys(&self, doc: Doc<'_>, out: &mut Keys) {
        out.clear(0);
        Walk { pattern: self, keys: out, path: String::new(), depth: 0, text: Vec::new() }.fields(doc, Extent::Partly);
        out.settle();
    }

    /// Returns the bounds of the path of entries: exactly this path.
    pub fn at(path: &Path) -> IntervalSet {
        Interval::point(path_key(path.as_str())).into()
    }

    /// Returns the bounds of the path of entries: this path and those below it.
    pub fn at_or_below(path: &Path) -> IntervalSet {
        let below: IntervalSet = key::prefix_interval(format!("{path}.").as_bytes()).into();
        Self::at(path).union(&below)
    }

    /// Returns whether a document with a value in `values` at a path has an entry for it. Documents and missing fields,
    /// which have the key of null, have none.
    pub fn has_all(values: &IntervalSet) -> bool {
        let mut null = Vec::new();
        key::encode(Value::NULL, &mut null);
        let documents: IntervalSet = key::bracket_interval(Bracket::Document).into();
        !values.contains(&null) && values.intersect(&documents).is_empty()
    }
}

/// Returns whether the key is that of a wildcard index. `$**` is also the key of a text index on all fields.
fn is_key(element: &Element<'_>) -> bool {
    is_wildcard(element) && element.value.kind() != Kind::String
}

fn is_wildcard(element: &Element<'_>) -> bool {
    element.name == b"$**" || element.name.ends_with(b".$**")
}

/// Returns whether a path is another one or below it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn path_key(path: &str) -> Vec<u8> {
    let (mut text, mut out) = (Vec::new(), Vec::new());
    write_text(path, &mut text);
    key::encode(Value::new(Kind::String, &text), &mut out);
    out
}

/// Replaces `out` by the bytes of a string value.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&i32::try_from(text.len() + 1).unwrap_or(i32::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn at_projection(code: Code, message: &str) -> Error {
    Error::new(code, message).at("wildcardProjection")
}

/// Returns the error for a compound wildcard index, which Slate does not have.
fn compound(keys: Doc<'_>, root: &str, projection: Option<Doc<'_>>) -> Error {
    let overlaps = |element: Element<'_>| !is_wildcard(&element) && is_within(&element.display_name(), root);
    if root.is_empty() && projection.is_none() {
        let message = "a compound wildcard index on all fields must have a wildcardProjection";
        return Error::new(Code::CANNOT_CREATE_INDEX, message);
    }
    if !root.is_empty() && keys.elements().any(overlaps) {
        return Error::new(Code(7_246_204), "the wildcard field contains another field of the index");
    }
    Error::unsupported("a compound wildcard index")
}

/// Returns the paths that a `wildcardProjection` includes or excludes.
fn selected(projection: Doc<'_>) -> Result<Selection> {
    if projection.is_empty() {
        return Err(at_projection(Code::FAILED_TO_PARSE, "the wildcardProjection is an empty document"));
    }
    Projection::parse_stage(projection, &Bindings::new(0)).map_err(|error| error.at("wildcardProjection"))?;
    let (mut included, mut excluded) = (Vec::new(), Vec::new());
    collect(projection, "", &mut |path, is_included| {
        if is_included {
            included.push(path);
        } else {
            excluded.push(path);
        }
    })?;
    let are_id = |paths: &[Box<str>]| paths.iter().all(|path| &**path == "_id");
    // As in every projection, _id may differ from the other fields. An index contains it only if it is included.
    if are_id(&included) && !are_id(&excluded) {
        if included.is_empty() {
            excluded.push("_id".into());
        }
        return Ok(Selection::AllBut(excluded));
    }
    Ok(if included.is_empty() { Selection::AllBut(excluded) } else { Selection::Only(included) })
}

/// Calls `take` with each path of a projection and whether it is included.
fn collect(projection: Doc<'_>, below: &str, take: &mut impl FnMut(Box<str>, bool)) -> Result<()> {
    for element in projection.elements() {
        let name = element.display_name();
        let path = if below.is_empty() { name.into_owned() } else { format!("{below}.{name}") };
        let number = Number::of(element.value);
        match (element.value.as_bool(), number) {
            (Some(is_included), _) => take(path.into(), is_included),
            (None, Some(number)) => take(path.into(), number.signum().is_ne() || number.is_nan()),
            (None, None) if element.value.kind() == Kind::Document && !is_operator(element.value) => {
                collect(Doc::new(element.value.bytes()), &path, take)?;
            }
            (None, None) => {
                let message = "a wildcardProjection only includes and excludes fields";
                return Err(at_projection(Code(51_271), message).at(path));
            }
        }
    }
    Ok(())
}

fn is_operator(value: Value<'_>) -> bool {
    value.as_document().and_then(|document| document.elements().next()).is_none_or(|first| first.name.starts_with(b"$"))
}

/// A walk over the fields of a document.
struct Walk<'w> {
    pattern: &'w WildcardPattern,
    keys: &'w mut Keys,
    /// The path of the current field.
    path: String,
    /// The number of names in the path.
    depth: usize,
    /// A buffer for the path as a value.
    text: Vec<u8>,
}

impl Walk<'_> {
    /// Adds the entries of the fields of a document, of which the index contains `extent`. Returns whether it has a field that can be
    /// named in a path.
    fn fields(&mut self, doc: Doc<'_>, extent: Extent) -> bool {
        let (mut has_fields, mut seen) = (false, HashSet::new());
        let has_many = doc.elements().nth(FEW_FIELDS).is_some();
        for (place, element) in doc.elements().enumerate() {
            let is_repeated = match has_many {
                true => !seen.insert(element.name),
                false => doc.elements().take(place).any(|earlier| earlier.name == element.name),
            };
            // No path leads to a field with a dot in its name, or to the second field of a name.
            let Ok(name) = std::str::from_utf8(element.name) else { continue };
            if is_repeated || name.contains('.') {
                continue;
            }
            has_fields = true;
            let length = self.path.len();
            if self.depth > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.depth += 1;
            let extent = if extent == Extent::Whole { extent } else { self.pattern.extent(&self.path) };
            if extent != Extent::Nothing {
                self.value(element.value, extent);
            }
            self.depth -= 1;
            self.path.truncate(length);
        }
        has_fields
    }

    fn value(&mut self, value: Value<'_>, extent: Extent) {
        let Some(array) = value.as_array() else { return self.single(value, extent) };
        self.keys.add_array(&self.path);
        if array.is_empty() {
            return self.entry(Value::UNDEFINED, extent);
        }
        for element in array.values() {
            // An array within an array is one value.
            self.single(element, extent);
        }
    }

    fn single(&mut self, value: Value<'_>, extent: Extent) {
        if value.kind() != Kind::Document {
            return self.entry(value, extent);
        }
        let document = Doc::new(value.bytes());
        if !self.fields(document, extent) {
            self.entry(Value::new(Kind::Document, Doc::EMPTY.bytes()), extent);
        }
    }

    fn entry(&mut self, value: Value<'_>, extent: Extent) {
        if extent == Extent::OnlyBelow {
            return;
        }
        write_text(&self.path, &mut self.text);
        let path = Value::new(Kind::String, &self.text);
        self.keys.push([(Some(path), Direction::Ascending), (Some(value), self.pattern.direction)].into_iter());
    }
}
