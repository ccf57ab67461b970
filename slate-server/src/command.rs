use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, LazyLock},
};

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, rawdoc};
use slate_core::raw::{Kind, Value};

use crate::{
    commands::{self, KnownCommand, Trait},
    failure::{Code, Failure, Result},
};

/// A received command, with the fields that the server itself uses.
#[derive(Debug, Default)]
pub(crate) struct Command {
    /// `None` while the fields are being read.
    document: Option<Arc<RawDocumentBuf>>,
    /// The properties of the command; `None` if its name is unknown.
    pub(crate) known: Option<&'static KnownCommand>,
    pub(crate) name: Cow<'static, str>,
    /// The range of the first field's value in the document, if that is a string.
    target: Option<Range<usize>>,
    /// The range of the database's name in the document.
    database: Range<usize>,
    /// The range of the `lsid` in the document; `None` if the command belongs to no session.
    session: Option<Range<usize>>,
    pub(crate) number: Option<i64>,
    /// Whether the command belongs to a transaction (`autocommit: false`).
    pub(crate) in_transaction: bool,
    pub(crate) starts_transaction: bool,
    pub(crate) read_concern: Option<ReadConcern>,
    /// The cluster time that the client has sent.
    pub(crate) cluster_time: Option<Timestamp>,
    pub(crate) has_write_concern: bool,
    /// Whether the command has a field of the stable API.
    pub(crate) declares_api: bool,
    /// Why the write concern cannot be satisfied; `None` if it can. The write is executed all the same, as in MongoDB.
    pub(crate) unsatisfied: Option<Unsatisfied>,
}

/// The parts of `readConcern` that the server handles.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadConcern {
    pub(crate) level: Option<String>,
    pub(crate) at: Option<Timestamp>,
    /// `afterClusterTime`: the read must not show an earlier time.
    after: Option<Timestamp>,
}

/// A write concern that a replica set of one member cannot satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsatisfied {
    /// More members than the set has.
    Members,
    /// A mode that the set does not define.
    Mode,
}

/// An empty document, in place of that of a command whose fields are being read.
static NO_FIELDS: LazyLock<RawDocumentBuf> = LazyLock::new(RawDocumentBuf::new);

/// Maximum length of the name of a database or a collection that is shown, in bytes.
const MAX_NAME: usize = 255;

/// Returns the full name of a collection; a name that is too long is truncated.
pub(crate) fn namespace(database: &str, collection: &str) -> String {
    let (database, collection) = (beginning(database, MAX_NAME), beginning(collection, MAX_NAME));
    format!("{database}.{collection}")
}

/// Returns the database and the collection of an element of `nsInfo`; `None` if it is invalid.
fn split_namespace(one: RawBsonRef<'_>) -> Option<(&str, &str)> {
    one.as_document()?.get_str("ns").ok()?.split_once('.')
}

/// Returns the range of a string's text, without its length and its terminator, from the range of the string.
fn text_within(string: Range<usize>) -> Range<usize> {
    string.start + 4..string.end - 1
}

fn timestamp(both: u64) -> Timestamp {
    let part = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
    Timestamp { time: part(both >> 32), increment: part(both) }
}

