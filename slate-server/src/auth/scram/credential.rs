use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::{Mechanism, random};

/// What the database stores for a password: enough to verify it, not enough to log in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(super) iterations: u32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: Vec<u8>,
    pub(super) server_key: Vec<u8>,
}

impl Credential {
    /// Derives the keys of a prepared password with a new salt. Takes milliseconds.
    ///
    /// # Errors
    /// Fails if the system has no random bytes.
    pub(crate) fn derive(mechanism: Mechanism, prepared: &str) -> io::Result<Self> {
        let mut salt = random::<28>()?.to_vec();
        salt.truncate(mechanism.salt_length());
        Ok(Self::with_salt(mechanism, prepared, salt, mechanism.iterations()))
    }

    pub(super) fn with_salt(mechanism: Mechanism, prepared: &str, salt: Vec<u8>, iterations: u32) -> Self {
        let salted = mechanism.salted_password(prepared, &salt, iterations);
        let stored_key = mechanism.hash(&mechanism.hmac(&salted, &[b"Client Key"]));
        Self { iterations, salt, stored_key, server_key: mechanism.hmac(&salted, &[b"Server Key"]) }
    }

    /// Returns the apparent credential of an unknown user: the same salt for the same name, and keys that match no password.
    pub(crate) fn of_nobody(mechanism: Mechanism, secret: &[u8], name: &str) -> Self {
        let mut salt = mechanism.hmac(secret, &[b"salt", name.as_bytes()]);
        salt.truncate(mechanism.salt_length());
        let key = |purpose: &[u8]| mechanism.hmac(secret, &[purpose, name.as_bytes()]);
        Self { iterations: mechanism.iterations(), salt, stored_key: key(b"stored"), server_key: key(b"server") }
    }

    /// Reads MongoDB's document `{iterationCount, salt, storedKey, serverKey}`; `None` if it has another form.
    pub(crate) fn read(document: &RawDocument) -> Option<Self> {
        let bytes = |name| BASE64_STANDARD.decode(document.get_str(name).ok()?).ok();
        let iterations = u32::try_from(document.get_i32("iterationCount").ok()?).ok().filter(|count| *count > 0)?;
        let (salt, stored_key, server_key) = (bytes("salt")?, bytes("storedKey")?, bytes("serverKey")?);
        Some(Self { iterations, salt, stored_key, server_key })
    }

    pub(crate) fn document(&self) -> RawDocumentBuf {
        let text = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        rawdoc! {
            "iterationCount": i32::try_from(self.iterations).unwrap_or(i32::MAX),
            "salt": text(&self.salt),
            "storedKey": text(&self.stored_key),
            "serverKey": text(&self.server_key),
        }
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}
