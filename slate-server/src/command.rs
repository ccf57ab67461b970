use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, raw::RawElement};

use crate::failure::{Code, Failure, Result};

/// A command as it has arrived, with the fields that the server itself understands.
#[derive(Debug)]
pub(crate) struct Command {
    document: RawDocumentBuf,
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
    /// The client does not read the result of the write (`w: 0`).
    pub(crate) has_write_concern: bool,
}

/// The parts of `readConcern` that need a server: the rest is checked by the library.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadConcern {
    pub(crate) level: Option<String>,
    pub(crate) at: Option<Timestamp>,
    has_time: bool,
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
            document: RawDocumentBuf::new(),
            database: String::new(),
            session: None,
            number: None,
            in_transaction: false,
            starts_transaction: false,
            read_concern: None,
            cluster_time: None,
            has_write_concern: false,
        };
        for element in elements {
            command.read_field(&element?)?;
        }
        command.document = document;
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
            "writeConcern" => self.has_write_concern = true,
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

    /// Returns the command for the library: without the times of its read concern, which are satisfied already, and in a transaction
    /// without the read concern, which concerns the transaction.
    pub(crate) fn for_library(&self) -> Result<RawDocumentBuf> {
        let Some(concern) = self.read_concern.as_ref().filter(|concern| self.in_transaction || concern.has_time) else {
            return Ok(self.document.clone());
        };
        let mut copy = RawDocumentBuf::new();
        for element in self.document.iter() {
            let (name, value) = element?;
            match value {
                RawBsonRef::Document(_) if name == "readConcern" && self.in_transaction => {}
                RawBsonRef::Document(document) if name == "readConcern" && concern.has_time => {
                    let mut kept = RawDocumentBuf::new();
                    for (name, value) in document.iter().flatten() {
                        if !matches!(name.as_str(), "atClusterTime" | "afterClusterTime") {
                            kept.append(name, value);
                        }
                    }
                    copy.append(name, kept);
                }
                value => copy.append(name, value),
            }
        }
        Ok(copy)
    }
}
