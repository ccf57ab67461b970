use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use subtle::ConstantTimeEq;

use super::{Credential, Mechanism, random};

/// Maximum length of a client's message in bytes. MongoDB's messages have some hundred bytes.
const MAX_MESSAGE: usize = 4096;

/// The first message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientFirst<'m> {
    /// The header, which the client repeats, encoded, as `c=`.
    header: &'m str,
    /// The message without its header.
    bare: &'m str,
    pub(crate) user: String,
    nonce: &'m str,
}

/// An exchange after the server's first message.
#[derive(Debug)]
pub(crate) struct Exchange {
    mechanism: Mechanism,
    credential: Credential,
    /// The expected `c=` of the client's last message.
    channel: String,
    nonce: String,
    /// The first messages of client and server, each followed by a comma.
    messages: String,
}

impl<'m> ClientFirst<'m> {
    /// Parses `n,,n=user,r=nonce`.
    ///
    /// # Errors
    /// Fails with a reason if the message is malformed, or requests channel binding or another user.
    pub(crate) fn parse(payload: &'m [u8]) -> Result<Self, &'static str> {
        let text = Some(payload).filter(|payload| payload.len() <= MAX_MESSAGE);
        let text = text.and_then(|payload| std::str::from_utf8(payload).ok()).ok_or("the message is no text")?;
        let mut parts = text.splitn(3, ',');
        let (Some(binding), Some(authorized), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("Incorrect number of arguments for first SCRAM client message");
        };
        match binding {
            "n" | "y" => {}
            binding if binding.starts_with("p=") => return Err("Server does not support channel binding"),
            _ => return Err("Incorrect SCRAM client message prefix"),
        }
        let header = text.get(..text.len() - bare.len()).unwrap_or_default();
        let mut fields = bare.split(',');
        let user = fields.next().and_then(|field| field.strip_prefix("n=")).ok_or("Invalid SCRAM user name")?;
        let nonce = fields.next().and_then(|field| field.strip_prefix("r=")).ok_or("Invalid SCRAM client nonce")?;
        let user = unescaped(user).filter(|user| !user.is_empty()).ok_or("Invalid SCRAM user name")?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("Invalid SCRAM client nonce");
        }
        if !authorized.is_empty() && authorized.strip_prefix("a=").and_then(unescaped).as_ref() != Some(&user) {
            return Err("the user to act as is not the user who logs in");
        }
        Ok(Self { header, bare, user, nonce })
    }
}

