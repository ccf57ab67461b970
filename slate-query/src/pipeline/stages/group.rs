//! `$group`: one document for each value of an expression, with values accumulated over the documents that have it.

use std::collections::HashSet;

use crate::{
    Code, Error, Result,
    expression::{
        Bindings, DIVISION_BY_ZERO, Env, Expression, Needs,
        accumulator::{AccumulatorSpec, Gathered},
    },
    held, key,
    key::Direction,
    number::Number,
    path::Path,
    pipeline::{Kept, Stage, group_index::GroupIndex},
    raw::{Doc, FieldName, Kind, OwnedValue, Value, Writer},
    work,
};

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub struct Group {
    id: Expression,
    fields: Vec<(Box<str>, AccumulatorSpec)>,
    bindings: Bindings,
    argument: OwnedValue,
}

/// Groups and the states of their accumulators, by number.
#[derive(Debug, Default)]
pub struct GroupStates {
    index: GroupIndex,
    /// The states of all groups, one after the other. Each group has one per accumulator of the stage.
    gathered: Vec<Gathered>,
    /// The bytes that the states hold on the heap.
    heap: usize,
}

/// A document of a group.
#[derive(Debug)]
pub struct Member<'v> {
    id: Value<'v>,
    /// The value that is compared: `id`, with its strings replaced if there is a collation.
    compared: Value<'v>,
    env: &'v Env<'v>,
}

impl<'v> Member<'v> {
    /// Returns the value that the document is grouped by; null for a missing one.
    pub(super) fn id(&self) -> Value<'v> {
        self.id
    }

    /// Writes into `out` (cleared first) the encoded key of the group: equal for the documents of one group, and in the
    /// order in which groups are returned.
    pub fn key(&self, out: &mut Vec<u8>) {
        out.clear();
        key::encode(self.compared, out);
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
    group_by(None, spec, bindings)
}

