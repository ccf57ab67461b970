use std::fmt::Write;

/// The attribute names that RFC 2253 and OpenSSL use, by the bytes of their object identifiers.
const NAMES: [(&[u8], &str); 10] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const IDENTIFIER: u8 = 0x06;
/// The tag of the version of a certificate, which may be absent.
const VERSION: u8 = 0xa0;

/// Returns the subject of a certificate in the form of RFC 2253, which is the user's name in MongoDB: `CN=ada,OU=clients,O=Slate`. `None` if it has
/// unknown attributes or a value that is not text: no user has such a name.
///
/// ```text
/// Certificate  SEQUENCE { tbs SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, … }, … }
/// Name         SEQUENCE { SET { SEQUENCE { object identifier, string }, … }, … }
/// ```
pub(super) fn of(certificate: &[u8]) -> Option<String> {
    let mut tbs = Der(Der(Der(certificate).expect(SEQUENCE)?).expect(SEQUENCE)?);
    if tbs.0.first() == Some(&VERSION) {
        tbs.next()?;
    }
    for _ in ["serial", "algorithm", "issuer", "validity"] {
        tbs.next()?;
    }
    let mut subject = Der(tbs.expect(SEQUENCE)?);
    let mut parts = Vec::new();
    while !subject.0.is_empty() {
        let mut set = Der(subject.expect(SET)?);
        let mut part = String::new();
        while !set.0.is_empty() {
            let mut attribute = Der(set.expect(SEQUENCE)?);
            let identifier = attribute.expect(IDENTIFIER)?;
            let name = NAMES.iter().find(|(known, _)| *known == identifier)?.1;
            let (tag, value) = attribute.next()?;
            if !part.is_empty() {
                part.push('+');
            }
            write!(part, "{name}=").ok()?;
            escape(&text(tag, value)?, &mut part);
        }
        parts.push(part);
    }
    parts.reverse();
    Some(parts.join(",")).filter(|subject| !subject.is_empty())
}

/// Returns the text of an ASN.1 string; `None` for another type.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        // UTF8String, NumericString, PrintableString, IA5String
        0x0c | 0x12 | 0x13 | 0x16 => std::str::from_utf8(value).ok().map(str::to_owned),
        // BMPString
        0x1e => {
            let units: Vec<u16> =
                value.chunks(2).map(|pair| Some(u16::from_be_bytes(pair.try_into().ok()?))).collect::<Option<_>>()?;
            String::from_utf16(&units).ok()
        }
        _ => None,
    }
}

/// Appends a value with the escapes of RFC 2253.
fn escape(value: &str, out: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (place, character) in value.chars().enumerate() {
        let at_end = place == 0 || place == last;
        let is_special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';');
        if is_special || (character == ' ' && at_end) || (character == '#' && place == 0) {
            out.push('\\');
        }
        out.push(character);
    }
}

/// A sequence of values in DER encoding.
struct Der<'d>(&'d [u8]);

impl<'d> Der<'d> {
    /// Reads the next value: its tag and its content. `None` at the end or for damaged bytes.
    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // The low bits are the number of bytes of the length.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// Reads the content of the next value; `None` if its tag is another one.
    fn expect(&mut self, tag: u8) -> Option<&'d [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

    use super::*;

    fn client() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(include_bytes!("../../tests/certificates/client-and-key.pem")).unwrap()
    }

    #[test]
    fn a_subject_is_written_as_openssl_does() {
        assert_eq!(of(&client()).unwrap(), "CN=ada,OU=clients,O=Slate\\, tests,C=DE");
    }

    #[test]
    fn values_are_escaped() {
        for (value, expected) in [("#a", "\\#a"), (" a ", "\\ a\\ "), ("a b", "a b"), ("ä+\"", "ä\\+\\\"")] {
            let mut out = String::new();
            escape(value, &mut out);
            assert_eq!(out, expected);
        }
    }

    proptest! {
        #[test]
        fn no_certificate_panics(place in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
            let mut certificate = client().to_vec();
            *place.get_mut(&mut certificate) = byte;
            let _ = of(&certificate[..end.index(certificate.len())]);
            let _ = of(&certificate);
        }
    }
}
