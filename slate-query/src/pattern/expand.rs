//! Which values a document has at several paths at once, where arrays stand on the way: the keys of a compound index.
//!
//! All paths are followed until an array; it must be the same one for all of them. Then each of its elements is gone
//! into, by all paths that lead through it together: elements are paired, not multiplied. MongoDB's key generator has
//! the same meaning, but for [`Positions::AndFields`].

use super::Direction;
use crate::{
    Code, Error, Result,
    path::{Part, Path},
    raw::{Doc, Kind, Value},
};

/// The most fields that an index or a sort may have.
pub(crate) const MAX_FIELDS: usize = 32;

/// What a name that spells an array position stands for, within an array that has this position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// The element at that position. What sorts do.
    Alone,
    /// That, and also, in each document within the array, the field of that name, which it lacks. Filters see both; an
    /// index that left one of them out would lose rows.
    AndFields,
}

/// A path on its way.
#[derive(Clone, Copy)]
pub(crate) enum Slot<'a> {
    /// At its end.
    Value(Value<'a>),
    /// At its end, which is not there.
    Missing,
    /// At the document, before the name of this number.
    Open(usize),
    /// At an array, before the name of this number.
    Array(Value<'a>, usize),
}

/// Receives what is found.
pub(crate) trait Emit<'a> {
    /// One key: a value, or a missing one, for each field.
    fn key(&mut self, values: &[Option<Value<'a>>]);
    /// The value at the first `names` names of a field's path is an array.
    fn array(&mut self, field: usize, names: usize);
}

/// Hands each key of `doc` to `emit`, repetitions not left out.
///
/// # Errors
/// `CannotIndexParallelArrays` (171) where two paths lead through different arrays; 16746 where a name spells both an
/// array's position and a field of a document within that array.
#[inline]
pub(crate) fn expand<'a>(
    fields: &[(Path, Direction)],
    doc: Doc<'a>,
    positions: Positions,
    emit: &mut impl Emit<'a>,
) -> Result<()> {
    // An index of one field is the commonest; the array of slots is copied at every array.
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

    /// Goes into each element of `array`, which is where some of the slots stand.
    fn elements<'a, const N: usize>(&mut self, array: Value<'a>, slots: [Slot<'a>; N]) -> Result<()>
    where
        E: Emit<'a>,
    {
        let elements = Doc::new(array.bytes());
        let (mut positional, mut through) = (false, false);
        // Where each path goes on from this array by position; `Open` where it does not.
        let chosen = std::array::from_fn::<_, N, _>(|field| match slots.get(field) {
            Some(Slot::Array(_, names)) => {
                let chosen = self.element_at(field, *names, elements);
                positional |= chosen.is_some();
                through |= chosen.is_none();
                chosen.unwrap_or(Slot::Open(*names))
            }
            Some(Slot::Value(_) | Slot::Missing | Slot::Open(_)) | None => Slot::Missing,
        });
        // Where no path goes through the elements, each gives what the first gives.
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

    /// Follows a path from an array by the position that its next name spells; `None` where it spells none, or one that
    /// the array lacks.
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
                // An array that a position names is one value; but an empty one sorts as every empty array does.
                self.emit.array(field, names + 1);
                let empty = self.positions == Positions::Alone && nested.is_empty();
                Slot::Value(if empty { Value::UNDEFINED } else { element })
            }
        })
    }

    /// An empty array: undefined where a path ends in it, nothing where it leads on.
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
