use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc, spec::BinarySubtype};

use crate::failure::{Code, Failure, Result};

/// The id of a logical session: a UUID that the client has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId([u8; 16]);

impl SessionId {
    /// Reads `lsid`.
    ///
    /// # Errors
    /// Fails if its `id` is not a UUID.
    pub(crate) fn read(lsid: &RawDocument) -> Result<Self> {
        let id = lsid.get("id")?.ok_or_else(|| {
            Failure::new(Code(40414, "IDLFailedToParse"), "BSON field 'lsid.id' is missing but a required field")
        })?;
        let id = id.as_binary().filter(|id| id.subtype == BinarySubtype::Uuid);
        let id = id.ok_or_else(|| Failure::mistyped("lsid.id", "UUID"))?;
        let bytes = id
            .bytes
            .try_into()
            .map_err(|_| Failure::new(Code(207, "InvalidUUID"), "lsid.id has not the length of a UUID"))?;
        Ok(Self(bytes))
    }

    /// Makes an id.
    pub(crate) fn new() -> Self {
        Self(bson::Uuid::new().bytes())
    }

    /// Returns the document that clients send.
    pub(crate) fn document(self) -> RawDocumentBuf {
        rawdoc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: self.0.to_vec() } }
    }
}
