//! `$bucket`: groups documents by the range that an expression's value is in. It is parsed as a `$group` by an expression of its own,
//! [`ranges`]. A group stage returns its groups in the order of their ids, which is the order of the ranges.

use std::cmp::Ordering;

use super::group;
use crate::{
    Code, Error, Result,
    expression::{Bindings, Expression, ranges},
    order,
    pipeline::Stage,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let options =
        argument.as_document().ok_or_else(|| refused(40_201, "argument to $bucket stage must be an object"))?;
    let (mut group_by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for element in options.elements() {
        match element.name {
            b"groupBy" => group_by = Some(check_group_by(element.value, 40_202)?),
            b"boundaries" => boundaries = Some(parse_boundaries(element.value, bindings)?),
            b"default" => {
                let constant = constant(element.value, bindings)?
                    .ok_or_else(|| refused(40_195, "the $bucket 'default' field must be a constant"))?;
                default = Some(match constant.as_value() {
                    // As in MongoDB, code becomes a string.
                    code if code.kind() == Kind::Code => Value::new(Kind::String, code.bytes()).to_owned(),
                    _ => constant,
                });
            }
            b"output" => {
                let fields = element.value.as_document();
                output = Some(fields.ok_or_else(|| refused(40_196, "the $bucket 'output' field must be an object"))?);
            }
            _ => {
                let message = format!("unrecognized option to $bucket: {}", element.display_name());
                return Err(Error::new(Code(40_197), message));
            }
        }
    }
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        return Err(refused(40_198, "$bucket requires 'groupBy' and 'boundaries' to be specified"));
    };
    if let (Some(default), [first, .., last]) = (&default, boundaries.as_slice()) {
        let is_below = order::compare(default.as_value(), first.as_value()) == Ordering::Less;
        let is_above = order::compare(default.as_value(), last.as_value()) != Ordering::Less;
        if !is_below && !is_above {
            let message = "the $bucket 'default' field must be outside the boundaries";
            return Err(refused(40_199, message));
        }
    }
    let spec = grouped(group_by, &boundaries, default.as_ref(), output);
    let value = Expression::parse(group_by, bindings.names()).map_err(|error| error.at("_id"))?;
    let id = ranges(value, boundaries, default, bindings.collation()).map_err(|error| error.at("_id"))?;
    Ok(vec![Stage::Group(group::group_by(Some(id), Doc::new(&spec), bindings)?)])
}

/// Checks that a stage groups by a path or an operator.
pub(super) fn check_group_by(value: Value<'_>, code: i32) -> Result<Value<'_>> {
    let is_path = value.as_str().is_some_and(|path| path.starts_with('$'));
    let operator = value.as_document().and_then(|document| document.elements().next());
    if is_path || operator.is_some_and(|operator| operator.name.starts_with(b"$")) {
        return Ok(value);
    }
    Err(Error::new(Code(code), "the 'groupBy' field must be a $-prefixed path or an expression"))
}

fn constant(value: Value<'_>, bindings: &Bindings) -> Result<Option<OwnedValue>> {
    let expression = Expression::parse(value, bindings.names())?;
    Ok(expression.as_constant().map(|value| value.as_value().unwrap_or(Value::NULL).to_owned()))
}

fn parse_boundaries(value: Value<'_>, bindings: &Bindings) -> Result<Vec<OwnedValue>> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let array = value.as_array().ok_or_else(|| refused(40_200, "the $bucket 'boundaries' field must be an array"))?;
    let boundary = |value| {
        constant(value, bindings)?
            .ok_or_else(|| refused(40_191, "the $bucket 'boundaries' field must be an array of constant values"))
    };
    let boundaries = array.values().map(boundary).collect::<Result<Vec<_>>>()?;
    if boundaries.len() < 2 {
        return Err(refused(40_192, "the $bucket 'boundaries' field must have at least 2 values"));
    }
    for pair in boundaries.windows(2) {
        let [lower, upper] = pair else { continue };
        let (lower, upper) = (lower.as_value(), upper.as_value());
        if order::bracket(lower.kind()) != order::bracket(upper.kind()) {
            return Err(refused(40_193, "all 'boundaries' of $bucket must have the same type"));
        }
        if order::compare(lower, upper) != Ordering::Less {
            return Err(refused(40_194, "the 'boundaries' of $bucket must be sorted"));
        }
    }
    Ok(boundaries)
}

/// Returns the argument of the `$group` as it is shown.
fn grouped(
    group_by: Value<'_>,
    boundaries: &[OwnedValue],
    default: Option<&OwnedValue>,
    output: Option<Doc<'_>>,
) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.open_document(b"_id");
    writer.open_document(b"$bucket");
    writer.append(b"groupBy", group_by);
    writer.open_array(b"boundaries");
    for (position, boundary) in boundaries.iter().enumerate() {
        writer.append(position.to_string().as_bytes(), boundary.as_value());
    }
    writer.close();
    if let Some(default) = default {
        writer.append(b"default", default.as_value());
    }
    writer.close();
    writer.close();
    write_output(&mut writer, output);
    writer.finish()
}

/// Writes the accumulators of the `$group`; by default the number of documents.
pub(super) fn write_output(writer: &mut Writer, output: Option<Doc<'_>>) {
    match output {
        Some(output) => writer.extend(output),
        None => {
            writer.open_document(b"count");
            writer.append(b"$sum", Value::new(Kind::Int32, &1_i32.to_le_bytes()));
            writer.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn the_expression_is_not_repeated_for_each_boundary() {
        let text = "x".repeat(10_000);
        let boundaries: Vec<i32> = (0..1_000).collect();
        let bucket = doc! { "groupBy": { "$strLenCP": { "$concat": ["$a", text] } }, "boundaries": boundaries };
        let argument = bson::RawDocumentBuf::try_from(&doc! { "": bucket }).unwrap();
        let argument_bytes = argument.as_bytes().len();
        let stages = parse(Doc::from(&argument).get("").unwrap(), &Bindings::new(0)).unwrap();
        let shown: usize = stages.iter().map(|stage| stage.to_string().len()).sum();
        assert!(shown < 2 * argument_bytes, "{shown} characters of {argument_bytes} bytes");
    }
}
