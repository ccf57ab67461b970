use std::sync::Arc;

use super::{
    Expression, Variables, fold,
    node::{ExpressionNode, Variable},
    operands::operands,
    operators::{self, OperatorEntry},
    path::follow,
};
use crate::{
    Code, Error, Result, held,
    path::field_path,
    raw::{Doc, FieldName, Kind, Value},
    work,
};

impl Expression {
    /// Parses an expression: a constant, `"$path"`, `"$$variable.path"`, `{$operator: …}`, or a document or an array of
    /// expressions. In addition to `variables`, every expression may use `$$ROOT`, `$$CURRENT`, `$$NOW` and `$$REMOVE`. Parts
    /// that do not depend on a document are computed here.
    ///
    /// # Errors
    /// MongoDB's code and the operator's name; [`Refusal::Unsupported`](crate::Refusal::Unsupported) for operators that
    /// MongoDB has and Slate does not.
    pub fn parse(value: Value<'_>, variables: &Variables) -> Result<Self> {
        work::take(work::PARSED)?;
        match value.kind() {
            Kind::String => match value.as_str() {
                Some(text) if text.starts_with('$') => reference(text, variables),
                _ => Ok(Self::constant(value)),
            },
            Kind::Document => document(Doc::new(value.bytes()), variables),
            Kind::Array => {
                let elements = Doc::new(value.bytes()).values().map(|element| Self::parse(element, variables));
                Self(ExpressionNode::Array(elements.collect::<Result<_>>()?)).of_constants(variables)
            }
            _ => Ok(Self::constant(value)),
        }
    }

    /// Returns whether MongoDB has an operator of this name.
    pub(crate) fn is_operator(name: &str) -> bool {
        operators::find(name).is_some()
    }

    /// Returns a document or an array of constants as a constant.
    fn of_constants(self, variables: &Variables) -> Result<Self> {
        let is_constant = match &self.0 {
            ExpressionNode::Array(elements) => elements.iter().all(Self::is_constant),
            ExpressionNode::Document(fields) => fields.iter().all(|(_, field)| field.is_constant()),
            _ => false,
        };
        if is_constant { self.folded(variables) } else { Ok(self) }
    }
}

/// Parses `"$a.b"` or `"$$name.a.b"`.
fn reference(text: &str, variables: &Variables) -> Result<Expression> {
    if text.contains('\0') {
        return Err(Error::new(Code(16411), "a field path contains a NUL character"));
    }
    let path = |path: &str| -> Result<Arc<[FieldName]>> {
        Ok(field_path::names(path)?.into_iter().map(FieldName::new).collect())
    };
    let Some(named) = text.strip_prefix("$$") else {
        let text = text.get(1..).unwrap_or_default();
        if text.is_empty() {
            return Err(Error::new(Code(16872), "'$' alone is not a field path"));
        }
        let variable = variables.find("CURRENT").map_or(Variable::Root, Variable::Frame);
        return Ok(Expression(ExpressionNode::Path(variable, path(text)?)));
    };
    let (name, rest) = named.split_once('.').map_or((named, None), |(name, rest)| (name, Some(rest)));
    if name.is_empty() {
        return Err(Error::new(Code::FAILED_TO_PARSE, "a variable has an empty name"));
    }
    let variable = match (variables.find(name), name) {
        (Some(up), _) => {
            if let Some(value) = variables.value(up) {
                let Some(rest) = rest else { return Ok(Expression(ExpressionNode::Constant(Some(value.clone())))) };
                let part = follow(value.as_value(), &path(rest)?)?;
                held::keep_constant(part.as_value().map_or(0, |part| part.bytes().len()))?;
                return Ok(Expression(ExpressionNode::Constant(part.as_value().map(Value::to_owned))));
            }
            Variable::Frame(up)
        }
        (None, "ROOT" | "CURRENT") => Variable::Root,
        (None, "NOW") => Variable::Now,
        (None, "REMOVE") => return Ok(Expression(ExpressionNode::Constant(None))),
        (None, "CLUSTER_TIME" | "SEARCH_META" | "USER_ROLES") => return Err(Error::unsupported(text)),
        (None, _) => return Err(Error::new(Code(17276), format!("the variable $${name} is not defined"))),
    };
    let names = rest.map(path).transpose()?.unwrap_or_default();
    Ok(Expression(ExpressionNode::Path(variable, names)))
}

fn document(document: Doc<'_>, variables: &Variables) -> Result<Expression> {
    let mut elements = document.elements();
    let Some(first) = elements.next() else {
        return Ok(Expression::constant(Value::new(Kind::Document, document.bytes())));
    };
    // A DBRef is a literal.
    let is_reference = first.name == b"$ref" && document.get("$id").is_some();
    if first.name.starts_with(b"$") && !is_reference {
        if elements.next().is_some() {
            return Err(Error::new(Code(15983), "an object that represents an expression has exactly one field"));
        }
        return operator(&first.display_name(), first.value, variables);
    }
    let field = |element: crate::raw::Element<'_>| {
        if element.name.is_empty() {
            return Err(Error::new(Code(15998), "the name of a field must not be empty"));
        }
        if element.name.starts_with(b"$") && !is_reference {
            let message = format!("the name of a field must not begin with '$': {}", element.display_name());
            return Err(Error::new(Code(16410), message));
        }
        if element.name.contains(&b'.') {
            let message = format!("the name of a field must not contain '.': {}", element.display_name());
            return Err(Error::new(Code(16412), message));
        }
        let value = Expression::parse(element.value, variables).map_err(|error| error.at(element.display_name()))?;
        Ok((element.name.into(), value))
    };
    let fields: Vec<(Box<[u8]>, Expression)> = document.elements().map(field).collect::<Result<_>>()?;
    let mut names: Vec<&[u8]> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.windows(2).find(|pair| matches!(pair, [a, b] if a == b)) {
        let message = format!("the field is given twice: {}", String::from_utf8_lossy(twice));
        return Err(Error::new(Code(16406), message));
    }
    let fields = fields.into();
    Expression(ExpressionNode::Document(fields)).of_constants(variables)
}

/// Parses an operator with its operands.
fn operator(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    match operators::find(name) {
        Some(OperatorEntry::Function(function)) => {
            let operands = operands(operand, variables)?;
            function.check(operands.len())?;
            fold::call(function, operands, variables)
        }
        Some(OperatorEntry::Operator(parse)) => parse(name, operand, variables),
        Some(OperatorEntry::Unsupported) => Err(Error::unsupported(name)),
        None => {
            let message = format!("unknown expression '{name}'");
            Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, message))
        }
    }
}
