use super::{Filter, bounds::only_key, field::Sense};
use crate::{
    path::Path,
    raw::{SmallBytes, Value},
};

/// The only condition of a filter, where it is an equality; see [`Filter::single_equality`].
#[derive(Clone, Copy, Debug)]
pub struct SingleEquality<'f> {
    path: &'f Path,
    value: Value<'f>,
}

impl Filter {
    /// Returns the filter's only condition, if it is that one path equals one value: `{a: 5}`, `{a: {$in: [5]}}`.
    pub fn single_equality(&self) -> Option<SingleEquality<'_>> {
        self.root().equality(Sense::Holds).map(|(path, value)| SingleEquality { path, value })
    }
}

impl<'f> SingleEquality<'f> {
    /// Returns the path.
    pub fn path(&self) -> &'f Path {
        self.path
    }

    /// Returns the encoded value. In an index on the path that is not multikey, exactly the matching documents have
    /// entries with this key. `None` for values whose key other values share: null, undefined and arrays.
    pub fn key(&self) -> Option<SmallBytes> {
        only_key(self.value)
    }
}
