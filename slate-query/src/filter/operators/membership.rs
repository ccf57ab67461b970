use super::{
    super::{
        Node,
        bounds::Bounds,
        clause::{Clause, is_operators},
        field::{Field, Sense},
        operator::{Cost, Operator, Rank},
    },
    regex::pattern_bounds,
};
use crate::{
    Result,
    interval::IntervalSet,
    path::Path,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    regular_expression::Pattern,
    value_set::ValueSet,
    work,
};

/// `$in`: the value is equal to one of the operands or matches one of the regular expressions.
#[derive(Clone, Debug)]
struct Membership {
    values: ValueSet<OwnedValue>,
    patterns: Vec<Pattern>,
}

impl Membership {
    fn has_null(&self) -> bool {
        self.values.as_slice().iter().any(|value| value.as_value().kind() == Kind::Null)
    }
}

impl Operator for Membership {
    fn holds(&self, value: Value<'_>) -> bool {
        self.values.contains(value)
            || !self.patterns.is_empty()
                && work::spend(self.patterns.len())
                && self.patterns.iter().any(|pattern| pattern.matches(value))
    }

    fn holds_missing(&self) -> bool {
        self.has_null()
    }

    fn bounds(&self) -> Bounds {
        let values = self.values.as_slice().iter().map(|value| Bounds::equal(value.as_value()));
        let patterns = self.patterns.iter().map(pattern_bounds);
        let mut exact = super::super::Exactness::Always;
        let mut intervals = Vec::new();
        for bounds in values.chain(patterns) {
            exact = exact.min(bounds.exact);
            intervals.extend(bounds.intervals.iter().cloned());
        }
        Bounds { intervals: IntervalSet::from(intervals), exact }
    }

    fn outside(&self, path: &Path) -> Option<IntervalSet> {
        let known = |value: &OwnedValue| value.as_value().kind() != Kind::Array;
        // As for a single null: on a longer path, a null key may belong to a position that the filter does not
        // evaluate.
        let simple = path.parts().len() == 1 && !path.has_position();
        let all_known = self.patterns.is_empty() && self.values.as_slice().iter().all(known);
        (self.has_null() && simple && all_known).then(|| self.bounds().intervals.complement())
    }

    /// Returns the only operand: `$in` with one operand is an equality.
    fn equality(&self) -> Option<Value<'_>> {
        match (self.values.as_slice(), self.patterns.as_slice()) {
            ([only], []) => Some(only.as_value()),
            _ => None,
        }
    }

    fn cost(&self) -> Cost {
        if self.patterns.is_empty() { Cost::Cheap } else { Cost::Expensive }
    }

    fn can_fail(&self) -> bool {
        self.patterns.iter().any(Pattern::can_fail)
    }

    fn may_limit_an_index(&self) -> bool {
        true
    }

    fn rank(&self) -> Rank {
        if self.equality().is_some() { Rank::Equal } else { Rank::In }
    }

    fn write(&self, out: &mut Writer) {
        out.open_array(b"$in");
        for (index, value) in self.values.as_slice().iter().enumerate() {
            out.append(index.to_string().as_bytes(), value.as_value());
        }
        for (index, pattern) in self.patterns.iter().enumerate() {
            let index = self.values.as_slice().len() + index;
            out.append(index.to_string().as_bytes(), pattern.to_value().as_value());
        }
        out.close();
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let operands = clause.operand.as_array().ok_or_else(|| clause.refuse(format!("{} needs an array", clause.name)))?;
    membership(clause, operands).map(|operator| Some(Node::field(clause.path, operator)))
}

pub(super) fn none_of(clause: Clause<'_>) -> Result<Option<Node>> {
    Ok(parse(clause)?.map(Node::negated))
}

/// Up to this number of equalities, comparing with each takes no longer than a search.
const FEW_EQUALITIES: usize = 8;

/// Merges equalities into `$in`, or with [`Sense::Fails`] negated ones into `$nin`. `None` for up to [`FEW_EQUALITIES`] nodes, unless all are on
/// one path, or if the call has ended.
pub(in super::super) fn of_equalities(nodes: &[Node], sense: Sense) -> Option<Field> {
    let (path, values) = equal_values(nodes, sense)?;
    let field = Field::new(path.clone(), Membership { values, patterns: Vec::new() });
    Some(if sense == Sense::Holds { field } else { field.fails() })
}

/// Returns the path and the operands of equalities, or with [`Sense::Fails`] of negated ones. `None` as for [`of_equalities`].
pub(in super::super) fn equal_values(nodes: &[Node], sense: Sense) -> Option<(&Path, ValueSet<OwnedValue>)> {
    if nodes.len() <= FEW_EQUALITIES {
        return None;
    }
    let (path, _) = nodes.first()?.equality(sense)?;
    let value = |node| Node::equality(node, sense).filter(|(other, _)| *other == path).map(|(_, value)| value);
    let values: Vec<Value<'_>> = nodes.iter().map(value).collect::<Option<_>>()?;
    // If the call ended early, the conditions stay as they are.
    let values = values.into_iter().map(|value| work::spend(work::PARSED).then(|| value.to_owned()));
    let values: Vec<OwnedValue> = values.collect::<Option<_>>()?;
    Some((path, values.into_iter().collect()))
}

fn membership(clause: Clause<'_>, operands: Doc<'_>) -> Result<Membership> {
    let mut values = Vec::new();
    let mut patterns = Vec::new();
    work::take(work::of_bytes(operands.bytes().len()))?;
    for operand in operands.values() {
        if is_operators(operand) {
            return Err(clause.refuse("cannot nest $ under $in"));
        }
        if operand.kind() == Kind::Undefined {
            return Err(clause.refuse("InMatchExpression equality cannot be undefined"));
        }
        if operand.kind() == Kind::Regex {
            patterns.push(Pattern::of_value(operand).map_err(|error| clause.locate(error))?);
        } else {
            values.push(operand.to_owned());
        }
    }
    Ok(Membership { values: values.into_iter().collect(), patterns })
}
