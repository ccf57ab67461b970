//! Writes a document with one field changed.

use crate::{
    path::Part,
    raw::{Doc, Kind, Value, Writer},
};

/// What happens to an array on the way to the field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    /// The array is replaced by a document, like every other value that is not a document.
    Replaced,
    /// The field is changed in each of the array's elements. Elements that are not documents or arrays are replaced.
    Traversed,
}

/// Writes `doc` with `value` at the path `parts`, which leads through documents only; without the field if `value` is `None`. The
/// field keeps its place; a new one is added at the end. A value on the way that is not a document is replaced by one.
pub(super) fn set(doc: Doc<'_>, parts: &[Part], value: Option<Value<'_>>, out: &mut Vec<u8>) {
    out.clear();
    let mut writer = Writer::into_buffer(std::mem::take(out));
    match parts {
        // The fields before and after the changed field are copied unread.
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
        _ => fields(doc, parts, value, Arrays::Replaced, &mut writer),
    }
    *out = writer.finish();
}

/// Sets `value` at the path `parts` of the document in `out`, as `$addFields` does: in the elements of arrays on the way, too. A new field
/// is appended in place. `scratch` is a buffer.
pub(super) fn put(parts: &[Part], value: Option<Value<'_>>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    if let [part] = parts
        && Doc::new(out).place_of(part.name_bytes()).is_none()
    {
        let Some(value) = value else { return };
        // The new field begins where the terminator was.
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
    if parts.len() == 1 {
        return set(Doc::new(scratch), parts, value, out);
    }
    out.clear();
    let mut writer = Writer::into_buffer(std::mem::take(out));
    fields(Doc::new(scratch), parts, value, Arrays::Traversed, &mut writer);
    *out = writer.finish();
}

fn fields(doc: Doc<'_>, parts: &[Part], value: Option<Value<'_>>, arrays: Arrays, writer: &mut Writer) {
    let Some((part, rest)) = parts.split_first() else { return writer.extend(doc) };
    let mut is_written = false;
    for element in doc.elements() {
        if is_written || element.name != part.name_bytes() {
            writer.append(element.name, element.value);
            continue;
        }
        is_written = true;
        field(element.name, Some(element.value), rest, value, arrays, writer);
    }
    if !is_written && value.is_some() {
        field(part.name_bytes(), None, rest, value, arrays, writer);
    }
}

/// Writes the field `name` with its value `within`, in which the path `rest` is set to `value`.
fn field(
    name: &[u8],
    within: Option<Value<'_>>,
    rest: &[Part],
    value: Option<Value<'_>>,
    arrays: Arrays,
    writer: &mut Writer,
) {
    if rest.is_empty() {
        if let Some(value) = value {
            writer.append(name, value);
        }
        return;
    }
    match within.and_then(Value::as_array).filter(|_| arrays == Arrays::Traversed) {
        Some(array) => {
            writer.open_array(name);
            array.elements().for_each(|at| field(at.name, Some(at.value), rest, value, arrays, writer));
        }
        None => {
            writer.open_document(name);
            fields(within.and_then(Value::as_document).unwrap_or(Doc::EMPTY), rest, value, arrays, writer);
        }
    }
    writer.close();
}

/// Calls `visit` with an int64 as a value.
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

    #[test]
    fn a_field_is_put_into_the_elements_of_arrays_and_set_in_place_of_them() {
        let source = bson::rawdoc! {"a": [{"x": 1}, 2, [{"y": 3}], []], "b": []};
        for (path, put_into, set_at) in [
            ("a.x", doc! {"a": [{"x": 7}, {"x": 7}, [{"y": 3, "x": 7}], []], "b": []}, doc! {"a": {"x": 7}, "b": []}),
            (
                "b.x.y",
                doc! {"a": [{"x": 1}, 2, [{"y": 3}], []], "b": []},
                doc! {"a": [{"x": 1}, 2, [{"y": 3}], []], "b": {"x": {"y": 7}}},
            ),
        ] {
            let path = Path::parse(path).unwrap();
            let (mut scratch, mut changed, mut out) = (Vec::new(), source.as_bytes().to_vec(), Vec::new());
            with_value(&7.into(), |value| {
                put(path.parts(), Some(value), &mut scratch, &mut changed);
                set(Doc::from(&source), path.parts(), Some(value), &mut out);
            });
            assert_eq!(Document::from_reader(&*changed).unwrap(), put_into);
            assert_eq!(Document::from_reader(&*out).unwrap(), set_at);
        }
    }
}
