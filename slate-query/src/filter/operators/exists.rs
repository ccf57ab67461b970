use super::super::{
    Node,
    bounds::{Bounds, encode},
    clause::{Clause, truth},
    operator::{Operator, Rank},
};
use crate::{
    Result,
    interval::{Interval, IntervalSet},
    path::Path,
    raw::{Kind, Value, Writer},
};

/// `$exists`: the field exists, even if it is null.
#[derive(Clone, Copy, Debug)]
struct Exists;

impl Operator for Exists {
    fn holds(&self, _value: Value<'_>) -> bool {
        true
    }

    fn holds_any_value(&self) -> bool {
        true
    }

    fn bounds(&self) -> Bounds {
        Bounds::unknown()
    }

    fn outside(&self, path: &Path) -> Option<IntervalSet> {
        // A missing field has the key of null.
        (!path.has_position()).then(|| Interval::point(encode(Value::NULL)).into())
    }

    fn may_limit_an_index(&self) -> bool {
        true
    }

    fn rank(&self) -> Rank {
        Rank::Exists
    }

    fn write(&self, out: &mut Writer) {
        out.append(b"$exists", Value::new(Kind::Boolean, &[1]));
    }
}

/// Returns the condition that a value exists at the path.
pub(in super::super) fn node(path: &Path) -> Node {
    Node::field(path, Exists)
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let exists = node(clause.path);
    Ok(Some(if truth(clause.operand) { exists } else { exists.negated() }))
}
