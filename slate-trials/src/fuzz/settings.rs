//! Targets for configurations and URLs, generated from their grammars.

use std::cell::OnceCell;

use slate_core::{Access, Config, Database};
use tempfile::TempDir;

use super::{
    Verdict,
    database::{folder, right},
    input::Input,
};

/// The keys of a configuration, with valid and wrong values.
const SETTINGS: [(&str, &[&str]); 11] = [
    ("access", &["'create_or_open'", "'open'", "'read_only'", "'all'"]),
    ("durability", &["'sync'", "'deferred'", "1"]),
    ("recovery", &["'with_each_commit'", "'when_opened'", "''"]),
    ("sharing", &["'exclusive'", "'with_readers'", "true"]),
    ("verification", &["'on_request'", "'when_opened'", "false"]),
    ("cache", &["1024", "'64MiB'", "'1 GB'", "0", "-1", "'99999999999TiB'", "1.5"]),
    ("lock_timeout", &["'5s'", "'250ms'", "'9999999999h'", "5", "'s'"]),
    ("open_timeout", &["'1m'", "'0s'", "''"]),
    ("memory_limit", &["'1MiB'", "1048576", "'MiB'"]),
    ("slow_query_threshold", &["'50ms'", "'5us'", "[]"]),
    ("temp_directory", &["'/var/tmp'", "''", "7"]),
];

/// Reads a configuration file. Nothing is opened.
pub(super) fn config(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    // Input that begins with a letter is the file itself.
    let bytes = if data.first().is_some_and(u8::is_ascii_alphabetic) {
        data.to_vec()
    } else {
        let mut text = format!("url = {:?}\n", address(&mut input, "/tmp/none"));
        let chosen =
            u16::from_le_bytes([input.byte(), input.byte()]) & u16::from_le_bytes([input.byte(), input.byte()]);
        for (at, (key, values)) in SETTINGS.iter().enumerate() {
            if chosen & (1 << at) != 0 {
                text.push_str(&format!("{key} = {}\n", input.choice(values, "1")));
            }
        }
        input.perhaps_damaged(text.as_bytes())
    };
    let Ok(text) = str::from_utf8(&bytes) else { return Verdict::Refused };
    let read = toml::from_str::<Config>(text);
    if let Ok(config) = &read {
        let written = toml::to_string(config).unwrap_or_default();
        let again = toml::from_str::<Config>(&written);
        assert!(again.is_ok_and(|again| again == *config), "a configuration is read as written: {written}");
    }
    Verdict::of(&read)
}

/// Opens a URL for reading: of a database, a backup, or nothing. Nothing may be created.
pub(super) fn url(data: &[u8]) -> Verdict {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    let place = FOLDER.with(|cached| cached.get_or_init(with_databases).path().to_owned());
    let shown = place.display().to_string();
    let mut input = Input::new(data);
    // Text with a colon is the URL, where `FOLDER` stands for the folder.
    let url = match std::str::from_utf8(data) {
        Ok(text) if text.contains(':') => text.replace("FOLDER", &shown),
        _ => address(&mut input, &shown),
    };
    #[cfg(feature = "tikv")]
    let _ = slate_store::tikv::Address::parse(&url);
    let opened = Database::builder(&url).access(Access::ReadOnly).open();
    if let Ok(db) = &opened {
        assert!(db.list_collection_names().is_ok_and(|names| names.is_empty()), "{url} is an empty database");
    }
    let left = std::fs::read_dir(&place).map_or(0, Iterator::count);
    assert_eq!(left, 2, "opening {url} for reading creates nothing and removes nothing");
    Verdict::of(&opened)
}

/// Returns a folder with an empty database of redb and an empty backup.
fn with_databases() -> TempDir {
    let folder = folder();
    right(right(Database::open("memory:")).backup(folder.path().join("backup")));
    right(Database::open(&format!("redb:{}/db", folder.path().display())).and_then(Database::close));
    folder
}

/// Returns a URL from its grammar: a scheme, a separator, a path.
fn address(input: &mut Input<'_>, folder: &str) -> String {
    if input.byte().is_multiple_of(16) {
        return input.text();
    }
    let scheme = input.choice(&["memory", "memory", "redb", "redb", "rocksdb", "tikv", "mongodb", "REDB", ""], "redb");
    let separator = match input.byte() % 4 {
        0 => input.choice(&["://", ":/", "", "::"], ":"),
        _ => ":",
    };
    let path = match input.byte() % 12 {
        0..=4 => format!("{folder}/{}", if scheme == "memory" { "backup" } else { "db" }),
        5 => format!("{folder}/backup"),
        6 => String::new(),
        7 => format!("{folder}/none"),
        8 => "pd1:2379,pd2:2379/shop?ca=a&cert=b&key=c".to_owned(),
        9 => format!("{folder}/../\0{}", input.text()),
        10 => folder.to_owned(),
        _ => input.text(),
    };
    format!("{scheme}{separator}{path}")
}
