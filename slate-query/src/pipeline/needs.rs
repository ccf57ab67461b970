//! The fields that stages read.

use super::Stage;
use crate::{expression::Needs, filter::Filter};

impl Needs {
    /// Returns the needs of a pipeline whose result is returned.
    pub fn of(stages: &[Stage]) -> Self {
        stages.iter().rev().fold(Self::Whole, |after, stage| stage.needs(after))
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
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};

    use super::*;
    use crate::{expression::Bindings, pipeline::parse, raw::with_value};

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