/// Returns the first bytes of a text, at most `most`, up to the end of a character.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl ReadConcern {
    /// Reads a `readConcern`. Fails on unknown fields, wrong types and times that MongoDB refuses. The library checks the names of levels and of
    /// provenances.
    fn read(concern: &RawDocument) -> Result<Self> {
        let mut read = Self::default();
        for element in concern {
            let (name, value) = element?;
            let mistyped = |expected| Failure::mistyped(&format!("readConcern.{name}"), expected);
            let time = || value.as_timestamp().ok_or_else(|| mistyped("timestamp"));
            match name.as_str() {
                _ if value == RawBsonRef::Null => {}
                "level" => read.level = Some(value.as_str().ok_or_else(|| mistyped("string"))?.to_owned()),
                "atClusterTime" => read.at = Some(time()?),
                "afterClusterTime" => read.after = Some(time()?),
                "provenance" => {}
                _ => return Err(Failure::unknown_field(&format!("readConcern.{name}"))),
            }
        }
        let level = read.level.as_deref();
        let fault = if read.after.is_some() && read.at.is_some() {
            "a read concern has either afterClusterTime or atClusterTime"
        } else if read.after.is_some() && matches!(level, Some("available" | "linearizable")) {
            "afterClusterTime field can be set only if level is equal to majority, local, or snapshot"
        } else if read.at.is_some() && level != Some("snapshot") {
            "atClusterTime field can be set only if level is equal to snapshot"
        } else if read.times().any(|time| time == Timestamp { time: 0, increment: 0 }) {
            "the time of a read concern cannot be a null timestamp"
        } else {
            return Ok(read);
        };
        Err(Failure::new(Code::INVALID_OPTIONS, fault))
    }

    fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.at.into_iter().chain(self.after)
    }

    /// Fails if a time is later than the cluster time `now`.
    pub(crate) fn check_times(&self, now: Timestamp) -> Result<()> {
        if self.times().all(|time| time <= now) {
            return Ok(());
        }
        let message = "the time of a read concern must not be greater than the current clusterTime";
        Err(Failure::new(Code::INVALID_OPTIONS, message))
    }
}

impl Unsatisfied {
    fn read(concern: &RawDocument) -> Option<Self> {
        match concern.get("w").ok()?? {
            RawBsonRef::String(mode) => (mode != "majority").then_some(Self::Mode),
            RawBsonRef::Int32(members) => (members > 1).then_some(Self::Members),
            RawBsonRef::Int64(members) => (members > 1).then_some(Self::Members),
            RawBsonRef::Double(members) => (members >= 2.0).then_some(Self::Members),
            _ => None,
        }
    }

    /// Returns the `writeConcernError` of a reply.
    pub(crate) fn describe(self) -> RawDocumentBuf {
        match self {
            Self::Members => rawdoc! {
                "code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "Not enough data-bearing nodes",
            },
            Self::Mode => rawdoc! {
                "code": 79, "codeName": "UnknownReplWriteConcern", "errmsg": "No write concern mode of this name is defined",
            },
        }
    }
}

impl Command {
    /// Reads the fields of a command.
    ///
    /// # Errors
    /// Fails on damaged bytes and on fields of the wrong type.
    pub(crate) fn read(document: RawDocumentBuf) -> Result<Self> {
        let damaged = || Failure::new(Code::INVALID_BSON, "an element is cut short or of an unknown type");
        let bytes = document.as_bytes();
        let elements = Value::new(Kind::Document, bytes).as_document().into_iter().flat_map(|fields| fields.elements());
        let mut command = Self::default();
        // The first element follows the length of the document.
        let mut end = 4;
        for (position, element) in elements.enumerate() {
            end += element.size();
            let place = end - element.value.bytes().len()..end;
            if position == 0 {
                let name = std::str::from_utf8(element.name).map_err(|_| damaged())?;
                command.known = commands::find(name);
                command.name = command.known.map_or_else(|| name.to_owned().into(), |known| known.name.into());
                command.target = (element.value.kind() == Kind::String).then(|| text_within(place));
            } else {
                command.read_field(element.name, element.value, place)?;
            }
        }
        // Elements after a damaged one were not read. Only the terminator may remain.
        if end + 1 != bytes.len() {
            return Err(damaged());
        }
        if end == 4 {
            return Err(Failure::new(Code::COMMAND_NOT_FOUND, "no command"));
        }
        if command.database.is_empty() {
            return Err(Failure::new(Code(40571, "Location40571"), "OP_MSG requests require a $db argument"));
        }
        command.document = Some(Arc::new(document));
        Ok(command)
    }

