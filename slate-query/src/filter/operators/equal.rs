use super::super::{
    Node,
    bounds::Bounds,
    clause::Clause,
    operator::{Operator, Rank},
};
use crate::{
    Result,
    interval::IntervalSet,
    order,
    path::Path,
    raw::{Kind, OwnedValue, Value, Writer},
};

/// `$eq`: the value is equal to the operand in BSON's order. A missing field equals null.
#[derive(Clone, Debug)]
pub(super) struct Equal {
    operand: OwnedValue,
}

impl Equal {
    pub(super) fn new(operand: Value<'_>) -> Self {
        Self { operand: operand.to_owned() }
    }
}

impl Operator for Equal {
    #[inline]
    fn holds(&self, value: Value<'_>) -> bool {
        order::equal(value, self.operand.as_value())
    }

    fn holds_missing(&self) -> bool {
        self.operand.as_value().kind() == Kind::Null
    }

    fn bounds(&self) -> Bounds {
        Bounds::equal(self.operand.as_value())
    }

    fn outside(&self, path: &Path) -> Option<IntervalSet> {
        let null = self.operand.as_value().kind() == Kind::Null;
        // On a longer path, a null key may belong to a position that the filter does not evaluate.
        (null && path.parts().len() == 1 && !path.has_position()).then(|| self.bounds().intervals.complement())
    }

    fn equality(&self) -> Option<Value<'_>> {
        Some(self.operand.as_value())
    }

    fn may_limit_an_index(&self) -> bool {
        true
    }

    fn rank(&self) -> Rank {
        Rank::Equal
    }

    fn write(&self, out: &mut Writer) {
        out.append(b"$eq", self.operand.as_value());
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    node(clause).map(Some)
}

pub(super) fn not_equal(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.operand.kind() == Kind::Regex {
        return Err(clause.refuse("Can't have regex as arg to $ne."));
    }
    node(clause).map(|node| Some(node.negated()))
}

/// Returns the condition of a bare value in a filter: a regular expression is matched, any other value compared.
pub(in super::super) fn implicit(clause: Clause<'_>) -> Result<Node> {
    if clause.operand.kind() == Kind::Regex {
        return super::regex::of_value(clause);
    }
    node(clause)
}

pub(super) fn node(clause: Clause<'_>) -> Result<Node> {
    refuse_undefined(clause)?;
    Ok(Node::field(clause.path, Equal::new(clause.operand)))
}

/// Parses `$ref`, `$id` or `$db`: the fields of a reference, which are compared like other fields.
pub(super) fn reference(clause: Clause<'_>) -> Result<Option<Node>> {
    let path = Path::parse(clause.name)?;
    node(Clause { path: &path, ..clause }).map(Some)
}

/// Refuses undefined as an operand, as MongoDB does.
pub(super) fn refuse_undefined(clause: Clause<'_>) -> Result<()> {
    if clause.operand.kind() == Kind::Undefined {
        return Err(clause.refuse("cannot compare to undefined"));
    }
    Ok(())
}
