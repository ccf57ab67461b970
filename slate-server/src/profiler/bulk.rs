//! The entries for a `bulkWrite`, which is sent to the database `admin` and writes to others.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use crate::command::{Command, namespace};

/// The part of a `bulkWrite` that writes to one database. Users who may read the profile of that database see only this part.
#[derive(Clone)]
pub(super) struct BulkPart<'c> {
    pub(super) database: &'c str,
    command: &'c Command,
    /// The databases and collections in `nsInfo`; `None` for an invalid name.
    namespaces: Arc<[Option<(&'c str, &'c str)>]>,
    /// Whether the command writes to no other database, so that its reply applies to this one alone.
    pub(super) is_all: bool,
}

impl<'c> BulkPart<'c> {
    /// Returns the parts of a `bulkWrite`; empty for another command. A database that is named but not written to has no part: a user without the
    /// right to write there may name it.
    pub(super) fn all(command: &'c Command) -> Vec<Self> {
        let namespaces: Arc<[_]> = command.bulk_namespaces().into();
        let operations = command.document().get_array("ops").into_iter().flatten().flatten();
        let places = operations.filter_map(|operation| place(operation.as_document()?.into_iter().next()?.ok()?.1));
        let databases: BTreeSet<&str> = places
            .filter_map(|place| *namespaces.get(usize::try_from(place).ok()?)?)
            .map(|(database, _)| database)
            .collect();
        let is_all = databases.len() == 1;
        let part = |database| Self { database, command, namespaces: Arc::clone(&namespaces), is_all };
        databases.into_iter().map(part).collect()
    }

    /// Returns the full name of the collection if it is the only one in the database, otherwise `$cmd`.
    pub(super) fn namespace(&self) -> String {
        let mut own = self.namespaces.iter().flatten().filter(|(database, _)| *database == self.database);
        let first = own.next().map_or("$cmd", |(_, collection)| *collection);
        let target = if own.all(|(_, other)| *other == first) { first } else { "$cmd" };
        namespace(self.database, target)
    }

    /// Returns the command with only the operations on this database.
    pub(super) fn document(&self) -> RawDocumentBuf {
        let document = self.command.document();
        if self.is_all {
            return document.to_owned();
        }
        let mut places = HashMap::new();
        let mut own = RawArrayBuf::new();
        let listed = document.get_array("nsInfo").into_iter().flatten().flatten();
        for ((place, namespace), one) in (0_i64..).zip(self.namespaces.iter()).zip(listed) {
            if namespace.is_some_and(|(database, _)| database == self.database) {
                places.insert(place, i32::try_from(places.len()).unwrap_or(i32::MAX));
                own.push(RawBson::from(one));
            }
        }
        let operations = document.get_array("ops").into_iter().flatten().flatten();
        let operations: RawArrayBuf =
            operations.filter_map(RawBsonRef::as_document).filter_map(|operation| moved(operation, &places)).collect();
        let mut part = RawDocumentBuf::new();
        for (name, value) in document.into_iter().flatten() {
            match name.as_str() {
                "ops" | "nsInfo" => {}
                _ => part.append(name, value),
            }
        }
        part.append(cstr!("ops"), operations);
        part.append(cstr!("nsInfo"), own);
        part
    }
}

/// Returns the position in `nsInfo` that an operation names; `None` if it is not an integer.
fn place(value: RawBsonRef<'_>) -> Option<i64> {
    value.as_i32().map(i64::from).or_else(|| value.as_i64())
}

/// Returns an operation with the new position of its collection in `nsInfo`; `None` if the collection is not in `places`.
fn moved(operation: &RawDocument, places: &HashMap<i64, i32>) -> Option<RawDocumentBuf> {
    let mut fields = operation.into_iter().flatten();
    let (kind, place) = fields.next()?;
    let place = self::place(place)?;
    let mut moved = RawDocumentBuf::new();
    moved.append(kind, *places.get(&place)?);
    fields.for_each(|(name, value)| moved.append(name, value));
    Some(moved)
}
