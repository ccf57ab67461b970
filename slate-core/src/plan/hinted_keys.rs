//! `min` and `max` of a find: the part of the hinted index that is read.

use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    collation::{Collation, has_text},
    interval::{Interval, IntervalSet, Place},
    key,
    path::Path,
    pattern::Direction,
    raw::{Doc, SmallBytes},
};

use super::{Access, AccessPath, Checks, Conjuncts, IndexBounds, Query};
use crate::{Error, Result, catalog::IndexInfo, entry::MAX_UNIQUE_PREFIX, key_range::KeyRange};

/// The keys between which the hinted index is read: a value for each of its fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyLimits {
    /// The least key that is read; `None` without a lower limit.
    pub(crate) min: Option<RawDocumentBuf>,
    /// The key above all that are read; `None` without an upper limit.
    pub(crate) max: Option<RawDocumentBuf>,
    /// How the query compares strings.
    pub(crate) collation: Option<Collation>,
}

impl KeyLimits {
    /// Returns the access path that reads the index between the keys, or the records between the `_id`s if `index` is
    /// `None`.
    ///
    /// # Errors
    /// Fails with 51174 for a wildcard index, and for keys that are not on the fields of the index or contain strings that the index compares
    /// by another collation; with 51175 if `min` is not below `max`; with `BadValue` (2) for values that an index entry may not store
    /// completely.
    pub(super) fn access(&self, index: Option<&Arc<IndexInfo>>, query: &Query) -> Result<Access> {
        let path = match index {
            None => {
                let id = [(Path::parse("_id")?, Direction::Ascending)];
                let (min, max) = self.keys(&id, None)?;
                let high = max.map_or_else(|| Interval::all().high().clone(), Place::before);
                let within = Interval::new(Place::before(min.unwrap_or_default()), high);
                AccessPath::Records { bounds: Some(IntervalSet::from(vec![within])) }
            }
            Some(index) if index.wildcard.is_some() => return Err(incompatible()),
            Some(index) => {
                let (min, max) = self.keys(index.pattern.fields(), index.collation.as_ref())?;
                let is_long = |key: &Option<SmallBytes>| key.as_ref().is_some_and(|key| key.len() >= MAX_UNIQUE_PREFIX);
                if is_long(&min) || is_long(&max) {
                    let message = format!("min and max are limited to {MAX_UNIQUE_PREFIX} bytes of index key");
                    return Err(Error::invalid(Code::BAD_VALUE, message));
                }
                let bounds = IndexBounds::of_keys(KeyRange { start: min.unwrap_or_default(), end: max });
                AccessPath::Index { index: Arc::clone(index), bounds, checks: Checks::default() }
            }
        };
        let mut access = Access::of_path(path, Conjuncts::default());
        if let Some(sort) = &query.sort {
            let ordered = |direction| access.path.ordered_by(sort, direction).fields;
            if ordered(Direction::Descending) > ordered(Direction::Ascending) {
                access.direction = Direction::Descending;
            }
        }
        Ok(access)
    }

    /// Returns `min` and `max`, encoded. Fails unless `min` is below `max`.
    fn keys(
        &self,
        fields: &[(Path, Direction)],
        collation: Option<&Collation>,
    ) -> Result<(Option<SmallBytes>, Option<SmallBytes>)> {
        let encode = |limit: &RawDocumentBuf| self.key(Doc::from(limit), fields, collation);
        let (min, max) = (self.min.as_ref().map(encode).transpose()?, self.max.as_ref().map(encode).transpose()?);
        if let (Some(min), Some(max)) = (&min, &max)
            && min.as_slice() >= max.as_slice()
        {
            let message =
                "The value provided for min() does not come before the value provided for max() in the hinted index";
            return Err(Error::invalid(Code(51_175), message).at("min"));
        }
        Ok((min, max))
    }

    fn key(&self, limit: Doc<'_>, fields: &[(Path, Direction)], collation: Option<&Collation>) -> Result<SmallBytes> {
        let mut bytes = Vec::new();
        let mut values = limit.elements();
        for (path, direction) in fields {
            let limit =
                values.next().filter(|limit| limit.name == path.as_str().as_bytes()).ok_or_else(incompatible)?;
            let value = limit.value;
            if collation != self.collation.as_ref() && has_text(value) {
                return Err(incompatible());
            }
            match collation {
                Some(collation) => {
                    key::encode_directed(Some(collation.apply(value).as_value()), *direction, &mut bytes);
                }
                None => key::encode_directed(Some(value), *direction, &mut bytes),
            }
        }
        if values.next().is_some() {
            return Err(incompatible());
        }
        Ok(bytes.into())
    }
}

fn incompatible() -> Error {
    Error::invalid(Code(51_174), "The index chosen is not compatible with min/max")
}
