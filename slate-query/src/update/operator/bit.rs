//! `$bit`: bitwise and, or, xor.

use super::{arithmetic::append, contract::Operator};
use crate::{
    Code, Error, Result,
    number::Number,
    raw::{Doc, Kind, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Debug)]
struct Bit(Vec<(BitOperation, Integer)>);

#[derive(Clone, Copy, Debug)]
enum BitOperation {
    And,
    Or,
    Xor,
}

/// An integer with its width. The result has the wider width of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Integer {
    Int32(i32),
    Int64(i64),
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    let refuse = |message: String| Error::new(Code::BAD_VALUE, message);
    let Some(operations) = argument.as_document() else {
        return Err(refuse(format!("$bit takes {{and | or | xor: <integer>}}, not a {}", argument.kind().alias())));
    };
    let parse_one = |name: &[u8], operand: Value<'_>| {
        let operation = match name {
            b"and" => BitOperation::And,
            b"or" => BitOperation::Or,
            b"xor" => BitOperation::Xor,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(refuse(format!("$bit knows 'and', 'or' and 'xor', not '{other}'")));
            }
        };
        let operand = Integer::of(operand)
            .ok_or_else(|| refuse(format!("$bit takes an int32 or int64, not a {}", operand.kind().alias())))?;
        Ok((operation, operand))
    };
    let operations: Vec<_> =
        Doc::elements(operations).map(|field| parse_one(field.name, field.value)).collect::<Result<_>>()?;
    if operations.is_empty() {
        return Err(refuse("$bit takes at least one operation".into()));
    }
    Ok(Box::new(Bit(operations)))
}

impl Integer {
    fn of(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Int32 => value.as_i32().map(Self::Int32),
            Kind::Int64 => value.as_i64().map(Self::Int64),
            _ => None,
        }
    }

    fn wide(self) -> i64 {
        match self {
            Self::Int32(int) => i64::from(int),
            Self::Int64(int) => int,
        }
    }
}

impl BitOperation {
    fn apply(self, a: Integer, b: Integer) -> Integer {
        match (a, b) {
            (Integer::Int32(a), Integer::Int32(b)) => Integer::Int32(match self {
                Self::And => a & b,
                Self::Or => a | b,
                Self::Xor => a ^ b,
            }),
            (Integer::Int64(_), _) | (_, Integer::Int64(_)) => Integer::Int64(match self {
                Self::And => a.wide() & b.wide(),
                Self::Or => a.wide() | b.wide(),
                Self::Xor => a.wide() ^ b.wide(),
            }),
        }
    }
}

impl Bit {
    fn apply(&self, value: Integer) -> Integer {
        self.0.iter().fold(value, |value, (operation, operand)| operation.apply(value, *operand))
    }
}

fn write(name: &[u8], integer: Integer, out: &mut Writer) {
    match integer {
        Integer::Int32(int) => append(name, Number::Int32(int), out),
        Integer::Int64(int) => append(name, Number::Int64(int), out),
    }
}

impl Operator for Bit {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let integer = Integer::of(value).ok_or_else(|| {
            let message = format!("cannot apply $bit to a value of type {}", value.kind().alias());
            Error::new(Code::BAD_VALUE, message)
        })?;
        let result = self.apply(integer);
        if result == integer {
            return Ok(UpdateOutcome::Unchanged);
        }
        write(name, result, out);
        Ok(UpdateOutcome::Changed)
    }

    /// A missing field counts as the int32 zero.
    fn create(&self, name: &[u8], _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        write(name, self.apply(Integer::Int32(0)), out);
        Ok(UpdateOutcome::Changed)
    }
}
