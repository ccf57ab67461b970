//! Checks what may be stored: top-level names, `_id`, size and depth.

use super::{Context, Phase, operator::Creates, tree::UpdateNode};
use crate::{
    Code, Error, Result,
    raw::{self, Doc, Kind, Value},
};

/// The largest document, in bytes.
const MAX_SIZE: usize = 16 * 1024 * 1024;

/// Refuses a change of `_id`, and of a name that an operator may not create.
pub(super) fn check_changed(name: &str, nodes: &[&UpdateNode], context: &Context) -> Result<()> {
    if name == "_id" {
        let message = "performing the update would modify the immutable field '_id'";
        return Err(Error::new(Code::IMMUTABLE_FIELD, message).at("_id"));
    }
    match nodes {
        [UpdateNode::Leaf(leaf)] if leaf.operator.creates() == Creates::Fields => check_created(name, context),
        _ => Ok(()),
    }
}

/// Checks that an update may write a top-level field of that name. As in MongoDB, names that begin with `$` are refused,
/// except in the document that an upsert inserts.
pub(super) fn check_created(name: &str, context: &Context) -> Result<()> {
    match context.phase {
        Phase::Modify if matches!(name, "$ref" | "$id" | "$db") => Err(db_ref(name)),
        Phase::Modify if name.starts_with('$') => Err(dollar(name)),
        Phase::Modify | Phase::Insert => Ok(()),
    }
}

/// Checks the names of a replacement: at the top level only the fields of a DBRef, in their order, may begin with `$`.
pub(super) fn check_replacement(doc: Doc<'_>) -> Result<()> {
    let mut before: Option<&[u8]> = None;
    let mut elements = doc.elements().peekable();
    while let Some(element) = elements.next() {
        let next = elements.peek().map(|next| next.name);
        let is_string = element.value.kind() == Kind::String;
        let in_order = match element.name {
            b"$ref" => is_string && next == Some(b"$id"),
            b"$id" => before == Some(b"$ref"),
            b"$db" => is_string && before == Some(b"$id"),
            [b'$', ..] => return Err(dollar(&element.display_name())),
            _ => true,
        };
        if !in_order {
            return Err(db_ref(&element.display_name()));
        }
        before = Some(element.name);
    }
    Ok(())
}

/// Checks that a value may be an `_id`. As in MongoDB, no name within it begins with `$`, except those of a DBRef.
///
/// # Errors
/// `InvalidIdField` (53) for arrays, regular expressions and undefined; `DollarPrefixedFieldName` (52).
pub fn check_id(id: Value<'_>) -> Result<()> {
    match id.kind() {
        Kind::Array | Kind::Regex | Kind::Undefined => {
            let message = format!("the '_id' value cannot be of type {}", id.kind().alias());
            Err(Error::new(Code::INVALID_ID_FIELD, message).at("_id"))
        }
        Kind::Document => match id.as_document().and_then(dollar_name) {
            Some(name) => {
                let message = format!("the '_id' value cannot have the dollar ($) prefixed field '{name}'");
                Err(Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message).at("_id"))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns the first name that begins with `$` in a document or within it, without those of DBRefs; `None` if there is none.
fn dollar_name(document: Doc<'_>) -> Option<Box<str>> {
    let mut elements = document.elements();
    let mut next_is = |name: &[u8], kinds: &[Kind]| {
        elements
            .next()
            .is_some_and(|next| next.name == name && (kinds.is_empty() || kinds.contains(&next.value.kind())))
    };
    let reference = match next_is(b"$ref", &[Kind::String]) && next_is(b"$id", &[]) {
        true if next_is(b"$db", &[Kind::String]) => 3,
        true => 2,
        false => 0,
    };
    document.elements().skip(reference).find_map(|element| match element.name {
        [b'$', ..] => Some(element.display_name().into()),
        _ => element.value.as_document().or_else(|| element.value.as_array()).and_then(dollar_name),
    })
}

/// Whether an update can exceed the nesting limit, so that the depth must be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Bounded,
    Unknown,
}

/// Checks the size of a document. With [`Depth::Unknown`], validates the document, too.
pub(super) fn check_whole(bytes: &[u8], depth: Depth, context: &Context) -> Result<()> {
    if bytes.len() > MAX_SIZE {
        // MongoDB has no names for these codes.
        let code = match context.phase {
            Phase::Modify => Code(17419),
            Phase::Insert => Code(17420),
        };
        return Err(Error::new(code, format!("the resulting document is larger than {MAX_SIZE} bytes")));
    }
    match depth {
        Depth::Unknown => raw::validate(bytes).map(drop),
        Depth::Bounded => Ok(()),
    }
}

fn dollar(name: &str) -> Error {
    let message = format!("the dollar ($) prefixed field '{name}' is not allowed here");
    Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message).at(name)
}

fn db_ref(name: &str) -> Error {
    Error::new(Code::INVALID_DB_REF, "a DBRef has the fields $ref (a string), $id and then $db (a string)").at(name)
}