/// Parses the argument of a `$group`. If `id` is given, documents are grouped by it, and explain shows the argument's `_id`.
pub(super) fn group_by(mut id: Option<Expression>, spec: Doc<'_>, bindings: &Bindings) -> Result<Group> {
    let (mut has_id, mut fields) = (false, Vec::new());
    for element in spec.elements() {
        let name = element.display_name();
        if name == "_id" {
            if std::mem::replace(&mut has_id, true) {
                return Err(Error::new(Code(15_948), "a group's _id may only be specified once"));
            }
            if id.is_some() {
                continue;
            }
            refuse_inclusion(element.value).map_err(|error| error.at("_id"))?;
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

/// Refuses an `_id` such as `{a: 1}`, which looks like a projection.
fn refuse_inclusion(id: Value<'_>) -> Result<()> {
    let Some(id) = id.as_document() else { return Ok(()) };
    let is_expression = id.elements().next().is_some_and(|first| first.name.starts_with(b"$"));
    let is_inclusion = |value: Value<'_>| Number::of(value).is_some() || value.kind() == Kind::Boolean;
    if !is_expression && id.elements().any(|field| is_inclusion(field.value)) {
        return Err(Error::new(Code(17390), "$group does not support inclusion-style expressions"));
    }
    Ok(())
}

/// Returns the error of an expression with the code that it has in a compiled `$group` of MongoDB.
fn compiled(error: Error) -> Error {
    let code = match error.code() {
        Code::BAD_VALUE if error.message() == DIVISION_BY_ZERO => Code(4_848_401),
        Code(16_610 | 5_733_415) => Code(4_848_403),
        _ => return error,
    };
    Error::new(code, error.message())
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
    /// Calls `visit` with a document and its group.
    ///
    /// # Errors
    /// The errors of the expression, and of `visit`.
    #[inline]
    pub fn visit<R, E: From<Error>>(
        &self,
        document: Doc<'_>,
        visit: impl FnOnce(&Member<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.bindings.within(document, |env| self.visit_in(env, visit))
    }

    #[inline]
    fn visit_in<R, E: From<Error>>(
        &self,
        env: &Env<'_>,
        visit: impl FnOnce(&Member<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.id
            .visit(env, |id| {
                let id = id.unwrap_or(Value::NULL);
                match self.bindings.collation() {
                    None => visit(&Member { id, compared: id, env }),
                    Some(collation) => visit(&Member { id, compared: collation.apply(id).as_value(), env }),
                }
            })
            .map_err(compiled)?
    }

    /// Returns whether no accumulator computes its parameter `n` for each group.
    pub(super) fn has_constant_numbers(&self) -> bool {
        self.fields.iter().all(|(_, spec)| spec.has_constant_number())
    }

    /// Returns the field that documents are grouped by, if the groups are the values of one top-level field.
    pub fn key_field(&self) -> Option<Path> {
        // With a collation, groups have another order and equality than the entries of an index.
        if self.bindings.collation().is_some() {
            return None;
        }
        Path::parse(self.id.as_field()?.as_str()).ok()
    }

    /// Returns pairs of paths that have the same value: the first is `_id` or a field of `_id` in the document of a
    /// group, the second is a field of the documents that are grouped.
    pub fn key_fields(&self) -> Vec<(Path, Path)> {
        if self.bindings.collation().is_some() {
            return Vec::new();
        }
        let pair =
            |id: &str, value: &Expression| Some((Path::parse(id).ok()?, Path::parse(value.as_field()?.as_str()).ok()?));
        match self.id.as_fields() {
            None => pair("_id", &self.id).into_iter().collect(),
            Some(fields) => {
                let within = |(name, value): (&[u8], &Expression)| {
                    pair(&format!("_id.{}", std::str::from_utf8(name).ok()?), value)
                };
                fields.filter_map(within).filter(|(id, _)| !id.has_position()).collect()
            }
        }
    }

    /// Drops the accumulators whose fields later stages do not need, unless they can fail. Returns whether it dropped
    /// any.
    pub fn keep(&mut self, needs: &Needs) -> bool {
        let Some(needed) = needs.fields() else { return false };
        let before = self.fields.len();
        self.fields.retain(|(name, spec)| needed.contains(name) || !spec.is_infallible());
        if self.fields.len() == before {
            return false;
        }
        let mut argument = Writer::new();
        let kept: HashSet<&[u8]> = self.fields.iter().map(|(name, _)| name.as_bytes()).collect();
        for element in self.argument.as_value().as_document().into_iter().flat_map(Doc::elements) {
            if element.name == b"_id" || kept.contains(element.name) {
                argument.append(element.name, element.value);
            }
        }
        self.argument = Value::new(Kind::Document, &argument.finish()).to_owned();
        true
    }

    /// Returns `true` only if the groups of the stage `before` may arrive in any order: this stage reads only fields in
    /// which `before` has counted documents, which are whole numbers.
    pub fn ignores_order_of(&self, before: &Self) -> bool {
        /// Maximum number of fields in `before`, because each field is compared with all of them.
        const MOST_FIELDS: usize = 64;
        if before.fields.len() > MOST_FIELDS {
            return false;
        }
        let is_count = |field: &FieldName| {
            let mut named = before.fields.iter().filter(|(name, _)| **name == *field.as_str());
            named.next().is_some_and(|(_, spec)| spec.is_count()) && named.next().is_none()
        };
        (self.id.as_constant().is_some() || self.id.as_field().is_some_and(is_count))
            && self.fields.iter().all(|(_, spec)| spec.ignores_order(is_count))
    }

    /// Returns `true` only if a group's document depends on its first document only, and no other document can make the
    /// group fail.
    pub fn needs_first_only(&self) -> bool {
        self.fields.iter().all(|(_, spec)| spec.needs_first_only())
    }

    /// Returns the field and the direction, if the only result is the least or greatest value of a field over all documents:
    /// the first value in that direction that is not null. `None` with a collation.
    pub fn end(&self) -> Option<(Path, Direction)> {
        let [(_, only)] = &*self.fields else { return None };
        // With a collation, strings have another order than the entries of an index.
        if self.bindings.collation().is_some() {
            return None;
        }
        self.id.as_constant()?;
        let (field, direction) = only.end()?;
        Some((Path::parse(field.as_str()).ok()?, direction))
    }

    /// Returns whether a document had a value in the field of [`end`](Self::end): further documents cannot change the result.
    pub fn has_end(&self, states: &mut GroupStates) -> bool {
        self.gathered(states, 0).iter().any(Gathered::has_value)
    }

    /// Returns the fields that the stage reads, for copies of documents.
    pub fn kept(&self) -> Kept {
        Kept::of(&self.needs())
    }

    /// Returns the fields that the stage reads.
    pub(in crate::pipeline) fn needs(&self) -> Needs {
        let mut needs = Needs::NOTHING;
        self.id.visit_fields(&mut |field| needs.add(field));
        self.fields.iter().for_each(|(_, spec)| spec.visit_fields(&mut |field| needs.add(field)));
        needs
    }

    /// Returns the number of a document's group. If there is no such group, starts one without adding the document.
    #[inline]
    pub fn enter(&self, states: &mut GroupStates, member: &Member<'_>) -> usize {
        let number = states.index.enter(member.compared, member.id);
        let width = self.fields.len();
        if states.gathered.len() <= number * width {
            states.gathered.resize_with((number + 1) * width, Gathered::default);
        }
        number
    }

    /// Adds a document to its group `times` times.
    ///
    /// # Errors
    /// The errors of the expressions and accumulators.
    #[inline]
    pub fn add(&self, states: &mut GroupStates, group: usize, member: &Member<'_>, times: u64) -> Result<()> {
        let before = states.heap;
        let mut heap = before;
        for ((name, spec), gathered) in self.fields.iter().zip(self.gathered(states, group)) {
            let added = spec.add_and_measure(gathered, member.id, member.env, times, &mut heap).map_err(compiled);
            // A document can make many lists grow.
            let checked = added.and_then(|()| held::check_group(heap.saturating_sub(before)));
            checked.map_err(|error| held::located(error, name.as_bytes()))?;
        }
        states.heap = heap;
        Ok(())
    }

    /// Writes into `out` (cleared first) the key of a group, as [`Member::key`] does for a document of it.
    pub fn key(&self, states: &GroupStates, group: usize, out: &mut Vec<u8>) {
        out.clear();
        let id = states.index.value(group);
        match self.bindings.collation() {
            None => key::encode(id, out),
            Some(collation) => key::encode(collation.apply(id).as_value(), out),
        }
    }

    /// Writes into `out` (cleared first) the group's document, and releases the states of its accumulators.
    pub fn finish(&self, states: &mut GroupStates, group: usize, out: &mut Vec<u8>) {
        let GroupStates { index, gathered, .. } = states;
        self.finish_as(self.of_group(gathered, group), index.value(group), out);
    }

    /// Like [`finish`](Self::finish), but for the first group, with another `_id`.
    pub(super) fn finish_first_as(&self, states: &mut GroupStates, id: Value<'_>, out: &mut Vec<u8>) {
        self.finish_as(self.of_group(&mut states.gathered, 0), id, out);
    }

    fn finish_as(&self, gathered: &mut [Gathered], id: Value<'_>, out: &mut Vec<u8>) {
        out.clear();
        let mut writer = Writer::into_buffer(std::mem::take(out));
        writer.append(b"_id", id);
        for ((name, spec), gathered) in self.fields.iter().zip(gathered) {
            if let Some(value) = spec.finish(&mut std::mem::take(gathered)).as_value()
                && work::spend_copied(value.bytes().len())
            {
                writer.append(name.as_bytes(), value);
            }
        }
        *out = writer.finish();
    }

    #[inline]
    fn gathered<'s>(&self, states: &'s mut GroupStates, group: usize) -> &'s mut [Gathered] {
        self.of_group(&mut states.gathered, group)
    }

    #[inline]
    fn of_group<'s>(&self, gathered: &'s mut [Gathered], group: usize) -> &'s mut [Gathered] {
        let width = self.fields.len();
        gathered.get_mut(group * width..(group + 1) * width).unwrap_or_default()
    }
}

impl GroupStates {
    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a document belongs to the group.
    pub fn has(&mut self, group: usize, member: &Member<'_>) -> bool {
        self.index.is(group, member.compared)
    }

    /// Returns the memory that the groups use, in bytes.
    #[inline]
    pub fn memory(&self) -> usize {
        self.index.memory() + self.gathered.len() * size_of::<Gathered>() + self.heap
    }

    /// Returns the memory that is allocated for groups, in bytes.
    pub fn capacity(&self) -> usize {
        self.index.capacity() + self.gathered.capacity() * size_of::<Gathered>()
    }

    /// Removes all groups.
    pub fn clear(&mut self) {
        self.index.clear();
        self.gathered.clear();
        self.heap = 0;
    }
}

crate::pipeline::shown_argument!(Group);

/// Returns a document of one field.
pub(super) fn single(name: &str, value: Value<'_>) -> OwnedValue {
    let mut writer = Writer::new();
    writer.append(name.as_bytes(), value);
    Value::new(Kind::Document, &writer.finish()).to_owned()
}
