//! `$group`: one document for each value of an expression, with values accumulated over the documents that have it.

use std::fmt;

use crate::{
    Code, Error, Result,
    expression::{
        Env, Expression,
        accumulator::{AccumulatorSpec, Gathered},
    },
    key,
    path::Path,
    pattern::Direction,
    pipeline::{Bindings, Needs, Stage},
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

/// Groups, and what their accumulators have gathered, by number.
#[derive(Debug, Default)]
pub struct GroupStates {
    ids: Vec<OwnedValue>,
    /// As many for each group as the stage has accumulators.
    gathered: Vec<Gathered>,
}

/// A document of a group.
#[derive(Debug)]
pub struct Member<'v> {
    id: Value<'v>,
    key: &'v [u8],
    env: &'v Env<'v>,
}

impl<'v> Member<'v> {
    /// The value that the document is grouped by; null for a missing one.
    pub(super) fn id(&self) -> Value<'v> {
        self.id
    }

    /// Bytes that are equal for the documents of one group.
    pub fn key(&self) -> &[u8] {
        self.key
    }
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let Some(spec) = argument.as_document() else {
        return Err(Error::new(Code(15_947), "a group's fields must be specified in an object"));
    };
    Ok(vec![Stage::Group(parse_group(spec, bindings)?)])
}

/// Parses the argument of a `$group`.
pub(super) fn parse_group(spec: Doc<'_>, bindings: &Bindings) -> Result<Group> {
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
    let argument = Value::new(Kind::Document, spec.bytes()).to_owned();
    Ok(Group { id, fields, bindings: bindings.clone(), argument })
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
    /// Calls `visit` with a document and its group. `key` is a buffer for the group's key.
    ///
    /// # Errors
    /// Those of the expression, and of `visit`.
    pub fn visit<R, E: From<Error>>(
        &self,
        document: Doc<'_>,
        key: &mut Vec<u8>,
        visit: impl FnOnce(&Member<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.bindings.within(document, |env| {
            self.id.visit(env, |id| {
                let id = id.unwrap_or(Value::NULL);
                key.clear();
                match self.bindings.collation() {
                    None => key::encode(id, key),
                    Some(collation) => key::encode(collation.apply(id).as_value(), key),
                }
                visit(&Member { id, key, env })
            })?
        })
    }

    /// The field that documents are grouped by, if the groups are the values of one top-level field.
    pub fn key_field(&self) -> Option<Path> {
        // A collation orders and joins groups in another way than an index.
        if self.bindings.collation().is_some() {
            return None;
        }
        Path::parse(self.id.as_field()?.as_str()).ok()
    }

    /// The field and the direction of its values, if the only result is the first value in that order that is not null: the
    /// least or greatest value of a field over all documents.
    pub fn end(&self) -> Option<(Path, Direction)> {
        let [(_, only)] = &*self.fields else { return None };
        self.id.as_constant()?;
        let (field, direction) = only.end()?;
        Some((Path::parse(field.as_str()).ok()?, direction))
    }

    /// Whether the only group has the value of [`end`](Self::end).
    pub fn has_end(&self, states: &mut GroupStates) -> bool {
        self.gathered(states, 0).iter().any(Gathered::has_value)
    }

    /// The fields that the stage reads.
    pub(in crate::pipeline) fn needs(&self) -> Needs {
        let mut needs = Needs::NOTHING;
        self.id.visit_fields(&mut |field| needs.add(field));
        self.fields.iter().for_each(|(_, spec)| spec.visit_fields(&mut |field| needs.add(field)));
        needs
    }

    /// Starts the group of a document, without the document. Returns its number.
    pub fn start(&self, states: &mut GroupStates, member: &Member<'_>) -> usize {
        states.ids.push(member.id.to_owned());
        states.gathered.extend(self.fields.iter().map(|_| Gathered::default()));
        states.ids.len() - 1
    }

    /// Adds a document to its group, as often as `times`. Returns the memory that the group uses, in bytes.
    ///
    /// # Errors
    /// Those of the expressions and accumulators.
    pub fn add(&self, states: &mut GroupStates, group: usize, member: &Member<'_>, times: u64) -> Result<usize> {
        let id = states.ids.get(group).map_or(0, |id| id.as_value().bytes().len());
        let mut bytes = size_of::<OwnedValue>() + id;
        for ((_, spec), gathered) in self.fields.iter().zip(self.gathered(states, group)) {
            spec.add(gathered, member.env, times)?;
            bytes += size_of::<Gathered>() + gathered.bytes();
        }
        Ok(bytes)
    }

    /// Replaces the content of `out` by the group's document, and releases what the group has gathered.
    pub fn finish(&self, states: &mut GroupStates, group: usize, out: &mut Vec<u8>) {
        let id = states.ids.get_mut(group).map(|id| std::mem::replace(id, Value::NULL.to_owned()));
        self.finish_as(states, group, id.as_ref().map_or(Value::NULL, OwnedValue::as_value), out);
    }

    /// As [`finish`](Self::finish), with another `_id`.
    pub(super) fn finish_as(&self, states: &mut GroupStates, group: usize, id: Value<'_>, out: &mut Vec<u8>) {
        out.clear();
        let mut writer = Writer::into_buffer(std::mem::take(out));
        writer.append(b"_id", id);
        for ((name, spec), gathered) in self.fields.iter().zip(self.gathered(states, group)) {
            if let Some(value) = spec.finish(&mut std::mem::take(gathered)).as_value() {
                writer.append(name.as_bytes(), value);
            }
        }
        *out = writer.finish();
    }

    fn gathered<'s>(&self, states: &'s mut GroupStates, group: usize) -> &'s mut [Gathered] {
        let width = self.fields.len();
        states.gathered.get_mut(group * width..(group + 1) * width).unwrap_or_default()
    }
}

impl GroupStates {
    /// Removes all groups.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.gathered.clear();
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