    fn read_field(&mut self, name: &[u8], value: Value<'_>, place: Range<usize>) -> Result<()> {
        let mistyped =
            |expected| Failure::mistyped(&format!("{}.{}", self.name, String::from_utf8_lossy(name)), expected);
        let document = || -> Result<&RawDocument> {
            let document = value.as_document().ok_or_else(|| mistyped("object"))?;
            Ok(RawDocument::from_bytes(document.bytes())?)
        };
        match name {
            b"$db" => {
                value.as_str().ok_or_else(|| mistyped("string"))?;
                self.database = text_within(place);
            }
            b"lsid" => {
                document()?;
                self.session = Some(place);
            }
            b"txnNumber" => self.number = Some(value.as_i64().ok_or_else(|| mistyped("long"))?),
            b"autocommit" => {
                self.in_transaction = !value.as_bool().ok_or_else(|| mistyped("bool"))?;
                if !self.in_transaction {
                    let message = "autocommit must be false for a multi-document transaction";
                    return Err(Failure::new(Code::INVALID_OPTIONS, message));
                }
            }
            b"startTransaction" => {
                self.starts_transaction = value.as_bool().ok_or_else(|| mistyped("bool"))?;
                if !self.starts_transaction {
                    let message = "Specifying startTransaction=false is not allowed.";
                    return Err(Failure::new(Code::INVALID_OPTIONS, message));
                }
            }
            b"readConcern" => {
                self.read_concern = Some(ReadConcern::read(document()?)?);
            }
            b"$clusterTime" => {
                let time = value.as_document().ok_or_else(|| mistyped("object"))?;
                if let Some(time) = time.get("clusterTime") {
                    self.cluster_time = Some(time.as_timestamp().map(timestamp).ok_or_else(|| mistyped("timestamp"))?);
                }
            }
            b"apiVersion" | b"apiStrict" | b"apiDeprecationErrors" => self.declares_api = true,
            b"writeConcern" => {
                self.has_write_concern = true;
                self.unsatisfied = document().ok().and_then(Unsatisfied::read);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the database to which the command was sent.
    pub(crate) fn database(&self) -> &str {
        self.text(&self.database).unwrap_or_default()
    }

    /// Returns the `lsid`; `None` if the command belongs to no session.
    pub(crate) fn session(&self) -> Option<&RawDocument> {
        let bytes = self.document().as_bytes().get(self.session.clone()?)?;
        RawDocument::from_bytes(bytes).ok()
    }

    /// Returns the text in a range; `None` if it is not UTF-8.
    fn text(&self, place: &Range<usize>) -> Option<&str> {
        std::str::from_utf8(self.document().as_bytes().get(place.clone())?).ok()
    }

    /// Whether the command has this trait.
    pub(crate) fn is(&self, wanted: Trait) -> bool {
        self.known.is_some_and(|known| known.is(wanted))
    }

    /// Returns the whole command.
    pub(crate) fn document(&self) -> &RawDocument {
        self.document.as_deref().unwrap_or(&NO_FIELDS)
    }

    /// Returns a field by its name; `None` if it is missing.
    pub(crate) fn get(&self, name: &str) -> Result<Option<RawBsonRef<'_>>> {
        Ok(self.document().get(name)?)
    }

    /// Whether the reply describes a plan.
    pub(crate) fn explains(&self) -> bool {
        self.name == "explain"
            || (self.name == "aggregate" && matches!(self.get("explain"), Ok(Some(RawBsonRef::Boolean(true)))))
    }

    /// Returns the description of the client in the `hello` of a driver; `None` if it has none, and for other commands.
    pub(crate) fn client_metadata(&self) -> Option<&RawDocument> {
        let is_hello = matches!(&*self.name, "hello" | "isMaster" | "ismaster");
        if is_hello { self.document().get_document("client").ok() } else { None }
    }

    /// Returns the collection that the command reads or writes; `None` if it has none.
    pub(crate) fn collection(&self) -> Option<&str> {
        if self.is(Trait::Collection) {
            return self.text(self.target.as_ref()?);
        }
        match &*self.name {
            "getMore" => self.document().get_str("collection").ok(),
            // The collection of the explained command.
            "explain" => {
                let (name, target) = self.document().get_document("explain").ok()?.iter().next()?.ok()?;
                let known = commands::find(name.as_str()).filter(|known| known.is(Trait::Collection));
                known.and_then(|_| target.as_str())
            }
            _ => None,
        }
    }

    /// Returns the full name of the collection. For a command without a collection, MongoDB's `$cmd` or `$cmd.aggregate` replaces it. A name that
    /// is too long is truncated.
    pub(crate) fn namespace(&self) -> String {
        let target = match (self.collection(), &*self.name) {
            (Some(collection), _) => collection,
            (None, "aggregate") => "$cmd.aggregate",
            (None, _) => "$cmd",
        };
        namespace(self.database(), target)
    }

    /// Returns the databases and collections of a `bulkWrite`, `None` for an invalid name; empty for another command.
    pub(crate) fn bulk_namespaces(&self) -> Vec<Option<(&str, &str)>> {
        if self.name != "bulkWrite" {
            return Vec::new();
        }
        let Ok(Some(RawBsonRef::Array(namespaces))) = self.get("nsInfo") else { return Vec::new() };
        namespaces.into_iter().flatten().map(split_namespace).collect()
    }

    /// Returns the command for the library, without what the server handles: times of the read concern; the whole read concern in a transaction or
    /// a `getMore`; a write concern that only a larger set satisfies.
    pub(crate) fn for_library(&self) -> Result<Arc<RawDocumentBuf>> {
        let drops_concern = self.in_transaction || self.name == "getMore";
        let concern = self.read_concern.as_ref().filter(|concern| drops_concern || concern.times().next().is_some());
        if concern.is_none() && self.unsatisfied.is_none() {
            return Ok(self.document.clone().unwrap_or_default());
        }
        let mut copy = RawDocumentBuf::new();
        for element in self.document().iter() {
            match element? {
                (name, RawBsonRef::Document(_)) if name == "readConcern" && drops_concern => {}
                (name, RawBsonRef::Document(_)) if name == "writeConcern" && self.unsatisfied.is_some() => {}
                (name, RawBsonRef::Document(concern)) if name == "readConcern" => {
                    let mut kept = RawDocumentBuf::new();
                    for (name, value) in concern.iter().flatten() {
                        if !matches!(name.as_str(), "atClusterTime" | "afterClusterTime") {
                            kept.append(name, value);
                        }
                    }
                    copy.append(name, kept);
                }
                (name, value) => copy.append(name, value),
            }
        }
        Ok(Arc::new(copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_command_are_found_at_their_places() {
        let lsid = rawdoc! { "id": 7 };
        let find = rawdoc! { "find": "c", "lsid": lsid.clone(), "filter": { "a": 1 }, "$db": "shop" };
        let find = Command::read(find).unwrap();
        assert_eq!((&*find.name, find.database(), find.collection()), ("find", "shop", Some("c")));
        assert_eq!((find.session(), find.namespace()), (Some(&*lsid), "shop.c".into()));
        let collection = |document| Command::read(document).unwrap().collection().map(str::to_owned);
        let inner = rawdoc! { "count": "d" };
        assert_eq!(collection(rawdoc! { "explain": inner, "$db": "shop" }).as_deref(), Some("d"));
        let more = rawdoc! { "getMore": 1_i64, "collection": "e", "$db": "shop" };
        assert_eq!(collection(more).as_deref(), Some("e"));
        for no_collection in [rawdoc! { "aggregate": 1, "$db": "shop" }, rawdoc! { "nothing": "c", "$db": "shop" }] {
            assert_eq!(collection(no_collection), None);
        }
    }

    #[test]
    fn what_is_behind_a_damaged_element_is_not_overlooked() {
        let whole = rawdoc! { "find": "c", "x": 1, "$db": "shop", "autocommit": false }.into_bytes();
        let place = whole.windows(2).position(|two| two == b"x\0").unwrap() - 1;
        for damaged in [0x7e, 0x02] {
            let mut bytes = whole.clone();
            bytes[place] = damaged;
            let failure = Command::read(RawDocumentBuf::from_bytes(bytes).unwrap()).unwrap_err();
            assert_eq!(failure.code, Code::INVALID_BSON.0, "{failure}");
        }
        assert_eq!(Command::read(RawDocumentBuf::new()).unwrap_err().code, Code::COMMAND_NOT_FOUND.0);
        assert_eq!(Command::read(rawdoc! { "find": "c", "$db": "" }).unwrap_err().code, 40571);
    }
}
