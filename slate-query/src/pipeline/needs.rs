use std::collections::BTreeSet;

use super::Stage;
use crate::{filter::Filter, path::Path, raw::FieldName};

/// The top-level fields of its documents that a pipeline reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The pipeline returns or reads the whole document.
    Whole,
    /// The pipeline reads these fields at most; the result does not depend on others, nor on the order of the fields.
    Fields(BTreeSet<Box<str>>),
    /// The pipeline reads these fields at most, and returns several of them in the order of the document.
    Ordered(BTreeSet<Box<str>>),
}

impl Needs {
    /// No fields.
    pub const NOTHING: Self = Self::Fields(BTreeSet::new());

    /// Returns the needs of a pipeline whose result is returned.
    pub fn of(stages: &[Stage]) -> Self {
        stages.iter().rev().fold(Self::Whole, |after, stage| stage.needs(after))
    }

    /// Returns the fields; `None` for whole documents.
    pub fn fields(&self) -> Option<&BTreeSet<Box<str>>> {
        match self {
            Self::Whole => None,
            Self::Fields(fields) | Self::Ordered(fields) => Some(fields),
        }
    }

    /// Returns whether the stages depend on the order in which a document has its fields.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Self::Fields(_))
    }

    /// Returns the same fields, of which several are returned in the order of the document.
    pub(crate) fn ordered(self) -> Self {
        match self {
            Self::Fields(fields) => Self::Ordered(fields),
            Self::Whole | Self::Ordered(_) => self,
        }
    }

    /// Adds a field; `None`: the whole document.
    pub(crate) fn add(&mut self, field: Option<&FieldName>) {
        match field {
            None => *self = Self::Whole,
            Some(field) => self.add_name(field.as_str()),
        }
    }

    /// Adds a field by its name.
    pub(crate) fn add_name(&mut self, name: &str) {
        if let Self::Fields(fields) | Self::Ordered(fields) = self {
            fields.insert(name.into());
        }
    }

    /// Adds the field that a path begins with.
    pub(crate) fn add_path(&mut self, path: &Path) {
        match path.parts().first() {
            Some(first) => self.add_name(first.name()),
            None => *self = Self::Whole,
        }
    }

    pub(crate) fn add_filter(&mut self, filter: &Filter) {
        let is_known = filter.all_paths(|path| {
            self.add_path(path);
            true
        });
        if !is_known {
            *self = Self::Whole;
        }
    }

    /// Removes a field that is written before it is read. If the order matters, the field stays: a written field keeps its place.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Self::Fields(fields) = self {
            fields.remove(name);
        }
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        let is_ordered = self.is_ordered() || other.is_ordered();
        match (&mut *self, other) {
            (Self::Whole, _) | (_, Self::Whole) => *self = Self::Whole,
            (Self::Fields(fields) | Self::Ordered(fields), Self::Fields(others) | Self::Ordered(others)) => {
                fields.extend(others);
                if is_ordered {
                    *self = std::mem::replace(self, Self::NOTHING).ordered();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};

    use super::*;
    use crate::{
        pipeline::{Bindings, parse},
        raw::with_value,
    };

    /// Returns the needed fields, separated by blanks; `*` for the whole document.
    fn needs(pipeline: Bson) -> String {
        let stages =
            with_value(&pipeline, |value| parse(value.as_array().unwrap().values(), &Bindings::default()).unwrap());
        match Needs::of(&stages).fields() {
            None => "*".into(),
            Some(fields) => fields.iter().map(|name| &**name).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn a_stage_that_makes_new_documents_reads_only_what_it_names() {
        for (pipeline, expected) in [
            (bson!([]), "*"),
            (bson!([{"$match": {"a": 1}}]), "*"),
            (bson!([{"$count": "n"}]), ""),
            (bson!([{"$match": {"a.b": 1, "$or": [{"c": 1}, {"d": 1}]}}, {"$count": "n"}]), "a c d"),
            (bson!([{"$project": {"a.b": 1, "c": "$d.e", "_id": 0}}]), "a d"),
            (bson!([{"$project": {"a": 0}}]), "*"),
            (bson!([{"$project": {"a": 0}}, {"$group": {"_id": "$b"}}]), "b"),
            (bson!([{"$group": {"_id": {"x": "$a"}, "n": {"$sum": {"$add": ["$b.c", "$d"]}}}}]), "a b d"),
            (bson!([{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]), "*"),
            (bson!([{"$group": {"_id": null, "top": {"$top": {"output": "$a", "sortBy": {"b": 1}}}}}]), "a b"),
            (bson!([{"$addFields": {"a": "$b", "c.d": 1}}, {"$group": {"_id": "$a", "c": {"$max": "$c"}}}]), "b c"),
            (bson!([{"$sort": {"a": 1, "b": 1}}, {"$limit": 1}, {"$group": {"_id": "$c"}}]), "a b c"),
            (bson!([{"$unwind": {"path": "$a.b", "includeArrayIndex": "i"}}, {"$group": {"_id": "$i"}}]), "a i"),
            (bson!([{"$replaceRoot": {"newRoot": {"x": "$a"}}}]), "a"),
            (bson!([{"$facet": {"x": [{"$group": {"_id": "$a"}}], "y": [{"$sortByCount": "$b"}]}}]), "a b"),
            (bson!([{"$facet": {"x": [{"$group": {"_id": "$a"}}], "y": [{"$limit": 1}]}}]), "*"),
            (bson!([{"$sample": {"size": 1}}, {"$group": {"_id": "$a"}}]), "a"),
            // A field that is written keeps its place among those that are returned.
            (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "b": 1, "_id": 0}}]), "a b c"),
            (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "_id": 0}}]), "c"),
            (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "b": 1}}, {"$sortByCount": "$a"}]), "_id b c"),
        ] {
            assert_eq!(needs(pipeline.clone()), expected, "{pipeline}");
        }
    }
}
