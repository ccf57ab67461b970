//! `$push`: appends to an array, with `$each`, `$position`, `$sort` and `$slice`.

use super::{
    contract::{Operator, depth},
    integer::integer,
};
use crate::{
    Code, Error, Result,
    collation::Collation,
    raw::{Doc, OwnedValue, Value, Writer, digits},
    sort::ArraySort,
    update::scope::{UpdateOutcome, UpdateScope},
    work,
};

#[derive(Debug, Default)]
struct Push {
    values: Vec<OwnedValue>,
    depth: usize,
    /// The position of the values, counted from the end if negative. `None` appends.
    position: Option<i64>,
    sort: Option<ArraySort>,
    collation: Option<Collation>,
    /// The number of elements to keep, the last ones if negative.
    slice: Option<i64>,
}

pub(super) fn parse(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    let push = match argument.as_document().filter(|clauses| clauses.get("$each").is_some()) {
        Some(clauses) => Push { collation: collation.cloned(), ..Push::parse_clauses(clauses)? },
        // Without `$each`, the argument is a value even if its fields have the names of modifiers.
        None => Push { values: vec![argument.to_owned()], depth: 1 + depth(argument), ..Push::default() },
    };
    Ok(Box::new(push))
}

/// The modifiers that may accompany `$each`.
pub(super) const MODIFIERS: [&str; 4] = ["$each", "$position", "$slice", "$sort"];

impl Push {
    fn parse_clauses(clauses: Doc<'_>) -> Result<Self> {
        let mut push = Self::default();
        let mut seen = Vec::new();
        for clause in clauses.elements() {
            if seen.contains(&clause.name) {
                return Err(refuse(format!("only one {} is supported in $push", clause.display_name())));
            }
            seen.push(clause.name);
            let whole = || {
                integer(clause.value).ok_or_else(|| {
                    let kind = clause.value.kind().alias();
                    refuse(format!("the value for {} must be an integer, not a {kind}", clause.display_name()))
                })
            };
            match clause.name {
                b"$each" => {
                    let kind = clause.value.kind().alias();
                    let not_array = || refuse(format!("the argument to $each in $push is an array, not a {kind}"));
                    let each = clause.value.as_array().ok_or_else(not_array)?;
                    push.values = each.values().map(Value::to_owned).collect();
                    push.depth = depth(clause.value);
                }
                b"$position" => push.position = Some(whole()?),
                b"$slice" => push.slice = Some(whole()?),
                b"$sort" => push.sort = Some(ArraySort::parse(clause.value)?),
                _ => return Err(refuse(format!("unrecognized clause in $push: {}", clause.display_name()))),
            }
        }
        Ok(push)
    }

    /// Returns the position of the values in an array of that length.
    fn place(&self, length: usize) -> usize {
        match self.position {
            None => length,
            Some(position) => {
                let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
                if position < 0 { length.saturating_sub(distance) } else { distance.min(length) }
            }
        }
    }

    /// Returns the elements of the array after the push.
    fn pushed<'a>(&'a self, array: Doc<'a>) -> Vec<Value<'a>> {
        let mut elements: Vec<Value<'a>> = array.values().collect();
        let place = self.place(elements.len());
        elements.splice(place..place, self.values.iter().map(OwnedValue::as_value));
        if let Some(sort) = &self.sort {
            work::sort_by(&mut elements, |a, b| sort.compare(*a, *b, self.collation.as_ref()));
        }
        if let Some(slice) = self.slice {
            let keep = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if slice < 0 {
                elements.drain(..elements.len().saturating_sub(keep));
            } else {
                elements.truncate(keep);
            }
        }
        elements
    }
}

impl Operator for Push {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let array = value.as_array().ok_or_else(|| {
            let message = format!("$push acts on an array, not on a value of type {}", value.kind().alias());
            refuse(message)
        })?;
        let pushed = self.pushed(array);
        if pushed.iter().copied().eq(array.values()) {
            return Ok(UpdateOutcome::Unchanged);
        }
        write(name, &pushed, out);
        Ok(UpdateOutcome::Changed)
    }

    fn create(&self, name: &[u8], _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        write(name, &self.pushed(Doc::EMPTY), out);
        Ok(UpdateOutcome::Changed)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

fn write(name: &[u8], elements: &[Value<'_>], out: &mut Writer) {
    out.open_array(name);
    for (position, element) in elements.iter().enumerate() {
        out.append(digits(position).as_bytes(), *element);
    }
    out.close();
}

fn refuse(message: String) -> Error {
    Error::new(Code::BAD_VALUE, message)
}
