//! The functions that only windows have, and the table of their names. Accumulators are functions, too.
//!
//! A new function is a function that parses it and its line in `FUNCTIONS`, which is sorted by name.

use super::{
    function::{Divisor, Function, Rank, refused},
    rate::{self, Rate},
    scale::Scaling,
    series::{self, Filling},
};
use crate::{
    Code, Error, Result,
    expression::{Expression, Variables, accumulator::AccumulatorSpec},
    number::Number,
    raw::{Doc, Element, Value},
    sort::Sort,
};

/// A function as it is written in `$setWindowFields`.
#[derive(Clone, Copy)]
pub(super) struct WindowCall<'c> {
    pub(super) name: &'c str,
    pub(super) operand: Value<'c>,
    /// Whether a window is given.
    pub(super) has_window: bool,
    pub(super) sort: Option<&'c Sort>,
    pub(super) variables: &'c Variables,
}

type ParseFunction = fn(&WindowCall<'_>) -> Result<Function>;

static FUNCTIONS: &[(&str, ParseFunction)] = &[
    ("$covariancePop", |call| covariance(call, Divisor::Population)),
    ("$covarianceSamp", |call| covariance(call, Divisor::Sample)),
    ("$denseRank", |call| rank(call, Rank::Dense)),
    ("$derivative", derivative),
    ("$documentNumber", |call| rank(call, Rank::Number)),
    ("$expMovingAvg", moving_average),
    ("$integral", |call| rate_of(call, Rate::Integral)),
    ("$linearFill", |call| fill(call, Filling::Linear)),
    ("$locf", |call| fill(call, Filling::Last)),
    ("$minMaxScaler", scale),
    ("$rank", |call| rank(call, Rank::Sparse)),
    ("$shift", shift),
];

/// Returns the names of the functions that are not accumulators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

impl WindowCall<'_> {
    pub(super) fn parse(&self) -> Result<Function> {
        match FUNCTIONS.binary_search_by(|(name, _)| (*name).cmp(self.name)).ok().and_then(|at| FUNCTIONS.get(at)) {
            Some((_, parse)) => parse(self),
            None if matches!(self.name, "$accumulator" | "$mergeObjects") => {
                Err(self.refused("is not a window function"))
            }
            None => match AccumulatorSpec::parse_over_window(self.name, self.operand, self.variables) {
                Err(error) if error.code() == Code(15_952) => Err(self.refused("is not a window function")),
                accumulator => accumulator.map(Function::Accumulate),
            },
        }
    }

    fn refused(&self, what: &str) -> Error {
        refused(self.name, what)
    }

    /// Fails with `code` if a window is given.
    fn without_window(&self, code: Code) -> Result<()> {
        if self.has_window { Err(Error::new(code, format!("{} does not accept a window", self.name))) } else { Ok(()) }
    }

    /// Returns the number of fields by which the documents are sorted.
    fn sort_fields(&self) -> usize {
        self.sort.map_or(0, |sort| sort.fields().len())
    }

    /// Fails with `code` if the function needs another `sortBy`.
    fn sorted(&self, is_sorted: bool, code: Code) -> Result<()> {
        if is_sorted { Ok(()) } else { Err(Error::new(code, format!("{} needs a sortBy with one field", self.name))) }
    }

    /// Returns the named parts of the operand.
    fn parts<const N: usize>(&self, names: [&str; N]) -> Result<[Option<Value<'_>>; N]> {
        let document = self.operand.as_document();
        let document = document.ok_or_else(|| self.refused("takes an object"))?;
        let mut parts = [None; N];
        for element in document.elements() {
            let place = names.iter().position(|name| name.as_bytes() == element.name);
            let part = place.and_then(|place| parts.get_mut(place));
            let part = part.ok_or_else(|| self.refused(&format!("has no parameter '{}'", element.display_name())))?;
            *part = Some(element.value);
        }
        Ok(parts)
    }

    /// Parses a number that is a constant or a constant expression.
    fn number(&self, value: Value<'_>) -> Result<Number> {
        let expression = self.expression(value)?;
        let constant = expression.as_constant().ok_or_else(|| self.refused("takes constants as 'min' and 'max'"))?;
        let number = constant.as_value().and_then(Number::of);
        number.ok_or_else(|| self.refused("takes numbers as 'min' and 'max'"))
    }

    fn expression(&self, value: Value<'_>) -> Result<Expression> {
        Expression::parse(value, self.variables)
    }
}

