//! `$unset`: a `$project` that excludes fields.

use super::project;
use crate::{
    Code, Error, Result,
    expression::Bindings,
    pipeline::Stage,
    raw::{Doc, Kind, Value, Writer},
};

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let paths = match (argument.as_str(), argument.as_array()) {
        (Some(path), _) => vec![path],
        (None, Some(paths)) => {
            let strings = paths.values().map(Value::as_str).collect::<Option<Vec<_>>>();
            strings.ok_or_else(|| Error::new(Code(31_120), "$unset specification must contain only strings"))?
        }
        (None, None) => return Err(Error::new(Code(31_002), "$unset specification must be a string or an array")),
    };
    if paths.is_empty() {
        let message = "$unset specification must be a string or an array with at least one field";
        return Err(Error::new(Code(31_119), message));
    }
    let mut excluded = Writer::new();
    for path in paths {
        if path.contains('\0') {
            return Err(Error::new(Code(9_527_900), "a field path must not contain a NUL byte"));
        }
        excluded.append(path.as_bytes(), Value::new(Kind::Int32, &0_i32.to_le_bytes()));
    }
    project::of(Doc::new(&excluded.finish()), &Bindings::default())
}
