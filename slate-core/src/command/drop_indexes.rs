use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Kind, Value},
};

use super::{call::Call, concern::Concerns, fields::missing, list_indexes::no_collection, reply::Reply};
use crate::{
    Error, ErrorKind, Result,
    catalog::{CollectionInfo, is_key_of_id},
};

/// `{dropIndexes: collection, index: "*" | name | [name, …] | keys}`: drops all of these indexes or none.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let wanted = call.fields.value("index");
    let common = call.common(Concerns::Write)?;
    call.fields.refuse(&["collectionUUID"])?;
    call.fields.finish()?;
    let wanted = wanted.ok_or_else(|| missing("dropIndexes", "index"))?;

    let were = call.at.scope.write(&common.call, |writer| {
        let there = writer.collection(collection)?;
        let there = there.ok_or_else(|| no_collection(&common.full_name(collection)))?;
        for name in names(&there, wanted)? {
            writer.drop_index(collection, &name)?;
        }
        Ok(there.indexes.len() + 1)
    })?;
    let mut reply = Reply::default();
    reply.count("nIndexesWas", were);
    if wanted.as_str() == Some("*") {
        reply.text("msg", "non-_id indexes dropped for collection");
    }
    reply.finish()
}

/// Returns the names of the indexes to drop. All of them exist.
fn names(collection: &CollectionInfo, wanted: Value<'_>) -> Result<Vec<String>> {
    let named = |name: &str| match collection.index(name) {
        Some(_) => Ok(name.to_owned()),
        None if name == "_id_" => Err(on_id()),
        None => {
            Err(Error::new(ErrorKind::NotFound, Code::INDEX_NOT_FOUND, format!("index not found with name [{name}]")))
        }
    };
    let mistyped = || {
        let message = "indexes are dropped by name, by a list of names, or by keys";
        Error::invalid(Code::TYPE_MISMATCH, message).at("index")
    };
    match wanted.kind() {
        Kind::String if wanted.as_str() == Some("*") => {
            Ok(collection.indexes.iter().map(|index| index.name.to_string()).collect())
        }
        Kind::String => Ok(vec![named(wanted.as_str().unwrap_or_default())?]),
        Kind::Array => {
            let names = wanted.as_array().into_iter().flat_map(|names| names.values());
            names.map(|name| named(name.as_str().ok_or_else(mistyped)?)).collect()
        }
        _ => {
            let keys = wanted.as_document().ok_or_else(mistyped)?;
            match collection.index_of_keys(keys)? {
                Some(index) => Ok(vec![index.name.to_string()]),
                None if is_key_of_id(keys) => Err(on_id()),
                None => Err(Error::new(
                    ErrorKind::NotFound,
                    Code::INDEX_NOT_FOUND,
                    format!("can't find index with key: {wanted:?}"),
                )),
            }
        }
    }
}

fn on_id() -> Error {
    Error::invalid(Code::INVALID_OPTIONS, "cannot drop _id index")
}
