use super::{Filter, Node, field::Sense, node::Tree};

impl Filter {
    /// Returns whether the filter may be the condition of a partial index. As in MongoDB it may consist of comparisons,
    /// `$in`, `$exists: true` and `$type`, joined by `$and` and `$or`.
    pub fn may_limit_an_index(&self) -> bool {
        may_limit(self.root())
    }
}

fn may_limit(node: &Node) -> bool {
    match &node.tree {
        Tree::And(conjunction) => conjunction.nodes().iter().all(may_limit),
        Tree::Or(branches) => branches.iter().all(may_limit),
        Tree::Not(_) | Tree::Computed(_) | Tree::Schema(_) => false,
        Tree::Collated(collated) => may_limit(collated.plain()),
        Tree::Field(field) => field.sense == Sense::Holds && field.operator.may_limit_an_index(),
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};

    use super::*;
    use crate::raw::Doc;

    #[track_caller]
    fn check(filter: bson::Document, may: bool) {
        let filter = RawDocumentBuf::try_from(&filter).unwrap();
        assert_eq!(Filter::parse(Doc::from(&filter)).unwrap().may_limit_an_index(), may, "{filter:?}");
    }

    #[test]
    fn conditions_that_can_limit_an_index() {
        check(doc! { "a": { "$gt": 0, "$lte": 9 }, "b": null }, true);
        check(
            doc! { "$or": [{ "a": { "$in": [1, 2] } }, { "b": { "$exists": true }, "c": { "$type": "int" } }] },
            true,
        );
        check(doc! {}, true);
    }

    #[test]
    fn conditions_that_cannot_limit_an_index() {
        check(doc! { "a": { "$ne": 1 } }, false);
        check(doc! { "a": { "$exists": false } }, false);
        check(doc! { "$nor": [{ "a": 1 }] }, false);
        check(doc! { "a": { "$regex": "^x" } }, false);
        check(doc! { "a": { "$mod": [2, 0] } }, false);
        check(doc! { "b": 1, "$or": [{ "a": { "$size": 1 } }, { "a": 2 }] }, false);
    }
}
