//! A damaged redb file: what is read is right, or an error, or `verify` reports it. Nothing panics.
//!
//! One file is damaged in many ways, each time in one place, and opened for reading and writing, and for reading only. `SLATE_DAMAGES` sets
//! the number of damages of each kind of opening, `SLATE_SEED` the first seed; the counts are printed:
//!
//! ```sh
//! SLATE_DAMAGES=400 cargo test --release -p slate-core --features async --test damage -- --nocapture
//! ```

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fmt, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{Access, Database, ErrorKind, Hint, Index, Result};

const DOCUMENTS: i32 = 4_000;
const PAGE: usize = 4_096;

/// A source of numbers that a seed determines (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Bit,
    Bytes,
    ZeroedPage,
    PageOverAnother,
    HeaderBit,
    Cut,
}

impl Kind {
    /// Single bits and pages are damaged most often, as devices do.
    fn any(random: &mut Random) -> Self {
        match random.below(20) {
            0..8 => Self::Bit,
            8..11 => Self::Bytes,
            11..15 => Self::ZeroedPage,
            15..18 => Self::PageOverAnother,
            18 => Self::HeaderBit,
            _ => Self::Cut,
        }
    }

    fn apply(self, bytes: &mut Vec<u8>, random: &mut Random) {
        let pages = bytes.len() / PAGE;
        match self {
            Self::Bit => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            Self::Bytes => {
                let at = random.below(bytes.len() - 16);
                bytes[at..at + 16].fill_with(|| random.next().to_le_bytes()[0]);
            }
            Self::ZeroedPage => {
                let at = (1 + random.below(pages - 1)) * PAGE;
                bytes[at..at + PAGE].fill(0);
            }
            Self::PageOverAnother => {
                let (from, to) = (1 + random.below(pages - 1), 1 + random.below(pages - 1));
                bytes.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
            }
            Self::HeaderBit => {
                let at = random.below(320);
                bytes[at] ^= 1 << random.below(8);
            }
            Self::Cut => bytes.truncate(random.below(bytes.len())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything that was read is right, and writes work or fail with an error.
    Right,
    /// A read or the opening fails with an error.
    Refused,
    /// What is read is not right, and `verify` says so.
    WrongAndReported,
    /// What is read is not right, and `verify` finds nothing.
    WrongAndSound,
    Panicked,
}

fn document(id: i32, generation: i32) -> RawDocumentBuf {
    // Lengths differ, so that pages do.
    let text: String =
        (0..id % 7 * 20 + 40).map(|at| char::from(b'a' + u8::try_from((id + at) % 26).unwrap())).collect();
    rawdoc! { "_id": id, "n": id % 97, "text": text, "generation": generation }
}

/// Creates the file to be damaged: records, two indexes, pages that were replaced.
fn create(path: &Path) -> Vec<u8> {
    let db = Database::open(&format!("redb:{}", path.display())).unwrap();
    let users = db.collection::<RawDocumentBuf>("users");
    users.insert_many(&(0..DOCUMENTS).map(|id| document(id, 0)).collect::<Vec<_>>()).run().unwrap();
    users.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    users.create_index(Index::on(doc! { "text": 1 })).run().unwrap();
    db.collection("other").insert_many(&(0..200).map(|id| rawdoc! { "_id": id }).collect::<Vec<_>>()).run().unwrap();
    for id in (0..DOCUMENTS).step_by(40) {
        users.replace_one(doc! { "_id": id }, &document(id, 1)).run().unwrap();
    }
    drop(users);
    db.close().unwrap();
    fs::read(path).unwrap()
}

/// Returns whether everything that can be read is what was written. Errors are those of the database.
fn is_right(db: &Database) -> Result<bool> {
    let users = db.collection::<RawDocumentBuf>("users");
    let expected = |id: i32| document(id, i32::from(id % 40 == 0));
    let mut next = 0;
    for user in users.find(doc! {}).run()? {
        if user? != expected(next) {
            return Ok(false);
        }
        next += 1;
    }
    let mut is_right =
        next == DOCUMENTS && db.collection::<RawDocumentBuf>("other").count_documents(doc! {}).run()? == 200;
    for n in [0, 5, 96] {
        let found = users.find(doc! { "n": n }).hint(Hint::Name("n_1".into())).run()?.collect::<Result<Vec<_>>>()?;
        let of_n: Vec<_> = (0..DOCUMENTS).filter(|id| id % 97 == n).map(expected).collect();
        is_right &= found == of_n;
    }
    for id in (0..DOCUMENTS).step_by(101) {
        is_right &= users.find_by_id(id)? == Some(expected(id));
    }
    is_right &= users.find(doc! {}).sort(doc! { "text": 1 }).hint(Hint::Name("text_1".into())).run()?.count()
        == usize::try_from(DOCUMENTS).unwrap();
    Ok(is_right)
}

/// Opens a damaged file and uses it. Errors are those of opening and reading.
fn outcome(path: &Path, access: Access) -> Outcome {
    let Ok(db) = Database::builder(&format!("redb:{}", path.display())).access(access).open() else {
        return Outcome::Refused;
    };
    let read = is_right(&db);
    let verified = db.verify().run();
    if access != Access::ReadOnly {
        write(&db);
    }
    let _ = db.close();
    match (read, verified) {
        (Ok(true), Ok(report)) if report.is_sound() => Outcome::Right,
        // Parts that were not read are damaged.
        (Ok(true), _) => Outcome::Right,
        (Err(error), _) => {
            // No other error may come from a damaged file.
            assert!([ErrorKind::Corrupt, ErrorKind::Io].contains(&error.kind()), "{error:?}");
            // What redb fails on is in a collection, unless its list of tables is damaged.
            let is_located = error.collection().is_some() || !error.to_string().contains("redb failed");
            assert!(is_located, "{error:?}");
            Outcome::Refused
        }
        (Ok(false), Ok(report)) if report.is_sound() => Outcome::WrongAndSound,
        (Ok(false), _) => Outcome::WrongAndReported,
    }
}

/// Writes wherever damage could be met. The results do not matter: a write may fail.
fn write(db: &Database) {
    let users = db.collection::<RawDocumentBuf>("users");
    let _ = users.insert_one(&document(DOCUMENTS + 1, 0));
    let _ = users.update_many(doc! { "n": { "$lt": 20 } }, doc! { "$inc": { "generation": 1 } }).run();
    let _ = db.backup(db_copy(db));
    let _ = users.delete_many(doc! {}).run();
    let _ = users.drop();
    let _ = db.compact();
}

fn db_copy(_: &Database) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("slate-damage-{}", std::process::id()))
}

struct Counts(BTreeMap<(Outcome, Kind), usize>);

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: BTreeMap<Outcome, (usize, String)> = BTreeMap::new();
        for ((outcome, kind), count) in &self.0 {
            let (sum, kinds) = lines.entry(*outcome).or_default();
            *sum += count;
            kinds.push_str(&format!(" {kind:?} {count}"));
        }
        lines.iter().try_for_each(|(outcome, (sum, kinds))| writeln!(f, "{outcome:?}: {sum} ({})", kinds.trim()))
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn damages(access: Access) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    let sound = create(&path);
    let (first, count) = (number("SLATE_SEED", 1), number("SLATE_DAMAGES", 30));
    let mut counts = Counts(BTreeMap::new());
    for seed in first..first + count {
        let mut random = Random(seed);
        let kind = Kind::any(&mut random);
        let mut bytes = sound.clone();
        kind.apply(&mut bytes, &mut random);
        fs::write(&path, &bytes).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome(&path, access))).unwrap_or(Outcome::Panicked);
        let _ = fs::remove_file(std::env::temp_dir().join(format!("slate-damage-{}", std::process::id())));
        if outcome == Outcome::WrongAndSound || outcome == Outcome::Panicked {
            println!("seed {seed}: {kind:?}: {outcome:?}");
        }
        *counts.0.entry((outcome, kind)).or_default() += 1;
    }
    println!("{count} damages of a file of {} bytes, {access:?}\n{counts}", sound.len());
    let bad = |outcome: Outcome| counts.0.keys().any(|(found, _)| *found == outcome);
    assert!(!bad(Outcome::Panicked) && !bad(Outcome::WrongAndSound), "{counts}");
}

