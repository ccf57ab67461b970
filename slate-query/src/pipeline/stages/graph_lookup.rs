//! `$graphLookup`: adds the documents of a collection that are reached by following values from one to the next.

use std::ops::ControlFlow;

use super::lookup::Join;
use crate::{
    Code, Error, Result,
    expression::{Bindings, Expression, Needs},
    filter::Filter,
    number::Number,
    path::{Found, Path, field_path},
    pipeline::{
        Stage, check_collection,
        nested::{set, with_int64},
    },
    raw::{Doc, Kind, OwnedValue, Value},
};

/// A parsed `$graphLookup`.
#[derive(Clone, Debug)]
pub struct GraphLookup {
    from: Box<str>,
    start: Expression,
    /// `connectFromField` and `connectToField`: the values of the first are searched for in the second.
    connection: Join,
    restriction: Option<Filter>,
    target: Path,
    depth: Option<Path>,
    max_depth: Option<u64>,
    bindings: Bindings,
    argument: OwnedValue,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let options = argument.as_document();
    let options = options
        .ok_or_else(|| Error::new(Code::FAILED_TO_PARSE, "the $graphLookup stage specification must be an object"))?;
    // MongoDB reads the name of the collection before all other fields.
    let from = match options.get("from").map(Value::as_str) {
        Some(Some(from)) => check_collection(from).map(|()| from).map_err(|error| error.at("from"))?,
        Some(None) => {
            return Err(Error::new(Code::FAILED_TO_PARSE, "'from' of $graphLookup must be a string").at("from"));
        }
        None => return Err(Error::new(Code::FAILED_TO_PARSE, "$graphLookup requires 'from'")),
    };
    let [mut target, mut connect_from, mut connect_to, mut depth] = [const { None }; 4];
    let (mut start, mut max_depth, mut restriction) = (None, None, None);
    let inner = bindings.below()?;
    for element in options.elements() {
        let (name, value) = (element.display_name(), element.value);
        let slot = match &*name {
            "startWith" => {
                start = Some(Expression::parse(value, bindings.names()).map_err(|error| error.at("startWith"))?);
                continue;
            }
            "maxDepth" => {
                max_depth = Some(parse_depth(value).map_err(|error| error.at("maxDepth"))?);
                continue;
            }
            "restrictSearchWithMatch" => {
                let filter = value.as_document().ok_or_else(|| {
                    Error::new(Code(40_185), "restrictSearchWithMatch must be an object").at("restrictSearchWithMatch")
                })?;
                restriction = Some(Filter::parse_with(filter, &inner)?);
                continue;
            }
            "from" => continue,
            "as" => &mut target,
            "connectFromField" => &mut connect_from,
            "connectToField" => &mut connect_to,
            "depthField" => &mut depth,
            _ => {
                let message = format!("Unknown argument to $graphLookup: {name}");
                return Err(Error::new(Code(40_104), message).at(&*name));
            }
        };
        let text = value.as_str().ok_or_else(|| {
            let message = format!("expected string as argument for {name}, found: {value:?}");
            Error::new(Code(40_103), message).at(&*name)
        })?;
        *slot = Some(text);
    }
    let path = |name: &str, text: &str| field_path::parse(text).map_err(|error| error.at(name));
    let (Some(target), Some(connect_from), Some(connect_to), Some(start)) = (target, connect_from, connect_to, start)
    else {
        let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.";
        return Err(Error::new(Code(40_105), message));
    };
    Ok(Stage::GraphLookup(Box::new(GraphLookup {
        from: from.into(),
        start,
        connection: Join::new(path("connectFromField", connect_from)?, path("connectToField", connect_to)?),
        restriction,
        target: path("as", target)?,
        depth: depth.map(|depth| path("depthField", depth)).transpose()?,
        max_depth,
        bindings: inner,
        argument: argument.to_owned(),
    })))
}

fn parse_depth(value: Value<'_>) -> Result<u64> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let number = Number::of(value).ok_or_else(|| refused(40_100, "maxDepth requires numeric argument"))?;
    if number < Number::Int32(0) {
        return Err(refused(40_101, "maxDepth requires a nonnegative argument"));
    }
    let depth = number.to_i64().and_then(|depth| u64::try_from(depth).ok());
    depth.ok_or_else(|| refused(40_102, "maxDepth could not be represented as a long long"))
}

impl GraphLookup {
    /// Returns the name of the other collection.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Returns the maximum number of steps after the first: `maxDepth`, or `u64::MAX`.
    pub fn max_depth(&self) -> u64 {
        self.max_depth.unwrap_or(u64::MAX)
    }

    /// Calls `visit` with each value at which the search begins for a document.
    ///
    /// # Errors
    /// The errors of the expression.
    pub fn visit_start(&self, document: Doc<'_>, visit: &mut dyn FnMut(Value<'_>)) -> Result<()> {
        self.bindings.within(document, |env| {
            self.start.visit(env, |value| match value.map(|value| (value, value.as_array())) {
                Some((_, Some(array))) => array.values().for_each(visit),
                Some((value, None)) => visit(value),
                None => {}
            })
        })
    }

    /// Calls `visit` with each value of `connectFromField` in a found document. The next step searches for them.
    pub fn visit_next(&self, document: Doc<'_>, visit: &mut dyn FnMut(Value<'_>)) {
        let _ = self.connection.local().walk(document, &mut |end| {
            if let Found::Value(value) = end.found {
                match value.as_array() {
                    Some(array) => array.values().for_each(&mut *visit),
                    None => visit(value),
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// Returns the stages that find the documents with one of the values.
    ///
    /// # Errors
    /// The errors of filters.
    pub fn stages<'a>(&self, values: impl Iterator<Item = Value<'a>> + Clone) -> Result<Vec<Stage>> {
        let has_null = values.clone().any(|value| value.kind() == Kind::Null);
        let filter = self.connection.filter(values);
        let mut filter = Filter::parse_with(Doc::new(filter.as_value().bytes()), &self.bindings)?;
        if has_null {
            // Unlike in a filter, null is not equal to a missing field.
            filter = filter.and(&self.connection.exists(&self.bindings)?);
        }
        let filter = self.restriction.as_ref().map_or_else(|| filter.clone(), |restriction| filter.and(restriction));
        Ok(vec![Stage::Match(filter)])
    }

    /// Writes into `out` (cleared first) a found document with its depth.
    pub fn write_found(&self, document: Doc<'_>, depth: u64, out: &mut Vec<u8>) {
        match &self.depth {
            Some(path) => with_int64(i64::try_from(depth).unwrap_or(i64::MAX), |depth| {
                set(document, path.parts(), Some(depth), out);
            }),
            None => {
                out.clear();
                out.extend_from_slice(document.bytes());
            }
        }
    }

    /// Writes into `out` (cleared first) a document with the array of documents found for it.
    pub fn write(&self, document: Doc<'_>, found: Value<'_>, out: &mut Vec<u8>) {
        set(document, self.target.parts(), Some(found), out);
    }

    /// Returns whether the stage changes nothing at `path`.
    pub(in crate::pipeline) fn preserves(&self, path: &Path) -> bool {
        path.parts().first() != self.target.parts().first()
    }

    /// Returns the fields that the stage and the stages after it read.
    pub(in crate::pipeline) fn needs(&self, mut after: Needs) -> Needs {
        if let [only] = self.target.parts() {
            after.remove(only.name());
        }
        self.start.visit_fields(&mut |field| after.add(field));
        after
    }
}

crate::pipeline::shown_argument!(GraphLookup);
