use super::super::{
    Exactness, Node,
    bounds::{Bounds, of_kind},
    clause::{Clause, integer},
    operator::{Operator, Rank},
};
use crate::{
    Code, Error, Result,
    interval::IntervalSet,
    order::bracket,
    raw::{Kind, Value, Writer},
    work,
};

/// `$type`: the value is of one of these types.
#[derive(Clone, Debug)]
struct Types(Vec<Kind>);

/// Returns the number of a type in `$type`: its type byte, except for MinKey.
fn number_of(kind: Kind) -> i64 {
    if kind == Kind::MinKey { -1 } else { i64::from(kind.byte()) }
}

impl Operator for Types {
    fn holds(&self, value: Value<'_>) -> bool {
        self.0.contains(&value.kind())
    }

    fn bounds(&self) -> Bounds {
        if self.0.contains(&Kind::Array) {
            return Bounds::unknown();
        }
        let mut bounds = Bounds::exact(IntervalSet::empty());
        for &kind in &self.0 {
            let class = bracket(kind);
            // A missing field has the key of null, and an empty array that of undefined.
            let shared = matches!(kind, Kind::Null | Kind::Undefined);
            let whole = Kind::ALL.iter().all(|other| bracket(*other) != class || self.0.contains(other));
            let exact = if whole && !shared { Exactness::Always } else { Exactness::Never };
            bounds = bounds.or(Bounds { intervals: of_kind(kind), exact });
        }
        bounds
    }

    fn may_limit_an_index(&self) -> bool {
        true
    }

    fn rank(&self) -> Rank {
        Rank::Type
    }

    fn write(&self, out: &mut Writer) {
        out.open_array(b"$type");
        for (index, kind) in self.0.iter().enumerate() {
            let number = number_of(*kind).to_le_bytes();
            out.append(index.to_string().as_bytes(), Value::new(Kind::Int64, &number));
        }
        out.close();
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let mut kinds = Vec::new();
    match clause.operand.as_array() {
        Some(names) => names.values().try_for_each(|name| {
            work::take(work::PARSED)?;
            add(name, &mut kinds)
        }),
        None => add(clause.operand, &mut kinds),
    }
    .map_err(|error| clause.locate(error))?;
    if kinds.is_empty() {
        let message = format!("{} must match at least one type", clause.path);
        return Err(clause.refuse_with(Code::FAILED_TO_PARSE, message));
    }
    kinds.sort_by_key(|kind| number_of(*kind));
    Ok(Some(Node::field(clause.path, Types(kinds))))
}

fn add_kind(kind: Kind, kinds: &mut Vec<Kind>) {
    if !kinds.contains(&kind) {
        kinds.push(kind);
    }
}

/// Adds the types that one operand names.
fn add(name: Value<'_>, kinds: &mut Vec<Kind>) -> Result<()> {
    let refuse = |message: String| Err(Error::new(Code::BAD_VALUE, message));
    if let Some(alias) = name.as_str() {
        if alias == "number" {
            Kind::ALL.into_iter().filter(|kind| kind.is_number()).for_each(|kind| add_kind(kind, kinds));
            return Ok(());
        }
        return match Kind::ALL.iter().find(|kind| kind.alias() == alias) {
            Some(kind) => {
                add_kind(*kind, kinds);
                Ok(())
            }
            None if alias == "missing" => refuse(
                "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}."
                    .into(),
            ),
            None => refuse(format!("Unknown type name alias: {alias}")),
        };
    }
    if !name.kind().is_number() {
        return Err(Error::new(Code::TYPE_MISMATCH, "type must be represented as a number or a string"));
    }
    let kind = integer(name).ok().and_then(|number| Kind::ALL.iter().find(|kind| number_of(**kind) == number));
    match kind {
        Some(kind) => {
            add_kind(*kind, kinds);
            Ok(())
        }
        None => refuse(format!("Invalid numerical type code: {name:?}")),
    }
}
