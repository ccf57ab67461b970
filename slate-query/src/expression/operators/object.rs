//! `$mergeObjects`, `$getField`, `$setField` and `$unsetField`.

use std::sync::Arc;

use super::{
    super::{
        Env, Evaluated, Expression, Variables,
        arguments::{Arguments, wrong_type},
        evaluated::DocumentWriter,
        node::{ExpressionNode, Operator},
    },
    array::NAMED,
    named::Parts,
};
use crate::{
    Code, Error, Result,
    held::Held,
    named_list::NamedList,
    raw::{Doc, Kind, Value},
};

/// Returns the fields of all documents; a later field replaces the value of an earlier one of the same name.
pub(super) fn merge_objects<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (mut fields, mut held): (NamedList<&[u8], Value<'_>>, _) = (NamedList::default(), Held::default());
    // A single operand that is an array stands for its elements.
    let elements = match &*arguments.values {
        [only] => only.as_value().and_then(Value::as_array),
        _ => None,
    };
    let single = elements.is_none().then_some(&*arguments.values).into_iter().flatten().filter_map(Evaluated::as_value);
    for value in elements.into_iter().flat_map(Doc::values).chain(single) {
        if value.is_nullish() {
            continue;
        }
        let wrong = || arguments.wrong_type(40400, "documents", &Evaluated::Borrowed(value));
        let document = value.as_document().ok_or_else(wrong)?;
        for element in document.elements() {
            held.add(NAMED)?;
            fields.set(element.name, element.value);
        }
    }
    let mut writer = DocumentWriter::default();
    fields.into_entries().into_iter().for_each(|(name, value)| writer.append(name, value));
    writer.finish(Kind::Document)
}

/// `$getField`: a field by its literal name, which may contain dots and begin with `$`.
#[derive(Debug)]
struct GetField {
    field: Expression,
    input: Expression,
}

impl Operator for GetField {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let name = self.field.evaluate(env)?;
        let Some(name) = name.as_value().filter(|name| name.kind() == Kind::String).and_then(Value::as_str) else {
            return Err(wrong_type("$getField", 3_041_704, "a string as 'field'", &name));
        };
        let input = self.input.evaluate(env)?;
        Ok(match &input {
            Evaluated::Borrowed(value) => match value.as_document() {
                Some(document) => document.get(name).map_or(Evaluated::Missing, Evaluated::Borrowed),
                None if input.is_nullish() && input.as_value().is_some() => Evaluated::NULL,
                None => Evaluated::Missing,
            },
            Evaluated::Owned(value) => {
                let field = value.as_value().as_document().and_then(|document| document.get(name).map(Value::to_owned));
                field.map_or(Evaluated::Missing, Evaluated::Owned)
            }
            Evaluated::Missing => Evaluated::Missing,
        })
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.field, &self.input]
    }
}

fn current(variables: &Variables) -> Result<Expression> {
    Expression::parse(Evaluated::string("$$CURRENT").or_null(), variables)
}

pub(super) fn get_field(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let is_whole = operand.as_document().is_some_and(|document| {
        document.is_empty() || document.elements().next().is_some_and(|first| !first.name.starts_with(b"$"))
    });
    let (field, input) = if is_whole {
        let mut parts = Parts::parse(name, operand, &["field", "input"], variables, (3_041_701, 3_041_701))?;
        let field = parts.need(0, name, "field", 3_041_702)?;
        (field, parts.need(1, name, "input", 3_041_703)?)
    } else {
        (Expression::parse(operand, variables)?, current(variables)?)
    };
    if field.as_constant().is_some_and(|constant| constant.as_value().is_none_or(|name| name.kind() != Kind::String)) {
        return Err(Error::new(Code(3_041_704), "$getField takes a string as 'field'"));
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(GetField { field, input }))))
}

/// `$setField`: a document with one field set, or removed if the value is missing.
#[derive(Debug)]
struct SetField {
    field: Box<str>,
    input: Expression,
    value: Expression,
}

impl Operator for SetField {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let Some(value) = input.present() else { return Ok(Evaluated::NULL) };
        let document =
            value.as_document().ok_or_else(|| wrong_type("$setField", 4_161_105, "a document as 'input'", &input))?;
        let mut held = Held::of(input.heap_bytes())?;
        let value = self.value.evaluate(env)?;
        held.add(value.heap_bytes())?;
        with_field(document, &self.field, value.as_value()).finish(Kind::Document)
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.input, &self.value]
    }
}

fn with_field(document: Doc<'_>, name: &str, mut value: Option<Value<'_>>) -> DocumentWriter {
    let mut writer = DocumentWriter::default();
    for element in document.elements() {
        if element.name != name.as_bytes() {
            writer.append(element.name, element.value);
        } else if let Some(value) = value.take() {
            writer.append(element.name, value);
        }
    }
    if let Some(value) = value {
        writer.append(name.as_bytes(), value);
    }
    writer
}

fn not_constant(name: &str) -> Error {
    Error::new(Code(4_161_106), format!("{name} takes a constant as 'field'"))
}

/// Fails unless a field name is written as a constant. An expression of constants is not allowed.
fn check_written(name: &str, field: Value<'_>) -> Result<()> {
    if field.as_str().is_some_and(|text| text.starts_with('$')) {
        return Err(Error::new(
            Code(4_161_108),
            format!("{name} takes no field path as 'field'; write it as $literal"),
        ));
    }
    let is_literal = |document: Doc<'_>| {
        document.elements().next().is_none_or(|first| matches!(first.name, b"$literal" | b"$const"))
    };
    if field.as_array().is_some()
        || field.as_document().is_some_and(|document| !document.is_empty() && !is_literal(document))
    {
        return Err(not_constant(name));
    }
    Ok(())
}

pub(super) fn set_field(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let is_unset = name == "$unsetField";
    let names: &[&str] = if is_unset { &["field", "input"] } else { &["field", "input", "value"] };
    let mut parts = Parts::parse(name, operand, names, variables, (4_161_100, 4_161_101))?;
    let field = parts.need(0, name, "field", if is_unset { 4_161_109 } else { 4_161_102 })?;
    let input = parts.need(1, name, "input", 4_161_109)?;
    let value = match is_unset {
        true => Expression(ExpressionNode::Constant(None)),
        false => parts.need(2, name, "value", 4_161_103)?,
    };
    let written = operand.as_document().and_then(|document| document.get("field"));
    check_written(name, written.unwrap_or(Value::NULL))?;
    let constant = field.as_constant();
    let Some(constant) = constant else { return Err(not_constant(name)) };
    let text = constant.as_value().and_then(Value::as_str);
    let field = text.ok_or_else(|| wrong_type(name, 4_161_107, "a string as 'field'", &constant))?;
    if field.contains('\0') {
        return Err(Error::new(Code(9_534_700), format!("the 'field' of {name} must not contain a NUL byte")));
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(SetField { field: field.into(), input, value }))))
}
