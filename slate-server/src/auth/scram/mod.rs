//! SCRAM (RFC 5802, RFC 7677): the client proves that it knows the password, and the server that it knows the user, without the password on
//! the wire or in the database.
//!
//! ```text
//! client first   n,,n=user,r=nonce
//! server first   r=nonce+more,s=salt,i=iterations
//! client final   c=biws,r=nonce+more,p=proof          proof = ClientKey xor HMAC(StoredKey, messages)
//! server final   v=signature                          HMAC(ServerKey, messages)
//!
//! SaltedPassword = PBKDF2(password, salt, iterations)
//! ClientKey = HMAC(SaltedPassword, "Client Key")      StoredKey = H(ClientKey)
//! ServerKey = HMAC(SaltedPassword, "Server Key")
//! ```
//!
//! As in MongoDB, the password of SCRAM-SHA-1 is the hexadecimal MD5 of `user:mongo:password`, and that of SCRAM-SHA-256 is prepared by
//! SASLprep. Keys are derived when a password is set; a login costs the server four hashes.

mod credential;
mod exchange;
mod mechanism;

pub(crate) use credential::Credential;
pub(crate) use exchange::{ClientFirst, Exchange};
pub(crate) use mechanism::Mechanism;

/// Fills a buffer with random bytes of the system.
///
/// # Errors
/// Fails if the system has none.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}
