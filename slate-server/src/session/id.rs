use std::fmt;

use bson::{Binary, RawDocument, RawDocumentBuf, cstr, rawdoc, spec::BinarySubtype};
use slate_core::raw::{Kind, Value};

use crate::failure::{Code, Failure, Result};

/// The id of a logical session: a UUID that the client has created, and the digest of the session's user. Sessions of different users are
/// different, even with the same UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId {
    uuid: [u8; 16],
    owner: Option<[u8; 32]>,
}

/// Formats the UUID.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bson::Uuid::from_bytes(self.uuid).fmt(f)
    }
}

impl SessionId {
    /// Reads an `lsid` of `owner`.
    ///
    /// # Errors
    /// Fails if its `id` is not a UUID, or on an unknown field.
    pub(crate) fn read(lsid: &RawDocument, owner: Option<[u8; 32]>) -> Result<Self> {
        let lsid = Value::new(Kind::Document, lsid.as_bytes()).as_document();
        let is_unknown = |name: &[u8]| !matches!(name, b"id" | b"txnNumber" | b"txnUUID" | b"uid");
        if let Some(field) = lsid.and_then(|lsid| lsid.elements().find(|field| is_unknown(field.name))) {
            return Err(Failure::unknown_field(&format!("lsid.{}", field.display_name())));
        }
        let id = lsid.and_then(|lsid| lsid.get("id")).ok_or_else(|| {
            Failure::new(Code(40414, "IDLFailedToParse"), "BSON field 'lsid.id' is missing but a required field")
        })?;
        // The bytes of a UUID follow their length and the subtype.
        let id = match (id.kind(), id.bytes().split_at_checked(5)) {
            (Kind::Binary, Some(([_, _, _, _, subtype], uuid))) if *subtype == u8::from(BinarySubtype::Uuid) => uuid,
            _ => return Err(Failure::mistyped("lsid.id", "UUID")),
        };
        let uuid = id
            .try_into()
            .map_err(|_| Failure::new(Code(207, "InvalidUUID"), "lsid.id has not the length of a UUID"))?;
        Ok(Self { uuid, owner })
    }

    /// Reads an `lsid` as the server shows it, with the digest of its user as `uid`; without a `uid`, the user is `owner`.
    ///
    /// # Errors
    /// Fails if its `id` is not a UUID, or its `uid` is not a digest.
    pub(crate) fn read_of_any(lsid: &RawDocument, owner: Option<[u8; 32]>) -> Result<Self> {
        let Some(uid) = lsid.get("uid")? else { return Self::read(lsid, owner) };
        let digest = uid.as_binary().and_then(|uid| uid.bytes.try_into().ok());
        Self::read(lsid, Some(digest.ok_or_else(|| Failure::mistyped("lsid.uid", "digest of 32 bytes"))?))
    }

    pub(crate) fn of(uuid: [u8; 16], owner: Option<[u8; 32]>) -> Self {
        Self { uuid, owner }
    }

    /// Creates the id of a new session of a user.
    pub(crate) fn new(owner: Option<[u8; 32]>) -> Self {
        Self { uuid: bson::Uuid::new().bytes(), owner }
    }

    /// Returns the digest of the user; `None` for a session without a login.
    pub(crate) fn owner(self) -> Option<[u8; 32]> {
        self.owner
    }

    /// Returns MongoDB's document of the id: `{id, uid}`, of which clients send only the `id`.
    pub(crate) fn document(self) -> RawDocumentBuf {
        let mut document = rawdoc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: self.uuid.to_vec() } };
        if let Some(owner) = self.owner {
            let owner = Binary { subtype: BinarySubtype::Generic, bytes: owner.to_vec() };
            document.append(cstr!("uid"), owner);
        }
        document
    }
}
