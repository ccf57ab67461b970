use std::{sync::Arc, time::Duration};

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, raw::RawElement, rawdoc};

use crate::failure::{Code, Failure, Result};

/// A command as it has arrived, with the fields that the server itself understands.
#[derive(Debug)]
pub(crate) struct Command {
    document: Arc<RawDocumentBuf>,
    pub(crate) name: String,
    pub(crate) database: String,
    /// The session, if the command belongs to one.
    pub(crate) session: Option<RawDocumentBuf>,
    pub(crate) number: Option<i64>,
    /// `autocommit: false`: the command belongs to a transaction.
    pub(crate) in_transaction: bool,
    pub(crate) starts_transaction: bool,
    pub(crate) read_concern: Option<ReadConcern>,
    /// The time of the cluster that the client knows.
    pub(crate) cluster_time: Option<Timestamp>,
    pub(crate) has_write_concern: bool,
    /// Whether the command has a field of the stable API.
    pub(crate) declares_api: bool,
    /// Why a write concern cannot be satisfied. The write is done all the same, as in MongoDB.
    pub(crate) unsatisfied: Option<Unsatisfied>,
}

/// The parts of `readConcern` that need a server: the rest is checked by the library.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadConcern {
    pub(crate) level: Option<String>,
    pub(crate) at: Option<Timestamp>,
    has_time: bool,
}

/// A write concern that no replica set of one member satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsatisfied {
    /// More members than there are.
    Members,
    /// A mode that the set does not define.
    Mode,
}

/// The longest name of a database or a collection that is shown, in bytes.
const MAX_NAME: usize = 255;

/// Returns the beginning of a text, of at most `most` bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
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
        let mut elements = document.iter_elements();
        let first = elements.next().ok_or_else(|| Failure::new(Code::COMMAND_NOT_FOUND, "no command"))??;
        let mut command = Self {
            name: first.key().as_str().to_owned(),
            document: Arc::default(),
            database: String::new(),
            session: None,
            number: None,
            in_transaction: false,
            starts_transaction: false,
            read_concern: None,
            cluster_time: None,
            has_write_concern: false,
            declares_api: false,
            unsatisfied: None,
        };
        for element in elements {
            command.read_field(&element?)?;
        }
        if command.database.is_empty() {
            return Err(Failure::new(Code(40571, "Location40571"), "OP_MSG requests require a $db argument"));
        }
        command.document = Arc::new(document);
        Ok(command)
    }

    fn read_field(&mut self, element: &RawElement<'_>) -> Result<()> {
        let name = element.key().as_str();
        let mistyped = |expected| Failure::mistyped(&format!("{}.{name}", self.name), expected);
        match name {
            "$db" => self.database = element.value()?.as_str().ok_or_else(|| mistyped("string"))?.to_owned(),
            "lsid" => self.session = Some(element.value()?.as_document().ok_or_else(|| mistyped("object"))?.to_owned()),
            "txnNumber" => self.number = Some(element.value()?.as_i64().ok_or_else(|| mistyped("long"))?),
            "autocommit" => {
                self.in_transaction = !element.value()?.as_bool().ok_or_else(|| mistyped("bool"))?;
                if !self.in_transaction {
                    let message = "autocommit must be false for a multi-document transaction";
                    return Err(Failure::new(Code::INVALID_OPTIONS, message));
                }
            }
            "startTransaction" => {
                self.starts_transaction = element.value()?.as_bool().ok_or_else(|| mistyped("bool"))?;
                if !self.starts_transaction {
                    let message = "Specifying startTransaction=false is not allowed.";
                    return Err(Failure::new(Code::INVALID_OPTIONS, message));
                }
            }
            "readConcern" => {
                let concern = element.value()?;
                let concern = concern.as_document().ok_or_else(|| mistyped("object"))?;
                self.read_concern = Some(ReadConcern {
                    level: concern.get_str("level").ok().map(str::to_owned),
                    at: concern.get_timestamp("atClusterTime").ok(),
                    has_time: concern.get("atClusterTime")?.is_some() || concern.get("afterClusterTime")?.is_some(),
                });
            }
            "$clusterTime" => {
                let time = element.value()?;
                let time = time.as_document().ok_or_else(|| mistyped("object"))?;
                self.cluster_time = time.get_timestamp("clusterTime").ok();
            }
            "apiVersion" | "apiStrict" | "apiDeprecationErrors" => self.declares_api = true,
            "writeConcern" => {
                self.has_write_concern = true;
                self.unsatisfied = element.value()?.as_document().and_then(Unsatisfied::read);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the whole command.
    pub(crate) fn document(&self) -> &RawDocument {
        &self.document
    }

    /// Returns a field.
    pub(crate) fn get(&self, name: &str) -> Result<Option<RawBsonRef<'_>>> {
        Ok(self.document.get(name)?)
    }

    /// Whether the reply describes a plan.
    pub(crate) fn explains(&self) -> bool {
        self.name == "explain"
            || (self.name == "aggregate" && matches!(self.get("explain"), Ok(Some(RawBsonRef::Boolean(true)))))
    }

    /// Returns what the `hello` of a driver says about the client.
    pub(crate) fn client_metadata(&self) -> Option<&RawDocument> {
        let is_hello = matches!(&*self.name, "hello" | "isMaster" | "ismaster");
        if is_hello { self.document.get_document("client").ok() } else { None }
    }

    /// Returns `maxTimeMS`; `None` if there is no limit.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        let millis = match self.get("maxTimeMS").ok()?? {
            RawBsonRef::Int32(millis) => i64::from(millis),
            RawBsonRef::Int64(millis) => millis,
            _ => return None,
        };
        u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
    }

    /// Returns the collection that the command reads or writes, if it is about one.
    pub(crate) fn collection(&self) -> Option<&str> {
        let document: &RawDocument = match &*self.name {
            // Its own collection is that of the command within.
            "explain" => self.document.get_document("explain").ok()?,
            _ => &self.document,
        };
        let (name, target) = document.iter().next()?.ok()?;
        let target = match name.as_str() {
            "getMore" => document.get("collection").ok()??,
            "aggregate" | "collMod" | "collStats" | "collstats" | "compact" | "count" | "create" | "createIndexes"
            | "delete" | "deleteIndexes" | "distinct" | "drop" | "dropIndexes" | "find" | "findAndModify"
            | "findandmodify" | "insert" | "killCursors" | "listIndexes" | "update" | "validate" => target,
            _ => return None,
        };
        target.as_str()
    }

    /// Returns the full name of the collection, or what MongoDB writes in its place for a command that is about none. Of a name that is
    /// too long for a collection it is the beginning.
    pub(crate) fn namespace(&self) -> String {
        let target = match (self.collection(), &*self.name) {
            (Some(collection), _) => collection,
            (None, "aggregate") => "$cmd.aggregate",
            (None, _) => "$cmd",
        };
        let (database, target) = (beginning(&self.database, MAX_NAME), beginning(target, MAX_NAME));
        format!("{database}.{target}")
    }

    /// Returns the command for the library: without the times of its read concern, which are satisfied already, in a transaction without
    /// the read concern, which concerns the transaction, and without a write concern that only a larger set can satisfy.
    pub(crate) fn for_library(&self) -> Result<Arc<RawDocumentBuf>> {
        let drops_concern = self.in_transaction || self.name == "getMore";
        let concern = self.read_concern.as_ref().filter(|concern| drops_concern || concern.has_time);
        if concern.is_none() && self.unsatisfied.is_none() {
            return Ok(Arc::clone(&self.document));
        }
        let mut copy = RawDocumentBuf::new();
        for element in self.document.iter() {
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
