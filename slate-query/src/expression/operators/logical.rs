//! `$and`, `$or`, `$not`, `$cond`, `$ifNull` and `$switch`.

use std::sync::Arc;

use super::super::{
    Env, Evaluated, Expression, Logic, Variables,
    arguments::Arguments,
    node::{ExpressionNode, Operator},
    operands::operands,
};
use crate::{
    Code, Error, Result,
    raw::{Doc, Value},
    work,
};

pub(super) fn not<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok((!arguments.get(0).is_true()).into())
}

/// `$and` and `$or`: stops at the first operand that decides.
#[derive(Debug)]
struct Decide {
    operands: Box<[Expression]>,
    /// The truth that decides the result as soon as one operand has it: false for `$and`, true for `$or`.
    decisive: bool,
}

impl Operator for Decide {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        for operand in &self.operands {
            if operand.evaluate(env)?.is_true() == self.decisive {
                return Ok(self.decisive.into());
            }
        }
        Ok((!self.decisive).into())
    }

    fn operands(&self) -> Vec<&Expression> {
        self.operands.iter().collect()
    }

    fn logic(&self) -> Option<Logic<'_>> {
        let operands = self.operands();
        Some(if self.decisive { Logic::Any(operands) } else { Logic::All(operands) })
    }
}

pub(super) fn and(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    decide(operand, variables, false)
}

pub(super) fn or(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    decide(operand, variables, true)
}

fn decide(operand: Value<'_>, variables: &Variables, decisive: bool) -> Result<Expression> {
    let mut operands = operands(operand, variables)?;
    // As in MongoDB, a decisive constant decides before the other operands are evaluated.
    if operands.iter().any(|operand| operand.truth() == Some(decisive)) {
        return Ok(constant(decisive));
    }
    operands.retain(|operand| operand.truth().is_none());
    if operands.is_empty() {
        return Ok(constant(!decisive));
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(Decide { operands: operands.into(), decisive }))))
}

fn constant(truth: bool) -> Expression {
    Expression::constant(Evaluated::from(truth).or_null())
}

/// `$cond` and `$switch`: the value of the first branch whose condition holds.
#[derive(Debug)]
struct Branches {
    branches: Box<[(Expression, Expression)]>,
    otherwise: Option<Expression>,
}

impl Operator for Branches {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        for (condition, value) in &self.branches {
            if condition.evaluate(env)?.is_true() {
                return value.evaluate(env);
            }
        }
        match &self.otherwise {
            Some(otherwise) => otherwise.evaluate(env),
            None => Err(Error::new(Code(40066), "no branch of $switch applies, and it has no default")),
        }
    }

    fn operands(&self) -> Vec<&Expression> {
        self.branches.iter().flat_map(|(condition, value)| [condition, value]).chain(&self.otherwise).collect()
    }
}

fn branches(branches: Vec<(Expression, Expression)>, otherwise: Option<Expression>) -> Expression {
    Expression(ExpressionNode::Operator(Arc::new(Branches { branches: branches.into(), otherwise })))
}

pub(super) fn cond(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let parts: [Expression; 3] = match operand.as_document() {
        Some(document) => {
            let [mut condition, mut yes, mut no] = [None, None, None];
            for element in document.elements() {
                let place = match element.name {
                    b"if" => &mut condition,
                    b"then" => &mut yes,
                    b"else" => &mut no,
                    _ => {
                        let message = format!("unknown parameter of $cond: {}", element.display_name());
                        return Err(Error::new(Code(17083), message));
                    }
                };
                *place = Some(Expression::parse(element.value, variables)?);
            }
            let missing = |code, part| Error::new(Code(code), format!("$cond needs the parameter '{part}'"));
            [
                condition.ok_or_else(|| missing(17080, "if"))?,
                yes.ok_or_else(|| missing(17081, "then"))?,
                no.ok_or_else(|| missing(17082, "else"))?,
            ]
        }
        None => operands(operand, variables)?.try_into().map_err(|operands: Vec<_>| {
            let message = format!("expression {name} takes exactly 3 arguments, {} were given", operands.len());
            Error::new(Code(16020), message)
        })?,
    };
    let [condition, yes, no] = parts;
    Ok(match condition.truth() {
        Some(true) => yes,
        Some(false) => no,
        None => branches(vec![(condition, yes)], Some(no)),
    })
}

