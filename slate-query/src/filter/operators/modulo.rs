use super::super::{
    Node,
    bounds::{Bounds, of_bracket},
    clause::Clause,
    operator::{Operator, Rank},
};
use crate::{
    Result,
    number::Number,
    order::Bracket,
    raw::{Kind, Value, Writer},
};

/// `$mod`: the integer part of a number, divided by the divisor, leaves the remainder (with the sign of the number).
/// Numbers beyond int64, infinities and NaN never match.
#[derive(Clone, Copy, Debug)]
struct Modulo {
    divisor: i64,
    remainder: i64,
}

impl Operator for Modulo {
    fn holds(&self, value: Value<'_>) -> bool {
        let dividend = Number::of(value).and_then(Number::to_i64_truncating);
        dividend.is_some_and(|dividend| dividend.wrapping_rem(self.divisor) == self.remainder)
    }

    fn bounds(&self) -> Bounds {
        Bounds::loose(of_bracket(Bracket::Number))
    }

    fn rank(&self) -> Rank {
        Rank::Mod
    }

    fn write(&self, out: &mut Writer) {
        out.open_array(b"$mod");
        out.append(b"0", Value::new(Kind::Int64, &self.divisor.to_le_bytes()));
        out.append(b"1", Value::new(Kind::Int64, &self.remainder.to_le_bytes()));
        out.close();
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let array = clause.operand.as_array().ok_or_else(|| clause.refuse("malformed mod, needs to be an array"))?;
    let mut values = array.values();
    let mut next = |name: &str| {
        let value = values.next().ok_or_else(|| clause.refuse("malformed mod, not enough elements"))?;
        Number::of(value).ok_or_else(|| clause.refuse(format!("malformed mod, {name} not a number")))
    };
    let (divisor, remainder) = (next("divisor")?, next("remainder")?);
    if values.next().is_some() {
        return Err(clause.refuse("malformed mod, too many elements"));
    }
    let coerce = |number: Number, name: &str| {
        let why = if number.is_finite() {
            "Out of bounds coercing to integral value"
        } else {
            "Unable to coerce NaN/Inf to integral type"
        };
        let message = format!("malformed mod, {name} value is invalid :: caused by :: {why}");
        number.to_i64_truncating().ok_or_else(|| clause.refuse(message))
    };
    let operator = Modulo { divisor: coerce(divisor, "divisor")?, remainder: coerce(remainder, "remainder")? };
    if operator.divisor == 0 {
        return Err(clause.refuse("divisor cannot be 0"));
    }
    Ok(Some(Node::field(clause.path, operator)))
}
