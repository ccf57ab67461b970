//! The names of collections in the stages of a pipeline. Callers use names within a database; they are replaced by stored names (see [`namespace`])
//! before a pipeline is parsed, so that the rest of Slate knows only stored names.

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Element, Value, Writer, validate_depth},
};

use crate::{Error, Result, document::as_raw, namespace};

/// Returns the stored name of a caller's collection.
///
/// # Errors
/// Fails with `InvalidNamespace` (73) for a name with a `$`.
pub(crate) fn stored(database: &str, collection: &str) -> Result<String> {
    if collection.contains('$') {
        let message = format!("Invalid namespace specified '{database}.{collection}'");
        return Err(Error::invalid(Code::INVALID_NAMESPACE, message));
    }
    Ok(namespace::stored(database, collection).into_owned())
}

/// Returns an array of stages with stored names.
///
/// # Errors
/// Fails as [`stored`] does, for an invalid name of a database, or with `Overflow` (15) if a stage nests too deep.
pub(crate) fn stored_array(database: &str, stages: Doc<'_>) -> Result<Vec<u8>> {
    stages.values().filter_map(Value::as_document).try_for_each(check_depth)?;
    let mut out = Writer::default();
    write_stages(stages, &mut out, &|name| stored(database, name))?;
    Ok(out.finish())
}

/// Returns the stages of the typed API with stored names. They may contain stored names, which begin with `$`.
///
/// # Errors
/// Fails as [`stored_array`] does.
pub(crate) fn stored_stages(database: &str, stages: &[RawDocumentBuf]) -> Result<Vec<RawDocumentBuf>> {
    renamed(stages, &|name| Ok(stored_or_kept(database, name)))
}

/// Returns the stored name of a collection that the typed API names, which may be a stored name.
pub(crate) fn stored_or_kept(database: &str, collection: &str) -> String {
    if collection.starts_with('$') {
        collection.to_owned()
    } else {
        namespace::stored(database, collection).into_owned()
    }
}

/// Returns the stages of a view with names within databases instead of stored names.
pub(crate) fn shown_stages(stages: &[RawDocumentBuf]) -> Vec<RawDocumentBuf> {
    // Only invalid names fail, and these are stored names.
    renamed(stages, &|name| Ok(namespace::split(name).1.to_owned())).unwrap_or_else(|_| stages.to_vec())
}

fn renamed(stages: &[RawDocumentBuf], rename: Rename<'_>) -> Result<Vec<RawDocumentBuf>> {
    let renamed = |stage: &RawDocumentBuf| {
        let (stage, mut out) = (Doc::from(stage), Writer::default());
        check_depth(stage)?;
        write_stage(stage, &mut out, rename)?;
        Ok(as_raw(&out.finish())?.to_owned())
    };
    stages.iter().map(renamed).collect()
}

/// Checks the depth of a stage: it is rewritten recursively before it is validated.
fn check_depth(stage: Doc<'_>) -> Result<()> {
    Ok(stage.elements().try_for_each(|field| validate_depth(field.value))?)
}

type Rename<'r> = &'r dyn Fn(&str) -> Result<String>;

/// Appends the elements of an array of stages, with the collections renamed.
fn write_stages(stages: Doc<'_>, out: &mut Writer, rename: Rename<'_>) -> Result<()> {
    for stage in stages.elements() {
        match stage.value.as_document() {
            Some(document) => {
                out.open_document(stage.name);
                write_stage(document, out, rename)?;
                out.close();
            }
            None => out.append(stage.name, stage.value),
        }
    }
    Ok(())
}

fn write_stage(stage: Doc<'_>, out: &mut Writer, rename: Rename<'_>) -> Result<()> {
    for element in stage.elements() {
        let Element { name, value, .. } = element;
        match (name, value.as_str(), value.as_document()) {
            (b"$unionWith" | b"$out" | b"$merge", Some(collection), _) => {
                out.append_string(name, rename(collection)?.as_bytes());
            }
            (b"$out", _, Some(into)) if is_namespace(into) => write_namespace(name, into, out)?,
            (b"$lookup" | b"$graphLookup", _, Some(options)) => write_options(name, options, b"from", out, rename)?,
            (b"$unionWith", _, Some(options)) => write_options(name, options, b"coll", out, rename)?,
            (b"$merge", _, Some(options)) => write_options(name, options, b"into", out, rename)?,
            (b"$facet", _, Some(facets)) => {
                out.open_document(name);
                for facet in facets.elements() {
                    write_pipeline(facet, out, rename)?;
                }
                out.close();
            }
            _ => out.append(name, value),
        }
    }
    Ok(())
}

