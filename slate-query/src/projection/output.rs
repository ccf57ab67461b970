use crate::{
    Result,
    raw::{Doc, Element, Kind, Value},
};

/// Returns the elements of a document, each with its bytes: type, name and value.
pub(super) fn fields<'a>(doc: Doc<'a>) -> impl Iterator<Item = (Element<'a>, &'a [u8])> {
    let mut rest = doc.bytes().get(4..).unwrap_or_default();
    doc.elements().map_while(move |element| {
        let (bytes, after) = rest.split_at_checked(element.size())?;
        rest = after;
        Some((element, bytes))
    })
}

/// Starts a document at the end of `out`. Pass the result to [`close`].
pub(super) fn open(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends the document that starts at `start`.
pub(super) fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    // A projected document is not longer than its original, whose length fits, except by computed fields, which
    // `check_row` limits.
    let length = i32::try_from(out.len() - start).unwrap_or(i32::MAX);
    if let Some(head) = out.get_mut(start..start + 4) {
        head.copy_from_slice(&length.to_le_bytes());
    }
}

/// Writes an element's type and name. The caller writes the value.
pub(super) fn head(out: &mut Vec<u8>, kind: Kind, name: &[u8]) {
    out.push(kind.byte());
    out.extend_from_slice(name);
    out.push(0);
}

/// Writes the type and the name of an array element.
pub(super) fn head_at(out: &mut Vec<u8>, kind: Kind, position: usize) {
    head(out, kind, position.to_string().as_bytes());
}

/// Writes a field that holds an array of these values.
pub(super) fn array<'a>(out: &mut Vec<u8>, name: &[u8], values: impl Iterator<Item = Value<'a>>) {
    head(out, Kind::Array, name);
    let start = open(out);
    for (position, value) in values.enumerate() {
        head_at(out, value.kind(), position);
        out.extend_from_slice(value.bytes());
    }
    close(out, start);
}

/// Writes a field that is an array, given the rest of its path, its name and the array.
type WriteArray<'w> = dyn FnMut(&[Box<str>], &[u8], Doc<'_>, &mut Vec<u8>) -> Result<()> + 'w;

/// Copies `doc`, with what `write` writes in place of the first array on `path`. Without such an array the copy is
/// unchanged.
///
/// # Errors
/// The errors of `write`.
pub(super) fn with_array(doc: Doc<'_>, path: &[Box<str>], out: &mut Vec<u8>, write: &mut WriteArray<'_>) -> Result<()> {
    let start = open(out);
    let mut path = path.split_first();
    for (element, bytes) in fields(doc) {
        // If the field is repeated, the path refers to the first one.
        let Some((_, rest)) = path.take_if(|(name, _)| name.as_bytes() == element.name) else {
            out.extend_from_slice(bytes);
            continue;
        };
        if let Some(array) = element.value.as_array() {
            write(rest, element.name, array, out)?;
        } else if let (Some(document), [_, ..]) = (element.value.as_document(), rest) {
            head(out, Kind::Document, element.name);
            with_array(document, rest, out, write)?;
        } else {
            out.extend_from_slice(bytes);
        }
    }
    close(out, start);
    Ok(())
}
