//! Operators that define variables: `$let`, `$map`, `$filter` and `$reduce`.

use std::sync::Arc;

use super::super::{
    Env, Evaluated, Expression, Variables,
    arguments::wrong_type,
    evaluated::ArrayWriter,
    node::{ExpressionNode, Operator},
    operands::{need, parts},
};
use crate::{
    Code, Error, Result,
    held::Held,
    number::Number,
    raw::{Doc, Value},
    work,
};

fn node(operator: impl Operator + 'static) -> Expression {
    Expression(ExpressionNode::Operator(Arc::new(operator)))
}

/// Returns the name of the variable for an element: the value of `as`, or "this".
fn element_name(part: Option<Value<'_>>, operator: &str) -> Result<Box<str>> {
    match part {
        None => Ok("this".into()),
        Some(name) => name.as_str().map(Into::into).ok_or_else(|| {
            Error::new(Code::FAILED_TO_PARSE, format!("the parameter 'as' of {operator} is a name for a variable"))
        }),
    }
}

#[derive(Debug)]
struct Let {
    values: Box<[Expression]>,
    body: Expression,
}

impl Operator for Let {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let (mut values, mut held) = (Vec::with_capacity(self.values.len()), Held::default());
        for value in &self.values {
            work::take(1)?;
            let value = value.evaluate(env)?;
            held.add(value.heap_bytes())?;
            values.push(value);
        }
        let frame = env.frame_of_computed(&values);
        self.body.evaluate(&env.within(&frame))?.into_held(&mut held)
    }

    fn operands(&self) -> Vec<&Expression> {
        self.values.iter().chain([&self.body]).collect()
    }
}

pub(super) fn let_in(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let [vars, body] = parts(name, operand, ["vars", "in"], (16874, 16875))?;
    let vars = need(vars, name, "vars", 16876)?;
    let body = need(body, name, "in", 16877)?;
    let vars =
        vars.as_document().ok_or_else(|| Error::new(Code(16874), "the parameter 'vars' of $let is an object"))?;
    let (mut inner, mut values) = (variables.clone(), Vec::new());
    for element in vars.elements() {
        // No value can refer to the new variables.
        values.push(Expression::parse(element.value, variables)?);
        inner.add(&element.display_name())?;
    }
    let body = Expression::parse(body, &inner)?;
    Ok(if values.is_empty() { body } else { node(Let { values: values.into(), body }) })
}

/// Returns the elements of the input; `None` for null.
fn elements<'a>(operator: &str, input: &'a Evaluated<'_>, code: i32) -> Result<Option<Doc<'a>>> {
    let Some(value) = input.present() else { return Ok(None) };
    value.as_array().map(Some).ok_or_else(|| wrong_type(operator, code, "an array as 'input'", input))
}

#[derive(Debug)]
struct Map {
    input: Expression,
    body: Expression,
}

impl Operator for Map {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let Some(elements) = elements("$map", &input, 16883)? else { return Ok(Evaluated::NULL) };
        let _input = Held::of(input.heap_bytes())?;
        let mut values = ArrayWriter::default();
        for element in elements.values() {
            work::take(1)?;
            let frame = env.frame(Some(element));
            values.push(self.body.evaluate(&env.within(&frame))?.or_null());
            values.check()?;
        }
        values.finish()
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.input, &self.body]
    }
}

pub(super) fn map(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let [input, as_name, body] = parts(name, operand, ["input", "as", "in"], (16878, 16879))?;
    let input = need(input, name, "input", 16880)?;
    let body = need(body, name, "in", 16882)?;
    let inner = variables.with(&element_name(as_name, name)?)?;
    Ok(node(Map { input: Expression::parse(input, variables)?, body: Expression::parse(body, &inner)? }))
}

#[derive(Debug)]
struct Filter {
    input: Expression,
    condition: Expression,
    limit: Option<Expression>,
}

impl Operator for Filter {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let Some(elements) = elements("$filter", &input, 28651)? else { return Ok(Evaluated::NULL) };
        // As in MongoDB, the limit is not evaluated for an empty array.
        if elements.is_empty() {
            return Ok(input);
        }
        let limit = match &self.limit {
            Some(limit) => limit_of(&limit.evaluate(env)?)?,
            None => usize::MAX,
        };
        let _input = Held::of(input.heap_bytes())?;
        let (mut values, mut count) = (ArrayWriter::default(), 0);
        for element in elements.values() {
            if count == limit {
                break;
            }
            work::take(1)?;
            let frame = env.frame(Some(element));
            if self.condition.evaluate(&env.within(&frame))?.is_true() {
                values.push(element);
                values.check()?;
                count += 1;
            }
        }
        values.finish()
    }

    fn operands(&self) -> Vec<&Expression> {
        [&self.input, &self.condition].into_iter().chain(&self.limit).collect()
    }
}

fn limit_of(limit: &Evaluated<'_>) -> Result<usize> {
    let Some(value) = limit.present() else { return Ok(usize::MAX) };
    let whole = Number::of(value).and_then(Number::to_i64).and_then(|whole| i32::try_from(whole).ok());
    let whole = whole
        .ok_or_else(|| Error::new(Code(327_391), "the limit of $filter is a whole number in the range of int32"))?;
    usize::try_from(whole)
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or_else(|| Error::new(Code(327_392), "the limit of $filter is positive"))
}

pub(super) fn filter(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let [input, as_name, condition, limit] = parts(name, operand, ["input", "as", "cond", "limit"], (28646, 28647))?;
    let input = need(input, name, "input", 28648)?;
    let condition = need(condition, name, "cond", 28650)?;
    let inner = variables.with(&element_name(as_name, name)?)?;
    Ok(node(Filter {
        input: Expression::parse(input, variables)?,
        condition: Expression::parse(condition, &inner)?,
        limit: limit.map(|limit| Expression::parse(limit, variables)).transpose()?,
    }))
}

#[derive(Debug)]
struct Reduce {
    input: Expression,
    initial: Expression,
    body: Expression,
}

impl Operator for Reduce {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let Some(elements) = elements("$reduce", &input, 40080)? else { return Ok(Evaluated::NULL) };
        let _input = Held::of(input.heap_bytes())?;
        let mut value = self.initial.evaluate(env)?;
        let mut held = Held::of(value.heap_bytes())?;
        for element in elements.values() {
            work::take(1)?;
            let outer = env.frame(Some(element));
            let within = env.within(&outer);
            let frame = within.frame(value.as_value());
            let mut held_next = Held::default();
            let next = self.body.evaluate(&within.within(&frame))?.into_held(&mut held_next)?;
            (value, held) = (next, held_next);
        }
        drop(held);
        Ok(value)
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.input, &self.initial, &self.body]
    }
}

pub(super) fn reduce(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let [input, initial, body] = parts(name, operand, ["input", "initialValue", "in"], (40075, 40076))?;
    let input = need(input, name, "input", 40077)?;
    let initial = need(initial, name, "initialValue", 40078)?;
    let body = need(body, name, "in", 40079)?;
    let inner = variables.with("this")?.with("value")?;
    Ok(node(Reduce {
        input: Expression::parse(input, variables)?,
        initial: Expression::parse(initial, variables)?,
        body: Expression::parse(body, &inner)?,
    }))
}