/// Appends the options of a stage, with the collections renamed. `collection` is the option that names one.
fn write_options(
    stage: &[u8],
    options: Doc<'_>,
    collection: &[u8],
    out: &mut Writer,
    rename: Rename<'_>,
) -> Result<()> {
    out.open_document(stage);
    for option in options.elements() {
        match (option.value.as_str(), option.value.as_document()) {
            (Some(name), _) if option.name == collection => out.append_string(collection, rename(name)?.as_bytes()),
            (_, Some(into)) if option.name == b"into" && is_namespace(into) => write_namespace(b"into", into, out)?,
            _ if option.name == b"pipeline" => write_pipeline(option, out, rename)?,
            _ => out.append(option.name, option.value),
        }
    }
    out.close();
    Ok(())
}

fn write_pipeline(pipeline: Element<'_>, out: &mut Writer, rename: Rename<'_>) -> Result<()> {
    let Some(stages) = pipeline.value.as_array() else {
        out.append(pipeline.name, pipeline.value);
        return Ok(());
    };
    out.open_array(pipeline.name);
    write_stages(stages, out, rename)?;
    out.close();
    Ok(())
}

/// Whether a document is `{db, coll}`.
fn is_namespace(document: Doc<'_>) -> bool {
    let is_text = |name| document.get(name).is_some_and(|value| value.as_str().is_some());
    is_text("db") && is_text("coll")
}

/// Appends `{db, coll}` as a stored name.
fn write_namespace(name: &[u8], namespace: Doc<'_>, out: &mut Writer) -> Result<()> {
    let part = |name| namespace.get(name).and_then(Value::as_str).unwrap_or_default();
    namespace::check_database(part("db"))?;
    out.append_string(name, stored(part("db"), part("coll"))?.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};

    use super::*;

    fn renamed(stages: Document) -> Document {
        let stages = RawDocumentBuf::try_from(&doc! { "p": [stages] }).unwrap();
        let array = Doc::from(&stages).get("p").and_then(Value::as_array).unwrap();
        let bytes = stored_array("shop", array).unwrap();
        let array = Document::try_from(as_raw(&bytes).unwrap()).unwrap();
        array.get_document("0").unwrap().clone()
    }

    #[test]
    fn every_stage_that_names_a_collection_names_the_stored_one() {
        for (stage, expected) in [
            (doc! { "$unionWith": "a" }, doc! { "$unionWith": "$shop.a" }),
            (doc! { "$out": "a" }, doc! { "$out": "$shop.a" }),
            (doc! { "$out": { "db": "other", "coll": "a" } }, doc! { "$out": "$other.a" }),
            (doc! { "$out": { "db": "test", "coll": "a" } }, doc! { "$out": "a" }),
            (doc! { "$merge": { "into": { "db": "x", "coll": "a" } } }, doc! { "$merge": { "into": "$x.a" } }),
            (
                doc! { "$lookup": { "from": "a", "as": "from", "pipeline": [{ "$unionWith": { "coll": "b" } }] } },
                doc! { "$lookup": { "from": "$shop.a", "as": "from", "pipeline": [{ "$unionWith": { "coll": "$shop.b" } }] } },
            ),
            (
                doc! { "$facet": { "x": [{ "$graphLookup": { "from": "a" } }] } },
                doc! { "$facet": { "x": [{ "$graphLookup": { "from": "$shop.a" } }] } },
            ),
            (doc! { "$match": { "$out": "a" } }, doc! { "$match": { "$out": "a" } }),
        ] {
            assert_eq!(renamed(stage), expected);
        }
    }
}