fn rank(call: &WindowCall<'_>, rank: Rank) -> Result<Function> {
    call.without_window(Code(5_371_601))?;
    call.sorted(call.sort_fields() == 1, Code(5_371_602))?;
    let operand = call.operand.as_document();
    if !operand.is_some_and(|operand| operand.is_empty()) {
        return Err(Error::new(Code(5_371_603), format!("{} takes an empty object", call.name)));
    }
    Ok(Function::Rank(rank))
}

fn shift(call: &WindowCall<'_>) -> Result<Function> {
    call.without_window(Code::FAILED_TO_PARSE)?;
    call.sorted(call.sort.is_some(), Code::FAILED_TO_PARSE)?;
    let [output, by, default] = call.parts(["output", "by", "default"])?;
    let (Some(output), Some(by)) = (output, by) else {
        return Err(call.refused("needs the parameters 'output' and 'by'"));
    };
    let by = Number::of(by).and_then(Number::to_i64);
    let by = by.ok_or_else(|| call.refused("takes a whole number as 'by'"))?;
    let default = match default.map(|default| call.expression(default)).transpose()? {
        None => Some(Value::NULL.to_owned()),
        Some(default) => {
            let constant = default.as_constant().ok_or_else(|| call.refused("takes a constant as 'default'"))?;
            constant.as_value().map(Value::to_owned)
        }
    };
    Ok(Function::Shift { output: call.expression(output)?, by, default })
}

fn fill(call: &WindowCall<'_>, how: Filling) -> Result<Function> {
    call.without_window(Code::FAILED_TO_PARSE)?;
    call.sorted(how == Filling::Last || call.sort_fields() == 1, Code(605_001))?;
    Ok(Function::Fill { input: call.expression(call.operand)?, how })
}

fn moving_average(call: &WindowCall<'_>) -> Result<Function> {
    call.without_window(Code::FAILED_TO_PARSE)?;
    call.sorted(call.sort.is_some(), Code::FAILED_TO_PARSE)?;
    let [input, n, alpha] = call.parts(["input", "N", "alpha"])?;
    let input = input.ok_or_else(|| call.refused("needs the parameter 'input'"))?;
    Ok(Function::MovingAverage { input: call.expression(input)?, alpha: series::alpha(call.name, n, alpha)? })
}

fn scale(call: &WindowCall<'_>) -> Result<Function> {
    let known = |element: &Element<'_>| matches!(element.name, b"input" | b"min" | b"max");
    let mut names = call.operand.as_document().into_iter().flat_map(Doc::elements);
    if let Some(element) = names.find(|element| !known(element)) {
        let message = format!("{} has no parameter '{}'", call.name, element.display_name());
        return Err(Error::new(Code(40_415), message));
    }
    let [input, min, max] = call.parts(["input", "min", "max"])?;
    let input = input.ok_or_else(|| Error::new(Code(40_414), "$minMaxScaler needs the parameter 'input'"))?;
    let bounds = match (min, max) {
        (None, None) => (Number::Int32(0), Number::Int32(1)),
        (Some(min), Some(max)) => (call.number(min)?, call.number(max)?),
        _ => return Err(call.refused("takes both 'min' and 'max' or none of them")),
    };
    if bounds.0 >= bounds.1 {
        return Err(call.refused("takes a 'max' greater than 'min'"));
    }
    let extreme = |name| AccumulatorSpec::parse_over_window(name, input, call.variables);
    Ok(Function::Scale(Scaling { least: extreme("$min")?, greatest: extreme("$max")?, bounds }))
}

fn derivative(call: &WindowCall<'_>) -> Result<Function> {
    call.sorted(call.sort_fields() == 1, Code::FAILED_TO_PARSE)?;
    if !call.has_window {
        return Err(call.refused("needs explicit window bounds"));
    }
    rate_of(call, Rate::Derivative)
}

fn rate_of(call: &WindowCall<'_>, rate: Rate) -> Result<Function> {
    call.sorted(call.sort_fields() == 1, Code::FAILED_TO_PARSE)?;
    let [input, unit] = call.parts(["input", "unit"])?;
    let input = input.ok_or_else(|| call.refused("needs the parameter 'input'"))?;
    let unit = unit.map(|unit| rate::unit(call.name, unit)).transpose()?;
    Ok(Function::Rate { input: call.expression(input)?, unit, rate })
}

fn covariance(call: &WindowCall<'_>, divisor: Divisor) -> Result<Function> {
    Ok(Function::Covariance { pair: call.expression(call.operand)?, divisor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| name));
    }
}
