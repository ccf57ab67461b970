//! The combinations of values that a document has at several paths: the keys of a compound index.
//!
//! All paths are followed to their first array, which must be the same for all of them. Then the paths that lead
//! through it continue together into each of its elements: elements are paired, not multiplied. Except for
//! [`Positions::AndFields`] this is what MongoDB's key generator does.

use super::Direction;
use crate::{
    Code, Error, Result,
    path::{Part, Path},
    raw::{Doc, Kind, Value},
};

/// The most fields that an index or a sort may have.
pub(crate) const MAX_FIELDS: usize = 32;

/// The values that a name such as `0` selects where the path has led to an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// The element at that position. Used by sorts.
    Alone,
    /// The element at that position, and also the field of that name in each document of the array. Filters see both,
    /// so an index without one of them would lose rows.
    AndFields,
}

/// How far one path was followed.
#[derive(Clone, Copy)]
pub(crate) enum Slot<'a> {
    /// The path has ended at this value.
    Value(Value<'a>),
    /// The path has ended at a missing field.
    Missing,
    /// The path continues in the current document with the name at this position of the path.
    Open(usize),
    /// This many names of the path lead to this array.
    Array(Value<'a>, usize),
}

/// Receives the keys of a document.
pub(crate) trait Emit<'a> {
    /// Receives a key: a value for each field, `None` if it is missing.
    fn key(&mut self, values: &[Option<Value<'a>>]);
    /// Reports that the value at the first `names` names of a field's path is an array.
    fn array(&mut self, field: usize, names: usize);
}

/// Passes each key of `doc` to `emit`, with repetitions.
///
/// # Errors
/// `CannotIndexParallelArrays` (171) if two paths lead through different arrays; 16746 if a name is both a position of
/// an array and a field of a document in it.
#[inline]
pub(crate) fn expand<'a>(
    fields: &[(Path, Direction)],
    doc: Doc<'a>,
    positions: Positions,
    emit: &mut impl Emit<'a>,
) -> Result<()> {
    // The list of slots is copied for every element of an array, so it should be short: most indexes have one field.
    match fields.len() {
        1 => Expansion { fields, positions, emit }.go::<1>(doc, [Slot::Open(0); 1]),
        2..=4 => Expansion { fields, positions, emit }.go::<4>(doc, [Slot::Open(0); 4]),
        _ => Expansion { fields, positions, emit }.go::<MAX_FIELDS>(doc, [Slot::Open(0); MAX_FIELDS]),
    }
}

struct Expansion<'p, 'e, E> {
    fields: &'p [(Path, Direction)],
    positions: Positions,
    emit: &'e mut E,
}

impl<'p, E> Expansion<'p, '_, E> {
    fn parts(&self, field: usize) -> &'p [Part] {
        self.fields.get(field).map_or(&[], |(path, _)| path.parts())
    }

    fn parallel(&self, a: usize, b: usize) -> Error {
        let name = |field: usize| self.fields.get(field).map_or("", |(path, _)| path.as_str());
        let message = format!("cannot index parallel arrays [{}] [{}]", name(a), name(b));
        Error::new(Code::CANNOT_INDEX_PARALLEL_ARRAYS, message).at(name(a))
    }

    fn go<'a, const N: usize>(&mut self, doc: Doc<'a>, mut slots: [Slot<'a>; N]) -> Result<()>
    where
        E: Emit<'a>,
    {
        let mut array: Option<(usize, Value<'a>)> = None;
        for (field, slot) in slots.iter_mut().enumerate().take(self.fields.len()) {
            if let Slot::Open(from) = *slot {
                *slot = follow(self.parts(field), from, doc);
            }
            if let Slot::Array(value, names) = *slot {
                self.emit.array(field, names);
                match array {
                    None => array = Some((field, value)),
                    Some((_, other)) if std::ptr::eq(other.bytes(), value.bytes()) => {}
                    Some((other, _)) => return Err(self.parallel(field, other)),
                }
            }
        }
        match array {
            None => {
                let values = slots.map(|slot| if let Slot::Value(value) = slot { Some(value) } else { None });
                self.emit.key(values.get(..self.fields.len()).unwrap_or(&values));
                Ok(())
            }
            Some((_, array)) => self.elements(array, slots),
        }
    }

    /// Continues into each element of `array`, which some of the slots have reached.
    fn elements<'a, const N: usize>(&mut self, array: Value<'a>, slots: [Slot<'a>; N]) -> Result<()>
    where
        E: Emit<'a>,
    {
        let elements = Doc::new(array.bytes());
        let (mut positional, mut through) = (false, false);
        // The slot to which the next name of each path leads as a position of this array; `Open` if it is not a
        // position.
        let chosen = std::array::from_fn::<_, N, _>(|field| match slots.get(field) {
            Some(Slot::Array(_, names)) => {
                let chosen = self.element_at(field, *names, elements);
                positional |= chosen.is_some();
                through |= chosen.is_none();
                chosen.unwrap_or(Slot::Open(*names))
            }
            Some(Slot::Value(_) | Slot::Missing | Slot::Open(_)) | None => Slot::Missing,
        });
        // If no path leads through the elements, all of them give the same keys.
        let (mut chosen_given, mut missing_given) = (false, self.positions == Positions::Alone || !positional);
        for element in elements.values() {
            let document = element.as_document();
            let mut next = slots;
            for ((field, slot), chosen) in next.iter_mut().enumerate().take(self.fields.len()).zip(chosen) {
                let Slot::Array(_, names) = *slot else { continue };
                let part = self.parts(field).get(names);
                *slot = match (part, chosen, document) {
                    (None, _, _) => Slot::Value(element),
                    (Some(_), Slot::Open(_), Some(_)) => Slot::Open(names),
                    (Some(_), Slot::Open(_), None) => Slot::Missing,
                    (Some(part), _, Some(document)) if document.get(part.name()).is_some() => {
                        return Err(ambiguous(part, self.fields.get(field)));
                    }
                    (Some(_), chosen, _) => chosen,
                };
            }
            let inner = document.unwrap_or(Doc::new(&[]));
            if through || !chosen_given {
                self.go(inner, next)?;
            }
            chosen_given = true;
            if document.is_some() && !missing_given {
                missing_given = !through;
                for ((slot, before), chosen) in next.iter_mut().zip(slots).zip(chosen) {
                    if matches!(before, Slot::Array(..)) && !matches!(chosen, Slot::Open(_)) {
                        *slot = Slot::Missing;
                    }
                }
                self.go(inner, next)?;
            }
        }
        if chosen_given { Ok(()) } else { self.nothing(slots) }
    }

    /// Follows a path from an array by position; `None` if the next name is not a position of the array.
    fn element_at<'a>(&mut self, field: usize, names: usize, array: Doc<'a>) -> Option<Slot<'a>>
    where
        E: Emit<'a>,
    {
        let parts = self.parts(field);
        let position = parts.get(names)?.position()?;
        let element = array.values().nth(position)?;
        let ends = names + 1 == parts.len();
        Some(match element.as_container() {
            None if ends => Slot::Value(element),
            None => Slot::Missing,
            Some(doc) if element.kind() == Kind::Document => {
                if ends {
                    Slot::Value(element)
                } else {
                    follow(parts, names + 1, doc)
                }
            }
            Some(_) if !ends => Slot::Array(element, names + 1),
            Some(nested) => {
                // An array found by position is one value, but an empty one sorts like every empty array.
                self.emit.array(field, names + 1);
                let empty = self.positions == Positions::Alone && nested.is_empty();
                Slot::Value(if empty { Value::UNDEFINED } else { element })
            }
        })
    }

    /// Continues through an empty array. Its value is undefined at the end of a path and missing in the middle.
    fn nothing<'a, const N: usize>(&mut self, mut slots: [Slot<'a>; N]) -> Result<()>
    where
        E: Emit<'a>,
    {
        for (field, slot) in slots.iter_mut().enumerate().take(self.fields.len()) {
            if let Slot::Array(_, names) = *slot {
                let ends = names >= self.parts(field).len();
                *slot = if ends { Slot::Value(Value::UNDEFINED) } else { Slot::Missing };
            }
        }
        self.go(Doc::new(&[]), slots)
    }
}

fn ambiguous(part: &Part, field: Option<&(Path, Direction)>) -> Error {
    let message =
        format!("'{}' names both an array's position and a field of a document within that array", part.name());
    Error::new(Code(16746), message).at(field.map_or("", |(path, _)| path.as_str()))
}

/// Follows a path from a document to its end or to an array.
#[inline]
pub(crate) fn follow<'a>(parts: &[Part], from: usize, doc: Doc<'a>) -> Slot<'a> {
    let mut doc = doc;
    for (place, part) in parts.iter().enumerate().skip(from) {
        let Some(value) = part.find(doc) else { return Slot::Missing };
        match value.kind() {
            Kind::Array => return Slot::Array(value, place + 1),
            _ if place + 1 == parts.len() => return Slot::Value(value),
            Kind::Document => doc = Doc::new(value.bytes()),
            _ => return Slot::Missing,
        }
    }
    Slot::Missing
}