/// Decodes `=2C` and `=3D`; `None` for another escape.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('=');
    out.push_str(parts.next()?);
    for part in parts {
        let (escaped, rest) = part.split_at_checked(2)?;
        out.push(match escaped {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}

impl Exchange {
    /// Begins an exchange. Returns the server's first message.
    ///
    /// # Errors
    /// Fails if the system has no random bytes.
    pub(crate) fn begin(
        mechanism: Mechanism,
        first: &ClientFirst<'_>,
        credential: Credential,
    ) -> io::Result<(Self, String)> {
        let own = BASE64_STANDARD.encode(random::<24>()?);
        Ok(Self::with_nonce(mechanism, first, credential, &own))
    }

    fn with_nonce(mechanism: Mechanism, first: &ClientFirst<'_>, credential: Credential, own: &str) -> (Self, String) {
        let nonce = format!("{}{own}", first.nonce);
        let reply = format!("r={nonce},s={},i={}", BASE64_STANDARD.encode(&credential.salt), credential.iterations);
        let messages = format!("{},{reply},", first.bare);
        let channel = BASE64_STANDARD.encode(first.header);
        (Self { mechanism, credential, channel, nonce, messages }, reply)
    }

    /// Checks the client's last message. Returns the server's last message.
    ///
    /// # Errors
    /// Fails if the proof or another field is wrong, with a reason that must not be sent to the client.
    pub(crate) fn finish(self, payload: &[u8]) -> Result<String, &'static str> {
        let text = Some(payload).filter(|payload| payload.len() <= MAX_MESSAGE);
        let text = text.and_then(|payload| std::str::from_utf8(payload).ok()).ok_or("the message is no text")?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or("Incorrect SCRAM client proof")?;
        let mut fields = without_proof.split(',');
        let mut field = |prefix| fields.next().and_then(|field| field.strip_prefix(prefix));
        if field("c=") != Some(&*self.channel) {
            return Err("Invalid channel binding");
        }
        if field("r=") != Some(&*self.nonce) {
            return Err("Incorrect SCRAM client nonce");
        }
        let proof = BASE64_STANDARD.decode(proof).map_err(|_| "Incorrect SCRAM client proof")?;
        let messages = [self.messages.as_bytes(), without_proof.as_bytes()];
        let signature = self.mechanism.hmac(&self.credential.stored_key, &messages);
        if proof.len() != signature.len() {
            return Err("Incorrect SCRAM client proof");
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, signature)| proof ^ signature).collect();
        if !bool::from(self.mechanism.hash(&client_key).ct_eq(&self.credential.stored_key)) {
            return Err("SCRAM authentication failed, storedKey mismatch");
        }
        let verifier = self.mechanism.hmac(&self.credential.server_key, &messages);
        Ok(format!("v={}", BASE64_STANDARD.encode(verifier)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 5802, section 5, and RFC 7677, section 3.
    #[test]
    fn the_examples_of_the_standards_hold() {
        let examples = [
            (
                Mechanism::Sha1,
                "QSXCR+Q6sek8bf92",
                "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
                "3rfcNHYJY1ZVvWVs7j",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                Mechanism::Sha256,
                "W22ZaJ0SNY7soEsUEjb6gQ==",
                "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ];
        for (mechanism, salt, first, nonce, reply, last, verdict) in examples {
            let salt = BASE64_STANDARD.decode(salt).unwrap();
            let credential = Credential::with_salt(mechanism, "pencil", salt, 4096);
            assert_eq!(Credential::read(&credential.document()), Some(credential.clone()));
            let begin = |credential: &Credential| {
                let first = ClientFirst::parse(first.as_bytes()).unwrap();
                assert_eq!(first.user, "user");
                Exchange::with_nonce(mechanism, &first, credential.clone(), nonce)
            };
            let (exchange, sent) = begin(&credential);
            assert_eq!(sent, reply);
            assert_eq!(exchange.finish(last.as_bytes()).unwrap(), verdict);
            // Changes one character of the nonce, of the proof and of the channel, and uses the key of another password.
            for (from, to) in [("r=", "r=x"), ("p=", "p=A"), ("c=biws", "c=eSws")] {
                assert!(begin(&credential).0.finish(last.replacen(from, to, 1).as_bytes()).is_err());
            }
            let other = Credential::with_salt(mechanism, "pen", credential.salt.clone(), 4096);
            assert!(begin(&other).0.finish(last.as_bytes()).is_err());
            let nobody = Credential::of_nobody(mechanism, b"secret", "user");
            assert!(nobody == Credential::of_nobody(mechanism, b"secret", "user"));
            assert!(begin(&nobody).0.finish(last.as_bytes()).is_err());
        }
    }

    #[test]
    fn first_messages_are_read_as_the_standard_says() {
        let user = |message: &'static str| ClientFirst::parse(message.as_bytes()).map(|first| first.user);
        assert_eq!(user("n,,n=a=2Cb=3Dc,r=x").unwrap(), "a,b=c");
        assert_eq!(user("y,a=ada,n=ada,r=x,ext=1").unwrap(), "ada");
        for wrong in [
            "",
            "n,,",
            "n,,n=ada",
            "n,,r=x,n=ada",
            "p=tls-unique,,n=ada,r=x",
            "x,,n=ada,r=x",
            "n,a=bob,n=ada,r=x",
            "n,,n=,r=x",
            "n,,n=ada,r=",
            "n,,n=a=2,r=x",
            "n,,n=a=41,r=x",
            "n,,n=ada,r=x y",
        ] {
            assert!(user(wrong).is_err(), "{wrong}");
        }
        assert!(ClientFirst::parse(&[b'n', b',', b',', 0xff]).is_err());
    }

    #[test]
    fn passwords_are_prepared_as_mongodb_does() {
        // The digest and the SASLprep of the specification of drivers.
        assert_eq!(Mechanism::Sha1.prepare("user", "pencil").unwrap(), "1c33006ec1ffd90f9cadcbcc0e118200");
        assert_eq!(Mechanism::Sha256.prepare("user", "I\u{ad}X").unwrap(), "IX");
        assert_eq!(Mechanism::Sha256.prepare("user", "\u{2168}").unwrap(), "IX");
        assert!(Mechanism::Sha256.prepare("user", "\u{7}").is_err());
        assert!(Mechanism::Sha256.prepare("user", "").is_err());
    }

    proptest! {
        #[test]
        fn no_message_makes_the_exchange_panic(first in prop::collection::vec(any::<u8>(), 0..60), text in "[nyp,=ra2C3Dx]{0,30}", last in "[crp=biws,x+/]{0,60}") {
            let _ = ClientFirst::parse(&first);
            if let Ok(first) = ClientFirst::parse(text.as_bytes()) {
                let nobody = Credential::of_nobody(Mechanism::Sha1, b"", &first.user);
                let (exchange, _) = Exchange::with_nonce(Mechanism::Sha1, &first, nobody, "y");
                let _ = exchange.finish(last.as_bytes());
            }
        }
    }
}
