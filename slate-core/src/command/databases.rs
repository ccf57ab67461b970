//! Databases in commands: clients name a collection within the database `$db`, and the store has one name for each collection of all
//! databases (see [`namespace`]). The names in a command are replaced before it is parsed, so that the rest of Slate knows only stored
//! names.

use bson::{Bson, Document, RawDocumentBuf};
use slate_query::{
    Code,
    raw::{Doc, Element, Kind, OwnedValue, Value, Writer},
};

use super::call::Call;
use crate::{Error, ErrorKind, Result, document::as_raw, namespace};

/// The commands whose value is not the name of a collection in the database of the command.
const WITHOUT_COLLECTION: [&str; 2] = ["killCursors", "renameCollection"];

/// The parts of a command that name collections, with stored names.
#[derive(Default)]
pub(super) struct StoredNames {
    target: Option<OwnedValue>,
    pipeline: Option<Vec<u8>>,
    view_on: Option<OwnedValue>,
}

impl StoredNames {
    /// Returns the parts of a command that is sent to a database; nothing is replaced without one.
    ///
    /// # Errors
    /// Fails with `InvalidNamespace` (73) for an invalid database or a name with a `$`.
    pub(super) fn of(call: &Call<'_>, database: Option<&str>) -> Result<Self> {
        let Some(database) = database else { return Ok(Self::default()) };
        namespace::check_database(database)?;
        let text = |name: &str| -> Result<OwnedValue> { Ok(OwnedValue::from(Bson::String(stored(database, name)?))) };
        let has_collection = !WITHOUT_COLLECTION.contains(&call.name);
        let target = call.target.as_str().filter(|_| has_collection).map(text).transpose()?;
        let view_on = call.fields.peek("viewOn").and_then(Value::as_str).filter(|on| !on.is_empty());
        let view_on = view_on.map(text).transpose()?;
        let pipeline = call.fields.peek("pipeline").and_then(Value::as_array);
        let pipeline = pipeline.map(|stages| pipeline_of(stages, &|name| stored(database, name))).transpose()?;
        Ok(Self { target, pipeline, view_on })
    }

    /// Puts the parts into the command that they were made of.
    pub(super) fn apply<'c>(&'c self, call: &mut Call<'c>) {
        if let Some(target) = &self.target {
            call.target = target.as_value();
        }
        if let Some(on) = &self.view_on {
            call.fields.replace("viewOn", on.as_value());
        }
        if let Some(pipeline) = &self.pipeline {
            call.fields.replace("pipeline", Value::new(Kind::Array, pipeline));
        }
    }
}

/// Returns an error with the names that clients use: full names of stored collections.
pub(super) fn shown_error(error: Error, database: Option<&str>) -> Error {
    let shown = shown_message(&error, error.message().to_owned(), database);
    error.with_message(shown)
}

/// Replaces stored names in a message about an error.
pub(super) fn shown_message(error: &Error, mut message: String, database: Option<&str>) -> String {
    if let Some(stored) = error.collection() {
        let (database, own) = namespace::split(stored);
        let full = format!("{database}.{own}");
        if stored.len() > own.len() {
            message = message.replace(stored, &full);
        } else if error.kind() == ErrorKind::DuplicateKey {
            message = message.replacen(&format!("collection: {own} index"), &format!("collection: {full} index"), 1);
        }
    }
    match database {
        Some(database) => message.replace(&format!("${database}."), &format!("{database}.")),
        None => message,
    }
}

/// Replaces the stored names in a drawn plan by the names that its client uses.
pub(super) fn shown_plan(plan: &mut Document) {
    for (name, value) in plan.iter_mut() {
        match value {
            Bson::Document(node) => shown_plan(node),
            Bson::Array(nodes) => nodes.iter_mut().filter_map(Bson::as_document_mut).for_each(shown_plan),
            Bson::String(stored) if matches!(&**name, "collection" | "from" | "coll" | "into") => {
                *stored = namespace::split(stored).1.to_owned();
            }
            _ => {}
        }
    }
}

/// Returns the stages of a view with the names that its clients use.
pub(super) fn shown_stages(stages: &[RawDocumentBuf]) -> Result<Vec<RawDocumentBuf>> {
    let rename = |name: &str| Ok(namespace::split(name).1.to_owned());
    let shown = |stage: &RawDocumentBuf| {
        let mut out = Writer::default();
        write_stage(Doc::from(stage), &mut out, &rename)?;
        Ok(as_raw(&out.finish())?.to_owned())
    };
    stages.iter().map(shown).collect()
}

/// Returns the stored name of a client's collection.
fn stored(database: &str, collection: &str) -> Result<String> {
    if collection.contains('$') {
        let message = format!("Invalid namespace specified '{database}.{collection}'");
        return Err(Error::invalid(Code::INVALID_NAMESPACE, message));
    }
    Ok(namespace::stored(database, collection).into_owned())
}

type Rename<'r> = &'r dyn Fn(&str) -> Result<String>;

fn pipeline_of(stages: Doc<'_>, rename: Rename<'_>) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    write_stages(stages, &mut out, rename)?;
    Ok(out.finish())
}

/// Appends the elements of an array of stages.
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

/// Appends the options of a stage: `collection` is the option that names a collection.
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
    use bson::doc;

    use super::*;

    fn renamed(stages: Document) -> Document {
        let stages = RawDocumentBuf::try_from(&doc! { "p": [stages] }).unwrap();
        let array = Doc::from(&stages).get("p").and_then(Value::as_array).unwrap();
        let bytes = pipeline_of(array, &|name| stored("shop", name)).unwrap();
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