pub(super) fn switch(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let refused = |code, message: &str| Err(Error::new(Code(code), message));
    let Some(document) = operand.as_document() else { return refused(40060, "$switch takes an object") };
    let (mut cases, mut otherwise) = (Vec::<(Expression, Expression)>::new(), None);
    let lenient = variables.clone().lenient();
    let mut is_decided = false;
    for element in document.elements() {
        match element.name {
            b"branches" => {
                let Some(array) = element.value.as_array() else {
                    return refused(40061, "the branches of $switch are an array");
                };
                for branch in array.values() {
                    work::take(1)?;
                    let Some(branch) = branch.as_document() else {
                        return refused(40062, "a branch of $switch is an object");
                    };
                    // As in MongoDB, an expression after a condition that is constant and true does not fail when it
                    // is parsed, because it is never evaluated.
                    let parsed = case(branch, if is_decided { &lenient } else { variables }, &lenient)?;
                    is_decided |= parsed.0.truth() == Some(true);
                    cases.push(parsed);
                }
            }
            b"default" if otherwise.is_some() => return refused(40068, "$switch has one default"),
            b"default" => otherwise = Some(Expression::parse(element.value, variables)?),
            _ => return refused(40067, &format!("unknown parameter of $switch: {}", element.display_name())),
        }
    }
    if cases.is_empty() {
        return refused(40068, "$switch needs at least one branch");
    }
    // Branches whose condition is constant and false are left out.
    cases.retain(|(condition, _)| condition.truth() != Some(false));
    // The first branch whose condition is constant and true replaces the default and all branches after it.
    if let Some(place) = cases.iter().position(|(condition, _)| condition.truth() == Some(true)) {
        otherwise = cases.drain(place..).next().map(|(_, value)| value);
    }
    match otherwise {
        Some(only) if cases.is_empty() => Ok(only),
        None if cases.is_empty() => refused(40069, "no branch of $switch can apply, and it has no default"),
        otherwise => Ok(branches(cases, otherwise)),
    }
}

/// Parses a branch of `$switch`. Its value is parsed with `lenient` if the condition is constant and false.
fn case(branch: Doc<'_>, variables: &Variables, lenient: &Variables) -> Result<(Expression, Expression)> {
    let [mut condition, mut value] = [None, None];
    for element in branch.elements() {
        let place = match element.name {
            b"case" => &mut condition,
            b"then" => &mut value,
            _ => {
                let message = format!("unknown parameter of a branch of $switch: {}", element.display_name());
                return Err(Error::new(Code(40063), message));
            }
        };
        *place = Some(element.value);
    }
    let missing = |code, part| Error::new(Code(code), format!("a branch of $switch needs '{part}'"));
    let condition = condition.ok_or_else(|| missing(40064, "case"))?;
    let value = value.ok_or_else(|| missing(40065, "then"))?;
    let condition = Expression::parse(condition, variables)?;
    let within = if condition.truth() == Some(false) { lenient } else { variables };
    Ok((condition, Expression::parse(value, within)?))
}

/// `$ifNull`: the first operand that is not null or missing, or the last.
#[derive(Debug)]
struct IfNull(Box<[Expression]>);

impl Operator for IfNull {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let Some((last, others)) = self.0.split_last() else { return Ok(Evaluated::NULL) };
        for operand in others {
            let value = operand.evaluate(env)?;
            if !value.is_nullish() {
                return Ok(value);
            }
        }
        last.evaluate(env)
    }

    fn operands(&self) -> Vec<&Expression> {
        self.0.iter().collect()
    }
}

pub(super) fn if_null(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let operands = operands(operand, variables)?;
    if operands.len() < 2 {
        return Err(Error::new(Code(1_257_300), "$ifNull needs at least two arguments"));
    }
    // Drops null constants except the last operand, and all operands after a constant that is not null.
    let (last, mut kept) = (operands.len() - 1, Vec::with_capacity(operands.len()));
    for (place, operand) in operands.into_iter().enumerate() {
        let is_null = operand.as_constant().map(|constant| constant.is_nullish());
        if is_null != Some(true) || place == last {
            kept.push(operand);
        }
        if is_null == Some(false) {
            break;
        }
    }
    match <[Expression; 1]>::try_from(kept) {
        Ok([only]) => Ok(only),
        Err(kept) => Ok(Expression(ExpressionNode::Operator(Arc::new(IfNull(kept.into()))))),
    }
}
