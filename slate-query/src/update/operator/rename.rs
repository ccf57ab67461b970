//! `$rename`: sets the destination to the source's value. The source has an `$unset`, which removes it; if it cannot be removed,
//! the operator on the destination fails.

use super::contract::Operator;
use crate::{
    Code, Error, Result,
    path::Path,
    raw::{Doc, Kind, Value, Writer},
    update::{
        position::position,
        scope::{UpdateOutcome, UpdateScope},
        step::is_dynamic,
    },
};

/// The operator on the destination, which sets the source's value.
#[derive(Debug)]
pub(in crate::update) struct Destination {
    source: Path,
    destination: Path,
}

/// Returns the destination path: the argument of `$rename`.
///
/// # Errors
/// `BadValue` (2) if it is not a string; 9867600 if it contains a NUL byte.
pub(in crate::update) fn parse(argument: Value<'_>) -> Result<Path> {
    let Some(to) = argument.as_str() else {
        let message = format!("the 'to' field for $rename is a string, not a {}", argument.kind().alias());
        return Err(Error::new(Code::BAD_VALUE, message));
    };
    if to.contains('\0') {
        return Err(Error::new(Code(9_867_600), "the 'to' field for $rename must not contain a NUL byte"));
    }
    Path::parse(to)
}

impl Destination {
    /// Fails with `BadValue` (2) if the paths are equal, if one is a prefix of the other, or if one is dynamic.
    pub(in crate::update) fn new(source: Path, destination: Path) -> Result<Self> {
        let refuse = |message| Err(Error::new(Code::BAD_VALUE, message));
        if source.parts().iter().zip(destination.parts()).all(|(a, b)| a == b) {
            return refuse(
                "the source and the target of $rename must differ, and neither may be a prefix of the other",
            );
        }
        if source.parts().iter().chain(destination.parts()).any(|part| is_dynamic(part.name())) {
            return refuse("the source and the target of $rename may not be dynamic");
        }
        Ok(Self { source, destination })
    }

    /// Returns the value to move; `None` if it is missing.
    ///
    /// # Errors
    /// `PathNotViable` (28), `BadValue` (2) if the source or the destination is within an array.
    fn value<'a>(&self, scope: &UpdateScope<'a>) -> Result<Option<Value<'a>>> {
        let Some(found) = find(&self.source, scope)? else { return Ok(None) };
        if found.within == Within::Array {
            let message = "the source field of $rename cannot be an array element";
            return Err(Error::new(Code::BAD_VALUE, message).at(self.source.as_str()));
        }
        let mut doc = Parent::Root;
        for part in self.destination.parts().split_last().map_or(&[][..], |(_, parents)| parents) {
            let value = match doc {
                Parent::Root => scope.root_field(part.name()),
                Parent::Field(doc) => doc.and_then(|doc| doc.get(part.name())),
            };
            if value.is_some_and(|value| value.kind() == Kind::Array) {
                let message = "the destination field of $rename cannot be an array element";
                return Err(Error::new(Code::BAD_VALUE, message).at(self.destination.as_str()));
            }
            doc = Parent::Field(value.and_then(Value::as_document));
        }
        Ok(Some(found.value))
    }
}

/// The parent of the next name on a path: the whole document, or the document in a field, if there is one.
enum Parent<'a> {
    Root,
    Field(Option<Doc<'a>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Documents,
    Array,
}

struct RenamedValue<'a> {
    value: Value<'a>,
    within: Within,
}

/// Returns the value at a path that may contain array positions; `None` if it is missing.
fn find<'a>(path: &Path, scope: &UpdateScope<'a>) -> Result<Option<RenamedValue<'a>>> {
    let Some((first, rest)) = path.parts().split_first() else { return Ok(None) };
    let Some(mut value) = scope.root_field(first.name()) else { return Ok(None) };
    let mut within = Within::Documents;
    for part in rest {
        let next = match value.kind() {
            Kind::Document => Doc::new(value.bytes()).get(part.name()),
            Kind::Array => {
                within = Within::Array;
                let position = position(part.name()).ok_or_else(|| not_viable(path))?;
                Doc::new(value.bytes()).values().nth(position)
            }
            _ => return Err(not_viable(path)),
        };
        match next {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(RenamedValue { value, within }))
}

fn not_viable(path: &Path) -> Error {
    Error::new(Code::PATH_NOT_VIABLE, "the source of $rename goes through a value without fields").at(path.as_str())
}

impl Operator for Destination {
    fn update(
        &self,
        name: &[u8],
        _value: Value<'_>,
        scope: &UpdateScope<'_>,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        self.create(name, scope, out)
    }

    fn create(&self, name: &[u8], scope: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let Some(value) = self.value(scope)? else { return Ok(UpdateOutcome::Unchanged) };
        out.append(name, value);
        Ok(UpdateOutcome::Changed)
    }

    fn blocked(&self, scope: &UpdateScope<'_>) -> Result<()> {
        match self.value(scope)? {
            None => Ok(()),
            Some(_) => {
                let message = "the target of $rename goes through a value that cannot hold such a field";
                Err(Error::new(Code::PATH_NOT_VIABLE, message))
            }
        }
    }
}
