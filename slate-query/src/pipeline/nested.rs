//! Writes a document with one field changed, at a path that leads through documents only.

use crate::{
    path::Part,
    raw::{Doc, Kind, Value, Writer},
};

/// Writes `doc` with `value` at the path `parts`; without the field if `value` is `None`. The field keeps its place; a
/// new one is added at the end. A value on the way that is not a document is replaced by one.
pub(super) fn set(doc: Doc<'_>, parts: &[Part], value: Option<Value<'_>>, out: &mut Vec<u8>) {
    out.clear();
    let mut writer = Writer::into_buffer(std::mem::take(out));
    match parts {
        // The fields before and after it are copied unread.
        [part] => {
            let bytes = doc.bytes();
            let end = bytes.len().saturating_sub(1);
            let place = doc.place_of(part.name_bytes()).unwrap_or(end..end);
            writer.append_raw(bytes.get(4..place.start).unwrap_or_default());
            if let Some(value) = value {
                writer.append(part.name_bytes(), value);
            }
            writer.append_raw(bytes.get(place.end..end).unwrap_or_default());
        }
        _ => fields(doc, parts, value, &mut writer),
    }
    *out = writer.finish();
}

/// Sets `value` at the path `parts` of the document in `out`, as [`set`]. A new field is appended in place. `scratch` is a buffer.
pub(super) fn put(parts: &[Part], value: Option<Value<'_>>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    if let [part] = parts
        && Doc::new(out).place_of(part.name_bytes()).is_none()
    {
        let Some(value) = value else { return };
        // Takes the place of the terminator.
        out.pop();
        out.push(value.kind().byte());
        out.extend_from_slice(part.name_bytes());
        out.push(0);
        out.extend_from_slice(value.bytes());
        out.push(0);
        if let (Ok(length), Some(head)) = (i32::try_from(out.len()), out.first_chunk_mut()) {
            *head = length.to_le_bytes();
        }
        return;
    }
    std::mem::swap(scratch, out);
    set(Doc::new(scratch), parts, value, out);
}

fn fields(doc: Doc<'_>, parts: &[Part], value: Option<Value<'_>>, writer: &mut Writer) {
    let Some((part, rest)) = parts.split_first() else { return writer.extend(doc) };
    let mut is_written = false;
    for element in doc.elements() {
        if is_written || element.name != part.name_bytes() {
            writer.append(element.name, element.value);
            continue;
        }
        is_written = true;
        field(part, element.value.as_document(), rest, value, writer);
    }
    if !is_written && value.is_some() {
        field(part, None, rest, value, writer);
    }
}

fn field(part: &Part, within: Option<Doc<'_>>, rest: &[Part], value: Option<Value<'_>>, writer: &mut Writer) {
    if !rest.is_empty() {
        writer.open_document(part.name_bytes());
        fields(within.unwrap_or(Doc::new(EMPTY)), rest, value, writer);
        writer.close();
    } else if let Some(value) = value {
        writer.append(part.name_bytes(), value);
    }
}

/// A document without fields.
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

/// An int64 as a value, with the bytes that it borrows.
pub(super) fn with_int64<R>(int: i64, visit: impl FnOnce(Value<'_>) -> R) -> R {
    visit(Value::new(Kind::Int64, &int.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};

    use super::*;
    use crate::{path::Path, raw::with_value};

    #[test]
    fn a_field_keeps_its_place_and_a_new_one_comes_last() {
        for (document, path, value, expected) in [
            (doc! {"a": 1, "b": 2}, "a", Some(7), doc! {"a": 7, "b": 2}),
            (doc! {"a": 1, "b": 2}, "c", Some(7), doc! {"a": 1, "b": 2, "c": 7}),
            (doc! {"a": {"x": 1, "y": 2}}, "a.x", Some(7), doc! {"a": {"x": 7, "y": 2}}),
            (doc! {"a": 1}, "a.x", Some(7), doc! {"a": {"x": 7}}),
            (doc! {}, "a.x.y", Some(7), doc! {"a": {"x": {"y": 7}}}),
            (doc! {"a": {"x": 1, "y": 2}}, "a.x", None, doc! {"a": {"y": 2}}),
            (doc! {"a": 1}, "b", None, doc! {"a": 1}),
        ] {
            let source = bson::RawDocumentBuf::try_from(&document).unwrap();
            let (path, mut out) = (Path::parse(path).unwrap(), Vec::new());
            match value {
                Some(value) => {
                    with_value(&value.into(), |value| set(Doc::from(&source), path.parts(), Some(value), &mut out));
                }
                None => set(Doc::from(&source), path.parts(), None, &mut out),
            }
            assert_eq!(Document::from_reader(&*out).unwrap(), expected, "{path} in {document}");
            let (mut scratch, mut changed) = (vec![1], source.as_bytes().to_vec());
            match value {
                Some(value) => {
                    with_value(&value.into(), |value| put(path.parts(), Some(value), &mut scratch, &mut changed));
                }
                None => put(path.parts(), None, &mut scratch, &mut changed),
            }
            assert_eq!(changed, out, "{path} in {document}");
        }
    }
}
