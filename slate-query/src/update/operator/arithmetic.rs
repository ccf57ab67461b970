//! `$inc` and `$mul`: add to a number, and multiply it.

use super::contract::Operator;
use crate::{
    Code, Error, Result,
    number::Number,
    raw::{Kind, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Clone, Copy, Debug)]
struct Arithmetic {
    operation: ArithmeticOperation,
    operand: Number,
}

#[derive(Clone, Copy, Debug)]
enum ArithmeticOperation {
    Add,
    Multiply,
}

pub(super) fn parse_inc(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    parse(ArithmeticOperation::Add, argument)
}

pub(super) fn parse_mul(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    parse(ArithmeticOperation::Multiply, argument)
}

fn parse(operation: ArithmeticOperation, argument: Value<'_>) -> Result<Box<dyn Operator>> {
    match Number::of(argument) {
        Some(operand) => Ok(Box::new(Arithmetic { operation, operand })),
        None => {
            let message = format!("cannot {} by a {}", operation.verb(), argument.kind().alias());
            Err(Error::new(Code::TYPE_MISMATCH, message))
        }
    }
}

impl ArithmeticOperation {
    fn verb(self) -> &'static str {
        match self {
            Self::Add => "increment",
            Self::Multiply => "multiply",
        }
    }

    fn apply(self, a: Number, b: Number) -> Result<Number> {
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Multiply => a.checked_mul(b),
        };
        result.ok_or_else(|| Error::new(Code::BAD_VALUE, format!("cannot {}: the result overflows int64", self.verb())))
    }
}

impl Operator for Arithmetic {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let number = Number::of(value).ok_or_else(|| {
            let message = format!("cannot {} a value of type {}", self.operation.verb(), value.kind().alias());
            Error::new(Code::TYPE_MISMATCH, message)
        })?;
        let result = self.operation.apply(self.operand, number)?;
        if result.is_identical(number) {
            return Ok(UpdateOutcome::Unchanged);
        }
        append(name, result, out);
        Ok(UpdateOutcome::Changed)
    }

    /// A missing field counts as zero.
    fn create(&self, name: &[u8], _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let result = match self.operation {
            ArithmeticOperation::Add => self.operand,
            ArithmeticOperation::Multiply => self.operation.apply(self.operand, Number::Int32(0))?,
        };
        append(name, result, out);
        Ok(UpdateOutcome::Changed)
    }
}

/// Appends a number under its type.
pub(super) fn append(name: &[u8], number: Number, out: &mut Writer) {
    match number {
        Number::Int32(int) => out.append(name, Value::new(Kind::Int32, &int.to_le_bytes())),
        Number::Int64(int) => out.append(name, Value::new(Kind::Int64, &int.to_le_bytes())),
        Number::Double(double) => out.append(name, Value::new(Kind::Double, &double.to_le_bytes())),
        Number::Decimal(decimal) => out.append(name, Value::new(Kind::Decimal128, &decimal.to_bits())),
    }
}
