//! `$group`: one document for each value of an expression, with values accumulated over the documents that have it.

use std::fmt;

use crate::{
    Code, Error, Result,
    expression::{
        Expression,
        accumulator::{Accumulator, AccumulatorSpec},
    },
    key,
    pipeline::{Bindings, Stage},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub struct Group {
    id: Expression,
    fields: Vec<(Box<str>, AccumulatorSpec)>,
    bindings: Bindings,
    argument: OwnedValue,
}

/// A group, and what its accumulators have gathered so far.
#[derive(Debug)]
pub struct GroupState {
    id: OwnedValue,
    accumulators: Vec<Box<dyn Accumulator>>,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let Some(spec) = argument.as_document() else {
        return Err(Error::new(Code(15_947), "a group's fields must be specified in an object"));
    };
    let (mut id, mut fields) = (None, Vec::new());
    for element in spec.elements() {
        let name = element.display_name();
        if name == "_id" {
            if id.is_some() {
                return Err(Error::new(Code(15_948), "a group's _id may only be specified once"));
            }
            id = Some(Expression::parse(element.value, bindings.names()).map_err(|error| error.at("_id"))?);
            continue;
        }
        let accumulator = accumulator(&name, element.value, bindings).map_err(|error| error.at(&*name))?;
        fields.push((Box::from(&*name), accumulator));
    }
    let id = id.ok_or_else(|| Error::new(Code(15_955), "a group specification must include an _id"))?;
    let group = Group { id, fields, bindings: bindings.clone(), argument: argument.to_owned() };
    Ok(vec![Stage::Group(group)])
}

/// Parses `{name: {$operator: operand}}`.
pub(super) fn accumulator(name: &str, value: Value<'_>, bindings: &Bindings) -> Result<AccumulatorSpec> {
    let refused = |code, message: &str| Err(Error::new(Code(code), format!("the field '{name}' {message}")));
    let Some(spec) = value.as_document() else { return refused(40_234, "must be an accumulator object") };
    let mut elements = spec.elements();
    let Some(operator) = elements.next() else { return refused(40_234, "must be an accumulator object") };
    if name.contains('.') {
        return refused(40_235, "cannot contain '.'");
    }
    if name.starts_with('$') {
        return refused(40_236, "cannot be an operator name");
    }
    if elements.next().is_some() {
        return refused(40_238, "must specify one accumulator");
    }
    AccumulatorSpec::parse(&operator.display_name(), operator.value, bindings.names())
}

impl Group {
    /// Returns the group of a document, and replaces the content of `key` by bytes that are equal for the documents of one
    /// group. A missing value groups as null.
    ///
    /// # Errors
    /// Those of the expression.
    pub fn id(&self, document: Doc<'_>, key: &mut Vec<u8>) -> Result<OwnedValue> {
        self.bindings.within(document, |env| {
            let id = self.id.evaluate(env)?;
            let id = id.as_value().unwrap_or(Value::NULL);
            key.clear();
            key::encode(id, key);
            Ok(id.to_owned())
        })
    }

    /// A group without documents.
    pub fn start(&self, id: OwnedValue) -> GroupState {
        GroupState { id, accumulators: self.fields.iter().map(|(_, spec)| spec.start()).collect() }
    }

    /// Adds a document to its group.
    ///
    /// # Errors
    /// Those of the expressions and accumulators.
    pub fn add(&self, state: &mut GroupState, document: Doc<'_>) -> Result<()> {
        self.bindings
            .within(document, |env| state.accumulators.iter_mut().try_for_each(|accumulator| accumulator.add(env)))
    }

    /// Replaces the content of `out` by the group's document.
    pub fn finish(&self, state: &mut GroupState, out: &mut Vec<u8>) {
        out.clear();
        let mut writer = Writer::into_buffer(std::mem::take(out));
        writer.append(b"_id", state.id.as_value());
        for ((name, _), accumulator) in self.fields.iter().zip(&mut state.accumulators) {
            if let Some(value) = accumulator.finish().as_value() {
                writer.append(name.as_bytes(), value);
            }
        }
        *out = writer.finish();
    }
}

impl GroupState {
    /// The memory that the group uses, in bytes.
    pub fn bytes(&self) -> usize {
        let accumulators = self.accumulators.iter().map(|accumulator| accumulator.bytes()).sum::<usize>();
        size_of::<Self>() + self.id.as_value().bytes().len() + accumulators
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.argument)
    }
}

/// A document of one field.
pub(super) fn single(name: &str, value: Value<'_>) -> OwnedValue {
    let mut writer = Writer::new();
    writer.append(name.as_bytes(), value);
    Value::new(Kind::Document, &writer.finish()).to_owned()
}
