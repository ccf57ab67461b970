use std::{collections::BTreeSet, sync::Arc};

use bson::RawDocumentBuf;
use slate_query::{
    path::Path,
    pattern::KeyPattern,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    wildcard::{PATH_FIELD, WildcardPattern},
};

use super::{IndexInfo, index::append_document};
use crate::Result;

/// Maximum number of paths of a wildcard index that are known to contain arrays. If there are more, every path counts
/// as containing arrays.
const MAX_ARRAY_PATHS: usize = 256;

/// The properties of a wildcard index that other indexes do not have.
#[derive(Clone, Debug)]
pub(crate) struct Wildcard {
    pub(crate) pattern: WildcardPattern,
    /// The `wildcardProjection` as it was declared.
    pub(crate) projection: Option<RawDocumentBuf>,
    pub(crate) arrays: ArrayPaths,
}

/// The paths at which some document has an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArrayPaths {
    These(BTreeSet<Box<str>>),
    /// Any path can have an array.
    Any,
}

impl Default for ArrayPaths {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl ArrayPaths {
    /// Returns whether the catalog already has a mark for each of `paths` that some document has an array there.
    pub(crate) fn include(&self, paths: &BTreeSet<Box<str>>) -> bool {
        match self {
            Self::These(known) => paths.is_subset(known),
            Self::Any => true,
        }
    }

    pub(crate) fn add(&mut self, paths: &BTreeSet<Box<str>>) {
        if let Self::These(known) = self {
            known.extend(paths.iter().cloned());
            if known.len() > MAX_ARRAY_PATHS {
                *self = Self::Any;
            }
        }
    }

    fn join(&mut self, other: &Self) {
        match other {
            Self::These(paths) => self.add(paths),
            Self::Any => *self = Self::Any,
        }
    }

    /// Returns the bit set of [`MultikeyPaths`](super::index::MultikeyPaths) for a path.
    fn on(&self, path: &Path) -> u64 {
        let Self::These(known) = self else { return u64::MAX };
        let mut prefix = String::new();
        let mut mask = 0;
        for (place, part) in path.parts().iter().enumerate() {
            if place > 0 {
                prefix.push('.');
            }
            prefix.push_str(part.name());
            mask |= u64::from(known.contains(prefix.as_str())) << place.min(63);
        }
        mask
    }
}

impl Wildcard {
    /// Parses the keys of an index and its projection. `None` if it is no wildcard index.
    ///
    /// # Errors
    /// The errors of [`WildcardPattern::parse`].
    pub(crate) fn parse(keys: &RawDocumentBuf, projection: Option<RawDocumentBuf>) -> Result<Option<Self>> {
        let pattern = WildcardPattern::parse(Doc::from(keys), projection.as_ref().map(Doc::from))?;
        Ok(pattern.map(|pattern| Self { pattern, projection, arrays: ArrayPaths::default() }))
    }

    /// Returns whether the index is over the same fields in the same directions.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.arrays.join(&other.arrays);
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        if let Some(projection) = &self.projection {
            append_document(writer, "wildcardProjection", projection);
        }
        match &self.arrays {
            ArrayPaths::Any => writer.append(b"arrays", Value::new(Kind::Boolean, &[1])),
            ArrayPaths::These(paths) => {
                writer.open_array(b"arrays");
                for (place, path) in paths.iter().enumerate() {
                    let path = OwnedValue::from(&bson::Bson::from(&**path));
                    writer.append(place.to_string().as_bytes(), path.as_value());
                }
                writer.close();
            }
        }
    }

    pub(super) fn read(&mut self, definition: Doc<'_>) {
        let arrays = definition.get("arrays");
        self.arrays = match arrays.and_then(Value::as_array) {
            Some(paths) => ArrayPaths::These(paths.values().filter_map(Value::as_str).map(Box::from).collect()),
            None => ArrayPaths::Any,
        };
    }
}

/// The parts of a wildcard index, each as an index whose first field is the path of its entries.
impl IndexInfo {
    /// Returns the entries about one path: an index on the fields before the wildcard, that path, and the fields after it.
    pub(crate) fn on_path(&self, wildcard: &Wildcard, path: &Path) -> Option<Self> {
        let (before, after) = self.multikey.split_at_checked(wildcard.pattern.before())?;
        let multikey = [&[0], before, &[wildcard.arrays.on(path)], after].concat();
        Some(Self { sparse: true, ..self.part(wildcard.pattern.at_path(path).ok()?, multikey) })
    }

    /// Returns the entries of all paths, as an index on the paths alone. It is multikey, because a document has several
    /// paths.
    pub(crate) fn on_paths(&self) -> Option<Self> {
        Some(Self { sparse: true, ..self.part(WildcardPattern::at_paths().ok()?, vec![1]) })
    }

    /// Returns the entries of the other fields alone, as an index on these fields. `None` if there are no such entries.
    pub(crate) fn on_others(&self, wildcard: &Wildcard) -> Option<Self> {
        if !wildcard.pattern.has_part_of_others() {
            return None;
        }
        let part = self.part(wildcard.pattern.of_others().ok()?, [&[0], &*self.multikey].concat());
        Some(Self { constant_fields: 1, ..part })
    }

    /// Returns whether this stands for a part of a wildcard index: the index as planned for one of its paths.
    pub(crate) fn is_part(&self) -> bool {
        self.pattern.fields().first().is_some_and(|(path, _)| path.as_str() == PATH_FIELD)
    }

    fn part(&self, pattern: KeyPattern, multikey: Vec<u64>) -> Self {
        Self {
            name: self.name.clone(),
            keyspace: self.keyspace,
            pattern,
            keys: self.keys.clone(),
            unique: false,
            sparse: false,
            hidden: self.hidden,
            expire_after: None,
            partial: self.partial.clone(),
            collation: self.collation.clone(),
            wildcard: None,
            multikey,
            constant_fields: 0,
            truncated: self.truncated,
            uses: Arc::clone(&self.uses),
        }
    }
}
