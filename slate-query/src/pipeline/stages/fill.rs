//! `$fill`: gives values to fields that are null or missing. It is parsed as a `$setWindowFields` for values that are
//! computed from the documents around, and an `$addFields` for other values.

use super::add_fields;
use crate::{
    Code, Error, Result,
    expression::Bindings,
    path::field_path,
    pipeline::{Stage, window},
    raw::{Doc, Kind, Value, Writer},
    sort::Sort,
};

/// The parsed argument.
#[derive(Default)]
struct FillOptions<'a> {
    partition: Option<Value<'a>>,
    fields: Option<Doc<'a>>,
    sort: Option<Doc<'a>>,
    output: Option<Doc<'a>>,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let options = read(argument)?;
    let (mut windows, mut values) = (Writer::new(), Writer::new());
    let (mut has_windows, mut has_values) = (false, false);
    for element in options.output.into_iter().flat_map(Doc::elements) {
        let name = element.display_name();
        let refused =
            |code, message: &str| Err(Error::new(Code(code), format!("the field '{name}' {message}")).at(&*name));
        let path = format!("${name}");
        field_path::parse(&name).map_err(|error| error.at(&*name))?;
        let parts = element.value.as_document().into_iter().flat_map(Doc::elements);
        if let Some(other) = parts.clone().find(|part| !matches!(part.name, b"method" | b"value")) {
            let message = format!("BSON field '$fill.output.{name}.{}' is an unknown field.", other.display_name());
            return Err(Error::new(Code(40_415), message).at(name));
        }
        let mut parts = parts.filter(|part| part.name == b"value" || !part.value.is_nullish());
        match (parts.next(), parts.next()) {
            (Some(value), None) if value.name == b"value" => {
                has_values = true;
                values.open_document(element.name);
                values.open_array(b"$ifNull");
                values.append_string(b"0", path.as_bytes());
                values.append(b"1", value.value);
                values.close();
                values.close();
            }
            (Some(method), None) if method.name == b"method" => {
                has_windows = true;
                let operator: &[u8] = match method.value.as_str() {
                    Some("locf") => b"$locf",
                    Some("linear") => b"$linearFill",
                    _ => return refused(6_050_202, "has an unknown method: it is either 'locf' or 'linear'"),
                };
                windows.open_document(element.name);
                windows.append_string(operator, path.as_bytes());
                windows.close();
            }
            _ => return refused(6_050_200, "must have either 'value' or 'method'"),
        }
    }
    let (windows, values) = (windows.finish(), values.finish());
    let mut stages = Vec::new();
    if has_windows {
        let spec = window_spec(&options, Doc::new(&windows));
        stages.extend(window::parse(Value::new(Kind::Document, &spec), bindings)?);
    } else if let Some(sort) = options.sort {
        stages.push(Stage::Sort(Sort::parse(sort)?.with_collation(bindings.collation().cloned())));
    }
    if has_values {
        stages.push(add_fields::parse(Value::new(Kind::Document, &values), bindings)?);
    }
    Ok(stages)
}

fn read(argument: Value<'_>) -> Result<FillOptions<'_>> {
    let Some(spec) = argument.as_document() else {
        return Err(Error::new(Code::FAILED_TO_PARSE, "the $fill stage specification must be an object"));
    };
    let mut options = FillOptions::default();
    for element in spec.elements() {
        let (name, value) = (element.display_name(), element.value);
        let mistyped = |kind: &str| {
            let found = value.kind().alias();
            Error::new(Code::TYPE_MISMATCH, format!("'{name}' of $fill must be {kind}, not {found}")).at(&*name)
        };
        match &*name {
            "partitionBy" | "partitionByFields" | "sortBy" | "output" if value.is_nullish() => {}
            "partitionBy" if value.as_str().is_none() && value.as_document().is_none() => {
                return Err(mistyped("an object or a string"));
            }
            "partitionBy" => options.partition = Some(value),
            "partitionByFields" => {
                let fields = value.as_array().ok_or_else(|| mistyped("an array"))?;
                if fields.values().any(|field| field.as_str().is_none()) {
                    return Err(mistyped("an array of strings"));
                }
                options.fields = Some(fields);
            }
            "sortBy" => options.sort = Some(value.as_document().ok_or_else(|| mistyped("an object"))?),
            "output" => options.output = Some(value.as_document().ok_or_else(|| mistyped("an object"))?),
            _ => {
                let message = format!("BSON field '$fill.{name}' is an unknown field.");
                return Err(Error::new(Code(40_415), message).at(name));
            }
        }
    }
    match options.output {
        None => return Err(Error::new(Code(40_414), "BSON field '$fill.output' is missing but a required field")),
        Some(output) if output.is_empty() => {
            return Err(Error::new(Code(6_050_203), "'output' of $fill must have at least one field"));
        }
        Some(_) => {}
    }
    if options.partition.is_some() && options.fields.is_some() {
        return Err(Error::new(Code(6_050_204), "$fill takes at most one of 'partitionBy' and 'partitionByFields'"));
    }
    for field in options.fields.into_iter().flat_map(Doc::values) {
        field_path::parse(field.as_str().unwrap_or_default())?;
    }
    Ok(options)
}

/// Returns the argument of the `$setWindowFields`.
fn window_spec(options: &FillOptions<'_>, output: Doc<'_>) -> Vec<u8> {
    let mut spec = Writer::new();
    if let Some(partition) = options.partition {
        spec.append(b"partitionBy", partition);
    }
    if let Some(fields) = options.fields.filter(|fields| !fields.is_empty()) {
        spec.open_document(b"partitionBy");
        for (place, field) in fields.values().enumerate() {
            let path = format!("${}", field.as_str().unwrap_or_default());
            spec.append_string(place.to_string().as_bytes(), path.as_bytes());
        }
        spec.close();
    }
    if let Some(sort) = options.sort {
        spec.append(b"sortBy", Value::new(Kind::Document, sort.bytes()));
    }
    spec.append(b"output", Value::new(Kind::Document, output.bytes()));
    spec.finish()
}
