use std::fmt;

use bson::{Binary, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc, spec::BinarySubtype};
use sha2::{Digest, Sha256};

use super::{Credential, Mechanism, Privilege, Role};
use crate::failure::{Code, Failure, Result};

/// A user's name and the database that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UserName {
    pub(crate) name: String,
    pub(crate) database: String,
}

/// A user who may log in, and what the user may do.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: UserName,
    /// Distinguishes a user from a later one of the same name.
    pub(crate) id: Vec<u8>,
    /// Identifies the user in sessions and cursors: a digest of the name and the id, so that a later user of the same name inherits none.
    pub(crate) digest: [u8; 32],
    pub(crate) roles: Vec<Role>,
    pub(crate) privileges: Vec<Privilege>,
    credentials: Vec<(Mechanism, Credential)>,
    /// Whether the user's document restricts logins to addresses. Slate does not check such restrictions, so the user cannot log in.
    is_restricted: bool,
}

impl UserName {
    /// The database of users who log in with certificates.
    pub(crate) const EXTERNAL: &str = "$external";

    pub(crate) fn new(name: impl Into<String>, database: impl Into<String>) -> Self {
        Self { name: name.into(), database: database.into() }
    }

    /// Reads a user from a command on `database`: `"name"` or `{user, db}`.
    pub(crate) fn read(value: RawBsonRef<'_>, database: &str) -> Result<Self> {
        let refused = || Failure::new(Code::BAD_VALUE, "User and role names must be either strings or objects");
        match value {
            RawBsonRef::String(name) => Ok(Self::new(name, database)),
            RawBsonRef::Document(document) => {
                let field = |name| document.get_str(name).map_err(|_| refused());
                Ok(Self::new(field("user")?, field("db")?))
            }
            _ => Err(refused()),
        }
    }

    /// Returns the `_id` of the user's document, as in MongoDB.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// Returns the filter for the user's document. The `_id` alone is not unique: with a dot in the database's name it equals that of another user.
    pub(crate) fn filter(&self) -> RawDocumentBuf {
        rawdoc! { "_id": self.key(), "user": &*self.name, "db": &*self.database }
    }

    pub(crate) fn document(&self) -> RawDocumentBuf {
        rawdoc! { "user": &*self.name, "db": &*self.database }
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.database)
    }
}

impl User {
    /// Reads a document of `admin.system.users`.
    ///
    /// # Errors
    /// Fails if the document does not have MongoDB's form.
    pub(crate) fn read(document: &RawDocument) -> Result<Self> {
        let name = UserName::new(document.get_str("user")?, document.get_str("db")?);
        let id = document.get_binary("userId").map(|id| id.bytes.to_vec()).unwrap_or_default();
        let mut roles = Vec::new();
        for role in document.get_array("roles")? {
            if let RawBsonRef::Document(role) = role? {
                roles.push(Role::new(role.get_str("role")?, role.get_str("db")?));
            }
        }
        let mut privileges = Vec::new();
        roles.iter().for_each(|role| role.add_to(&mut privileges));
        let stored = document.get_document("credentials")?;
        let credential =
            |mechanism: Mechanism| Some((mechanism, Credential::read(stored.get_document(mechanism.name()).ok()?)?));
        let credentials = Mechanism::ALL.into_iter().filter_map(credential).collect();
        let restrictions = document.get_array("authenticationRestrictions");
        let is_restricted = restrictions.is_ok_and(|restrictions| restrictions.into_iter().next().is_some());
        let digest = Sha256::new().chain_update(name.to_string()).chain_update(&id).finalize().into();
        Ok(Self { name, id, digest, roles, privileges, credentials, is_restricted })
    }

    /// Returns the credential for a mechanism; `None` if the user may not log in with it.
    pub(crate) fn credential(&self, mechanism: Mechanism) -> Option<&Credential> {
        let found = self.credentials.iter().find(|(known, _)| *known == mechanism);
        found.map(|(_, credential)| credential).filter(|_| !self.is_restricted)
    }

    /// Whether the user still has every role of `before`.
    pub(crate) fn keeps_roles_of(&self, before: &Self) -> bool {
        before.roles.iter().all(|role| self.roles.contains(role))
    }

    /// Whether the user may log in with a certificate.
    pub(crate) fn is_external(&self) -> bool {
        self.name.database == UserName::EXTERNAL && !self.is_restricted
    }

