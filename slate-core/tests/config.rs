//! Settings: accepted keys and values, and error messages for others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{path::PathBuf, time::Duration};

use bson::{doc, rawdoc};
use slate_core::{
    Access, Collection, Config, Database, DatabaseBuilder, Durability, ErrorKind, Recovery, Sharing, Verification,
};

fn parse(settings: &str) -> Result<Config, String> {
    toml::from_str(settings).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(settings: &str, words: &[&str]) {
    let error = parse(settings).unwrap_err();
    for word in words {
        assert!(error.contains(word), "{error}\ndoes not name {word}");
    }
}

#[test]
fn every_key_is_read() {
    let config = parse(
        r#"
        url = "redb:./shop.slate"
        access = "read_only"
        durability = "deferred"
        recovery = "when_opened"
        sharing = "with_readers"
        verification = "when_opened"
        cache = "256MiB"
        lock_timeout = "250ms"
        open_timeout = "5s"
        memory_limit = 1048576
        slow_query_threshold = "50ms"
        temp_directory = "/var/tmp"
        "#,
    );
    let mut expected = Config::new("redb:./shop.slate");
    expected.access = Some(Access::ReadOnly);
    expected.durability = Some(Durability::Deferred);
    expected.recovery = Some(Recovery::WhenOpened);
    expected.sharing = Some(Sharing::WithReaders);
    expected.verification = Some(Verification::WhenOpened);
    expected.cache = Some(256 << 20);
    expected.lock_timeout = Some(Duration::from_millis(250));
    expected.open_timeout = Some(Duration::from_secs(5));
    expected.memory_limit = Some(1 << 20);
    expected.slow_query_threshold = Some(Duration::from_millis(50));
    expected.temp_directory = Some(PathBuf::from("/var/tmp"));
    assert_eq!(config, Ok(expected));
    assert_eq!(parse("url = 'memory:'"), Ok(Config::new("memory:")));
}

#[test]
fn settings_survive_a_round_trip() {
    let settings =
        "url = \"redb:x\"\naccess = \"open\"\ndurability = \"sync\"\ncache = \"1536KiB\"\nlock_timeout = \"2m\"\n";
    assert_eq!(toml::to_string(&parse(settings).unwrap()).unwrap(), settings);
    for (written, again) in [("1000", "1kB"), ("'1 MiB'", "1MiB"), ("0", "0B"), ("1025", "1025B")] {
        let config = parse(&format!("url = ''\ncache = {written}")).unwrap();
        assert_eq!(toml::to_string(&config).unwrap(), format!("url = \"\"\ncache = \"{again}\"\n"));
        assert_eq!(parse(&toml::to_string(&config).unwrap()), Ok(config));
    }
}

#[test]
fn an_unknown_key_fails_with_its_name_and_the_valid_keys() {
    refused("url = 'memory:'\ncahce = '1GiB'", &["unknown field `cahce`", "`cache`", "`lock_timeout`", "line 2"]);
    refused("durability = 'sync'", &["missing field `url`"]);
}

#[test]
fn an_invalid_value_fails_with_the_valid_values() {
    refused("url = 'memory:'\ncache = 'big'", &["line 2", "\"big\"", "256MiB"]);
    for size in
        ["'256mib'", "'MiB'", "''", "'-1'", "-1", "1.5", "true", "'1.5GiB'", "'99999999999999999999'", "'99999999TiB'"]
    {
        refused(&format!("url = 'memory:'\nmemory_limit = {size}"), &["line 2"]);
    }
    for time in ["5", "'5'", "'s'", "'5 years'", "'-5s'", "'9999999999h'"] {
        refused(&format!("url = 'memory:'\nlock_timeout = {time}"), &["line 2"]);
    }
    refused("url = 'memory:'\ndurability = 'none'", &["unknown variant `none`", "`sync`", "`deferred`"]);
    refused("url = 'memory:'\naccess = 'write'", &["unknown variant `write`", "`create_or_open`", "`read_only`"]);
}

#[test]
fn a_database_is_opened_with_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("db.slate").display());
    let mut config = Config::new(&url);
    config.access = Some(Access::Open);
    assert_eq!(Database::open_config(&config).unwrap_err().kind(), ErrorKind::NotFound);

    let db = DatabaseBuilder::from(&config).access(Access::CreateOrOpen).open().unwrap();
    db.collection("users").insert_one(&rawdoc! { "_id": 1 }).unwrap();
    drop(db);

    config.access = Some(Access::ReadOnly);
    let db = Database::open_config(&config).unwrap();
    assert_eq!(db.collection::<bson::Document>("users").count_documents(doc! {}).run().unwrap(), 1);
    let refused = db.collection("users").insert_one(&rawdoc! { "_id": 2 }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);

    assert_eq!(Database::open_config(&Config::new("nosuch:")).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn retries_end_with_the_lock_timeout_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(format!("redb:{}", folder.path().join("db.slate").display()));
    config.lock_timeout = Some(Duration::ZERO);
    let db = Database::open_config(&config).unwrap();
    db.collection("users").insert_one(&rawdoc! { "_id": 1, "n": 0 }).unwrap();
    let increment = |users: Collection<bson::Document>| {
        users.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().map(drop)
    };
    let mut attempts = 0;
    let refused = db.transact(|tx| {
        attempts += 1;
        increment(tx.collection("users"))?;
        // Another thread commits first.
        std::thread::scope(|scope| scope.spawn(|| increment(db.collection("users"))).join().unwrap())
    });
    assert_eq!((refused.unwrap_err().kind(), attempts), (ErrorKind::Conflict, 1));
}
