use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A SCRAM mechanism, named by its hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    Sha1,
    Sha256,
}

impl Mechanism {
    pub(crate) const ALL: [Self; 2] = [Self::Sha1, Self::Sha256];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SCRAM-SHA-1",
            Self::Sha256 => "SCRAM-SHA-256",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// The number of iterations to derive keys from a new password: the default of MongoDB's parameters `scramIterationCount` and
    /// `scramSHA256IterationCount`.
    pub(crate) fn iterations(self) -> u32 {
        match self {
            Self::Sha1 => 10_000,
            Self::Sha256 => 15_000,
        }
    }

    /// The length of a salt in bytes, as in MongoDB: that of a hash minus the four bytes of the counter that PBKDF2 appends.
    pub(super) fn salt_length(self) -> usize {
        match self {
            Self::Sha1 => 16,
            Self::Sha256 => 28,
        }
    }

    /// Prepares a password: returns the text from which the keys are derived.
    ///
    /// # Errors
    /// Fails with the reason why the password cannot be used.
    pub(crate) fn prepare(self, user: &str, password: &str) -> Result<String, &'static str> {
        match self {
            Self::Sha1 => Ok(digest_password(user, password)),
            Self::Sha256 => {
                let prepared = stringprep::saslprep(password)
                    .map_err(|_| "the password contains a character that SASLprep does not allow")?;
                if prepared.is_empty() { Err("Password cannot be empty") } else { Ok(prepared.into_owned()) }
            }
        }
    }

    pub(super) fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
        }
    }

    pub(super) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        fn of<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            // This cannot fail: a key of HMAC may have any length.
            let Ok(mut mac) = <M as Mac>::new_from_slice(key) else { return Vec::new() };
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Self::Sha1 => of::<Hmac<Sha1>>(key, parts),
            Self::Sha256 => of::<Hmac<Sha256>>(key, parts),
        }
    }

    /// Returns the `SaltedPassword` of RFC 5802. Takes milliseconds.
    pub(super) fn salted_password(self, password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        let password = password.as_bytes();
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations).to_vec(),
            Self::Sha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec(),
        }
    }
}

/// Returns the digest that drivers send instead of a password for SCRAM-SHA-1.
fn digest_password(user: &str, password: &str) -> String {
    let digest = Md5::digest(format!("{user}:mongo:{password}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
