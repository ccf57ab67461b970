//! Maps RocksDB's errors; the only place that does so. RocksDB distinguishes errors by codes, which its bindings return
//! as the beginning of a text. The operating system's message follows in the text.

use std::path::Path;

use ::rocksdb::{Error as RocksError, ErrorKind};

use crate::{Context, Error};

/// The kind of an error, and the text that describes it.
type Meaning = (fn(Box<Context>) -> Error, &'static str);

/// Maps an error of opening the database at `path`.
pub(super) fn opening(error: RocksError, path: &Path) -> Error {
    let (meaning, detail) = meaning_in_opening(error.kind(), error.as_ref());
    meaning(Box::new(Context::new(detail).at(path).because(error)))
}

/// Maps an error of anything except opening and committing.
pub(super) fn storage(error: RocksError) -> Error {
    let (meaning, detail) = meaning_in_storage(error.kind(), error.as_ref());
    meaning(Box::new(Context::new(detail).because(error)))
}

/// Maps an error of a commit.
pub(super) fn committing(error: RocksError) -> Error {
    let (meaning, detail) = meaning_in_committing(error.kind(), error.as_ref());
    meaning(Box::new(Context::new(detail).because(error)))
}

fn meaning_in_opening(kind: ErrorKind, text: &str) -> Meaning {
    let newer = "a later version of RocksDB wrote the files";
    match kind {
        ErrorKind::IOError if says(text, &["lock hold by", "lock file"]) => {
            (Error::Locked, "by this process or another")
        }
        ErrorKind::NotSupported if says(text, &["legacy"]) => {
            (Error::WrongFormat, "an older version of RocksDB wrote the files, in a format no longer read")
        }
        ErrorKind::NotSupported => (Error::NewerVersion, newer),
        ErrorKind::Corruption if says(text, &["unsupported format_version", "unknown tag"]) => {
            (Error::NewerVersion, newer)
        }
        // The options do not match the database: another comparator or more column families.
        ErrorKind::InvalidArgument => (Error::WrongFormat, "a RocksDB database that Slate did not create"),
        ErrorKind::IOError if says(text, &["Permission denied", "Read-only file system"]) => {
            (Error::ReadOnly, "while opening it")
        }
        _ => match meaning_in_storage(kind, text) {
            (meaning, "") => (meaning, "while opening it"),
            meaning => meaning,
        },
    }
}

fn meaning_in_storage(kind: ErrorKind, text: &str) -> Meaning {
    match kind {
        ErrorKind::Corruption => (Error::Corrupt, ""),
        ErrorKind::NotSupported if says(text, &["read only mode"]) => (Error::ReadOnly, "it was opened read-only"),
        _ if is_full(text) => (Error::Full, ""),
        _ => (Error::Io, ""),
    }
}

/// After a failed commit RocksDB rejects writes until it is reopened, except on a full device: then it checks every five seconds whether a write
/// buffer fits. An exceeded quota or file-size limit counts as a failure, not as a full device.
fn meaning_in_committing(kind: ErrorKind, text: &str) -> Meaning {
    match kind {
        _ if says(text, &["No space left on device"]) => (Error::Full, "while committing"),
        _ if is_full(text) => (Error::Full, "while committing; reopen the database to continue"),
        ErrorKind::Corruption => (Error::Corrupt, "while committing"),
        _ => (Error::OutcomeUnknown, "the device failed; reopen the database to see which commits it has"),
    }
}

/// Messages of the operating system and of RocksDB for a full device.
fn is_full(text: &str) -> bool {
    says(text, &["No space left on device", "Space limit reached", "Disk quota exceeded", "File too large"])
}

fn says(text: &str, any: &[&str]) -> bool {
    any.iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of((meaning, detail): Meaning) -> Error {
        meaning(Box::new(Context::new(detail)))
    }

    #[test]
    fn rocksdb_messages_map_to_errors() {
        use ErrorKind::{Corruption, IOError, InvalidArgument, NotSupported};
        let locked =
            "IO error: lock hold by current process, acquire time 1 acquiring thread 2: db/LOCK: No locks available";
        assert!(matches!(of(meaning_in_opening(IOError, locked)), Error::Locked(_)));
        let locked = "IO error: While lock file: db/LOCK: Resource temporarily unavailable";
        assert!(matches!(of(meaning_in_opening(IOError, locked)), Error::Locked(_)));
        let newer = "Corruption: Corrupt or unsupported format_version 99 for magic 1";
        assert!(matches!(of(meaning_in_opening(Corruption, newer)), Error::NewerVersion(_)));
        let newer = "Not implemented: File uses a future feature not supported in this version";
        assert!(matches!(of(meaning_in_opening(NotSupported, newer)), Error::NewerVersion(_)));
        let older = "Not implemented: Unsupported legacy magic number for block-based SST format.";
        assert!(matches!(of(meaning_in_opening(NotSupported, older)), Error::WrongFormat(_)));
        let damaged = "Corruption: block checksum mismatch";
        assert!(matches!(of(meaning_in_opening(Corruption, damaged)), Error::Corrupt(_)));
        let foreign = "Invalid argument: Column families not opened: theirs";
        assert!(matches!(of(meaning_in_opening(InvalidArgument, foreign)), Error::WrongFormat(_)));
        let protected = "IO error: while open a file for lock: db/LOCK: Read-only file system";
        assert!(matches!(of(meaning_in_opening(IOError, protected)), Error::ReadOnly(_)));
        let full = "IO error: No space left on device: While appending to file: db/000004.log: No space left on device";
        assert!(matches!(of(meaning_in_storage(IOError, full)), Error::Full(_)));
        assert!(matches!(of(meaning_in_committing(IOError, full)), Error::Full(_)));
        let quota = "IO error: While appending to file: db/000004.log: Disk quota exceeded";
        for (text, reopens) in [(full, false), (quota, true)] {
            let error = of(meaning_in_committing(IOError, text));
            assert!(matches!(error, Error::Full(_)) && error.to_string().contains("reopen") == reopens, "{error}");
        }
        let broken = "IO error: While fdatasync: db/000004.log: Input/output error";
        assert!(matches!(of(meaning_in_committing(IOError, broken)), Error::OutcomeUnknown(_)));
        assert!(matches!(of(meaning_in_storage(IOError, broken)), Error::Io(_)));
    }
}