/// Every document outside of the damaged page is saved, and none is wrong.
#[test]
fn what_can_be_read_is_saved_and_the_rest_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    let sound = create(&path);
    let (first, count) = (number("SLATE_SEED", 1), number("SLATE_DAMAGES", 30));
    let (mut saved, mut whole, mut unreadable) = (0, 0, 0);
    for seed in first..first + count {
        let mut random = Random(seed);
        let kind = Kind::any(&mut random);
        let mut bytes = sound.clone();
        kind.apply(&mut bytes, &mut random);
        fs::write(&path, &bytes).unwrap();
        let url = format!("redb:{}", path.display());
        let Ok(db) = Database::builder(&url).access(Access::ReadOnly).open() else {
            unreadable += 1;
            continue;
        };
        let copy = Database::open("memory:").unwrap();
        let Ok((copied, report)) = db.copy_to(&copy).salvage() else {
            // The list of collections is damaged.
            unreadable += 1;
            continue;
        };
        let users = copy.collection::<RawDocumentBuf>("users");
        let mut count = 0;
        for user in users.find(doc! {}).run().unwrap() {
            let user = user.unwrap();
            let id = user.get_i32("_id").unwrap();
            assert_eq!(user, document(id, i32::from(id % 40 == 0)), "seed {seed}");
            count += 1;
        }
        if count < DOCUMENTS {
            let listed = report.findings.iter().any(|finding| finding.collection == "users" && finding.index.is_none());
            assert!(listed, "seed {seed}: {count} documents, {report:?}");
            saved += 1;
        } else {
            whole += 1;
        }
        assert!(copied.documents >= u64::try_from(count).unwrap());
        assert!(copy.verify().run().unwrap().is_sound());
    }
    println!("{whole} files saved as a whole, {saved} in part, {unreadable} not");
    assert!(saved > 0 && whole > 0);
}

#[test]
fn a_damaged_file_that_is_written_to_neither_panics_nor_lies() {
    damages(Access::Open);
}

#[test]
fn a_damaged_file_that_is_read_neither_panics_nor_lies() {
    damages(Access::ReadOnly);
}
