use std::path::PathBuf;

use crate::{Context, Error, Result};

/// Maximum length of a database's name, in bytes.
const MAX_NAME: usize = 64;

/// Where a database is: the placement drivers of a cluster, and its name there.
///
/// Written as a URL: `tikv://pd1:2379,pd2:2379/shop`, with TLS `tikv://pd1:2379/shop?ca=ca.pem&cert=client.pem&key=client.key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) drivers: Vec<String>,
    pub(super) database: String,
    pub(super) tls: Option<Tls>,
}

/// The files for TLS: certificate authority, client certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) authority: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`Missing`](Error::Missing): the text is not such a URL; the message says why.
    pub fn parse(url: &str) -> Result<Self> {
        let wrong = |what: &str| {
            let text =
                format!("{url}: {what}; expected tikv://HOST:PORT[,HOST:PORT]/DATABASE[?ca=FILE&cert=FILE&key=FILE]");
            Error::Missing(Box::new(Context::new(text)))
        };
        let rest = url.strip_prefix("tikv://").ok_or_else(|| wrong("is no URL of TiKV"))?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (drivers, database) = rest.split_once('/').ok_or_else(|| wrong("names no database"))?;
        let drivers: Vec<String> = drivers.split(',').map(String::from).collect();
        let has_port = |driver: &String| {
            driver.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if !drivers.iter().all(has_port) {
            return Err(wrong("has a placement driver without host or port"));
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if database.is_empty() || database.len() > MAX_NAME || !database.chars().all(is_of_name) {
            return Err(wrong("the name of a database has 1 to 64 letters, digits, '-', '_' and '.'"));
        }
        let tls =
            query.map(|query| Tls::parse(query).ok_or_else(|| wrong("TLS takes ca, cert and key"))).transpose()?;
        Ok(Self { drivers, database: database.into(), tls })
    }
}

impl Tls {
    fn parse(query: &str) -> Option<Self> {
        let (mut authority, mut certificate, mut key) = (None, None, None);
        for pair in query.split('&') {
            match pair.split_once('=')? {
                ("ca", file) => authority = Some(file),
                ("cert", file) => certificate = Some(file),
                ("key", file) => key = Some(file),
                _ => return None,
            }
        }
        Some(Self { authority: authority?.into(), certificate: certificate?.into(), key: key?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_drivers_a_database_and_perhaps_certificates() {
        let address = Address::parse("tikv://pd1:2379,10.0.0.2:2379/shop").unwrap();
        assert_eq!((address.drivers, &*address.database), (vec!["pd1:2379".into(), "10.0.0.2:2379".into()], "shop"));
        let tls = Address::parse("tikv://pd1:2379/shop?ca=/a&cert=/b&key=/c").unwrap().tls.unwrap();
        assert_eq!((tls.authority, tls.certificate, tls.key), ("/a".into(), "/b".into(), "/c".into()));
        let wrong = ["redb:x", "tikv://pd1:2379", "tikv://pd1/shop", "tikv://pd1:2379/", "tikv:///shop"];
        let wrong = wrong.into_iter().chain([
            "tikv://a:1/shop/b",
            "tikv://a:1,/shop",
            "tikv://a:1/shop?ca=/a",
            "tikv://a:1/shop?tls",
        ]);
        for url in wrong {
            let error = Address::parse(url).unwrap_err();
            assert!(matches!(error, Error::Missing(_)) && error.to_string().contains(url), "{error}");
        }
    }
}
