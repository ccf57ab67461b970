use bson::{Binary, Bson, Decimal128, Document, JavaScriptCodeWithScope};

use super::{Context, Result, deserialize, utf8, without_inner_length};
use crate::{
    raw::{Doc, Kind, Value},
    work,
};

/// The steps of decoding an element: mostly allocations.
const DECODED: usize = 4;

/// Deserializes into [`Document`] as [`deserialize`] does, but where possible without serde, so that each name is
/// copied once.
///
/// # Errors
/// As [`deserialize`].
pub fn deserialize_document(document: Doc<'_>) -> Result<Document> {
    convert(document, Context::default()).map_or_else(|| deserialize(document), Ok)
}

/// The names that the `bson` crate reads as extended JSON, in order.
const EXTENDED: [&str; 18] = [
    "$binary",
    "$code",
    "$date",
    "$dbPointer",
    "$maxKey",
    "$minKey",
    "$numberDecimal",
    "$numberDecimalBytes",
    "$numberDouble",
    "$numberInt",
    "$numberLong",
    "$oid",
    "$regularExpression",
    "$scope",
    "$symbol",
    "$timestamp",
    "$undefined",
    "$uuid",
];

/// Converts a document. Returns `None` where serde fails or may give another value, as for the names in [`EXTENDED`]. Other names that begin with
/// `$` are converted here, because they occur in deep filters and pipelines, and serde needs several times as much stack for each level. Once the
/// call must end, the rest of the document is left out, because its caller returns an error.
fn convert(document: Doc<'_>, context: Context) -> Option<Document> {
    let mut converted = Document::new();
    for element in document.elements().take_while(|_| work::spend(DECODED)) {
        let name = utf8(element.name).filter(|name| !name.starts_with('$') || EXTENDED.binary_search(name).is_err())?;
        converted.insert(name.to_owned(), convert_value(element.value, context)?);
    }
    Some(converted)
}

fn convert_value(value: Value<'_>, context: Context) -> Option<Bson> {
    match value.kind() {
        Kind::Document => convert(Doc::new(value.bytes()), context.inside().ok()?).map(Bson::Document),
        Kind::Array => {
            let context = context.inside().ok()?;
            Doc::new(value.bytes())
                .values()
                .take_while(|_| work::spend(DECODED))
                .map(|item| convert_value(item, context))
                .collect::<Option<_>>()
                .map(Bson::Array)
        }
        Kind::Binary => value.as_binary().map(|(subtype, payload)| {
            let bytes = without_inner_length(subtype, payload).to_vec();
            Bson::Binary(Binary { subtype: subtype.into(), bytes })
        }),
        Kind::Decimal128 => value.as_decimal().map(|bytes| Bson::Decimal128(Decimal128::from_bytes(bytes))),
        Kind::Symbol => value.text().and_then(utf8).map(|text| Bson::Symbol(text.into())),
        Kind::Code => value.text().and_then(utf8).map(|text| Bson::JavaScriptCode(text.into())),
        Kind::CodeWithScope => {
            let (code, scope) = value.as_code_with_scope()?;
            let (code, scope) = (utf8(code)?.into(), convert(scope, context.inside().ok()?)?);
            Some(Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code, scope }))
        }
        Kind::Regex | Kind::DbPointer => None,
        _ => value.to_bson(),
    }
}