    pub(crate) fn role_documents(&self) -> RawArrayBuf {
        self.roles.iter().map(Role::document).collect()
    }

    pub(crate) fn privilege_documents(&self) -> RawArrayBuf {
        self.privileges.iter().map(Privilege::describe).collect()
    }
}

/// The fields of a new user, or the changes of one.
#[derive(Debug, Default)]
pub(crate) struct UserFields {
    /// The credentials by mechanism; `None` leaves them unchanged.
    pub(crate) credentials: Option<Vec<(Mechanism, Credential)>>,
    pub(crate) roles: Option<Vec<Role>>,
    pub(crate) custom_data: Option<RawDocumentBuf>,
}

impl UserFields {
    /// Derives the keys of a password on a thread that may block. `digests` is whether the password is given in plain text, so that its digest for
    /// SCRAM-SHA-1 must be computed.
    ///
    /// # Errors
    /// Fails if the password cannot be used.
    pub(crate) async fn derive(
        name: &UserName,
        password: &str,
        digests: bool,
        mechanisms: Vec<Mechanism>,
    ) -> Result<Vec<(Mechanism, Credential)>> {
        if !digests && mechanisms.contains(&Mechanism::Sha256) {
            return Err(Failure::new(Code::BAD_VALUE, "Use of SCRAM-SHA-256 requires undigested passwords"));
        }
        let (user, password) = (name.name.clone(), password.to_owned());
        let derive = move || derive(&user, &password, digests, &mechanisms);
        let interrupted = |_| Failure::new(Code(11600, "InterruptedAtShutdown"), "the server shuts down");
        tokio::task::spawn_blocking(derive).await.map_err(interrupted)?
    }

    /// Returns the document for a new user.
    pub(crate) fn document(&self, name: &UserName) -> RawDocumentBuf {
        let id = Binary { subtype: BinarySubtype::Uuid, bytes: bson::Uuid::new().bytes().to_vec() };
        let mut document = rawdoc! {
            "_id": name.key(),
            "userId": id,
            "user": &*name.name,
            "db": &*name.database,
        };
        let external = || rawdoc! { "external": true };
        document.append(cstr!("credentials"), self.credential_documents().unwrap_or_else(external));
        document.append(cstr!("roles"), self.role_documents().unwrap_or_default());
        if let Some(data) = &self.custom_data {
            document.append(cstr!("customData"), data.clone());
        }
        document
    }

    /// Returns the fields that are not `None`, for `$set`.
    pub(crate) fn changes(&self) -> RawDocumentBuf {
        let mut set = RawDocumentBuf::new();
        let parts = [
            (cstr!("credentials"), self.credential_documents().map(RawBson::Document)),
            (cstr!("roles"), self.role_documents().map(RawBson::Array)),
            (cstr!("customData"), self.custom_data.clone().map(RawBson::Document)),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                set.append(name, value);
            }
        }
        set
    }

    fn credential_documents(&self) -> Option<RawDocumentBuf> {
        let credentials = self.credentials.as_ref()?;
        let mut documents = RawDocumentBuf::new();
        for (mechanism, credential) in credentials {
            let name = match mechanism {
                Mechanism::Sha1 => cstr!("SCRAM-SHA-1"),
                Mechanism::Sha256 => cstr!("SCRAM-SHA-256"),
            };
            documents.append(name, credential.document());
        }
        Some(documents)
    }

    fn role_documents(&self) -> Option<RawArrayBuf> {
        Some(self.roles.as_ref()?.iter().map(Role::document).collect())
    }
}

/// Derives the keys of a password.
fn derive(user: &str, password: &str, digests: bool, mechanisms: &[Mechanism]) -> Result<Vec<(Mechanism, Credential)>> {
    let refused = |reason: &str| Failure::new(Code::BAD_VALUE, reason);
    if password.is_empty() {
        return Err(refused("Password cannot be empty"));
    }
    let credential = |mechanism: &Mechanism| {
        let prepared = if digests { mechanism.prepare(user, password).map_err(refused)? } else { password.into() };
        let credential = Credential::derive(*mechanism, &prepared);
        Ok((*mechanism, credential.map_err(|error| Failure::new(Code(1, "InternalError"), error.to_string()))?))
    };
    mechanisms.iter().map(credential).collect()
}
