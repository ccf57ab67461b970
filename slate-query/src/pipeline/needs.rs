use std::collections::BTreeSet;

use super::Stage;
use crate::{filter::Filter, path::Path, raw::FieldName};

/// The top-level fields of its documents that a pipeline reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It returns or reads the whole document.
    Whole,
    /// It reads these fields at most; the result does not depend on others, nor on the order of the fields.
    Fields(BTreeSet<Box<str>>),
}

impl Needs {
    /// No fields.
    pub const NOTHING: Self = Self::Fields(BTreeSet::new());

    /// The needs of a pipeline whose result is returned.
    pub fn of(stages: &[Stage]) -> Self {
        stages.iter().rev().fold(Self::Whole, |after, stage| stage.needs(after))
    }

    /// Adds a field; `None`: the whole document.
    pub(crate) fn add(&mut self, field: Option<&FieldName>) {
        match (&mut *self, field) {
            (Self::Whole, _) => {}
            (Self::Fields(_), None) => *self = Self::Whole,
            (Self::Fields(fields), Some(field)) => {
                fields.insert(field.as_str().into());
            }
        }
    }

    /// Adds a field by its name.
    pub(crate) fn add_name(&mut self, name: &str) {
        if let Self::Fields(fields) = self {
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

    /// Removes a field that is written before it is read.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Self::Fields(fields) = self {
            fields.remove(name);
        }
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Whole, _) | (_, Self::Whole) => *self = Self::Whole,
            (Self::Fields(fields), Self::Fields(others)) => fields.extend(others),
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

    /// The needed fields, separated by blanks; `*` for the whole document.
    fn needs(pipeline: Bson) -> String {
        let stages =
            with_value(&pipeline, |value| parse(value.as_array().unwrap().values(), &Bindings::default()).unwrap());
        match Needs::of(&stages) {
            Needs::Whole => "*".into(),
            Needs::Fields(fields) => fields.into_iter().collect::<Vec<_>>().join(" "),
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
        ] {
            assert_eq!(needs(pipeline.clone()), expected, "{pipeline}");
        }
    }
}
