//! A damaged database: what is read is right, or an error, or `verify` reports it. Nothing panics.
//!
//! A file of redb, or one of the files of RocksDB, is damaged in many ways, each time in one place, and the database is opened for reading and
//! writing, and for reading only. `SLATE_DAMAGES` sets the number of damages of each kind of opening, `SLATE_SEED` the first seed; the counts are
//! printed:
//!
//! ```sh
//! SLATE_DAMAGES=400 cargo test --release -p slate-core --features async,rocksdb --test damage -- --nocapture
//! ```

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "damage/places.rs"]
mod places;

use std::{
    collections::BTreeMap,
    fmt, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{Access, Collection, Database, Error, ErrorKind, Hint, Index, Result, Verification, VerifyReport};

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
            // Files of RocksDB can be short.
            Self::Bytes | Self::ZeroedPage | Self::PageOverAnother if pages < 2 => Self::Bit.apply(bytes, random),
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
                let at = random.below(bytes.len().min(320));
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
    /// What is read is what an earlier commit left: later ones in RocksDB's log are lost, as if the power had failed before them.
    Earlier,
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

/// The number of documents of the collection with an index of each kind.
const OTHERS: i32 = 200;

/// A document for indexes of each kind: its text differs from others' only in case, or is longer than an entry may be.
fn other(id: i32) -> RawDocumentBuf {
    let text = if id % 20 == 0 { format!("{id} {}", "long ".repeat(500)) } else { format!("Name {}", id / 2 * 2) };
    let part = rawdoc! { "b": id % 5, "c": [id, "s"] };
    rawdoc! { "_id": id, "code": id * 7, "part": part, "text": text, "at": bson::DateTime::from_millis(4_000_000_000_000) }
}

/// The indexes of that collection: unique, multikey, truncated, with a collation, partial, compound wildcard and TTL.
fn index_others(others: &Collection<RawDocumentBuf>) {
    let indexes = [
        Index::on(doc! { "code": 1 }).unique(),
        Index::on(doc! { "part.c": 1, "code": -1 }),
        Index::on(doc! { "text": 1 }),
        Index::on(doc! { "text": 1 }).named("ignoring_case").collation(doc! { "locale": "en", "strength": 2 }),
        Index::on(doc! { "part.b": 1 }).only(doc! { "code": { "$gte": 700 } }),
        Index::on(doc! { "code": 1, "part.$**": 1 }),
        Index::on(doc! { "at": 1 }).expire_after(Duration::from_secs(1)),
    ];
    for index in indexes {
        others.create_index(index).run().unwrap();
    }
}

/// Returns whether the indexes of that collection lead to what the documents say.
fn others_are_right(others: &Collection<RawDocumentBuf>) -> Result<bool> {
    let documents = others.find(doc! {}).sort(doc! { "_id": 1 }).run()?.collect::<Result<Vec<_>>>()?;
    let mut is_right = documents == (0..OTHERS).map(other).collect::<Vec<_>>();
    let filters = [
        ("code_1", doc! { "code": 693 }, vec![99]),
        ("part.c_1_code_-1", doc! { "part.c": 150 }, vec![150]),
        ("text_1", doc! { "text": format!("40 {}", "long ".repeat(500)) }, vec![40]),
        ("part.b_1", doc! { "part.b": 3, "code": { "$gt": 1_300 } }, vec![188, 193, 198]),
        ("code_1_part.$**_1", doc! { "code": 21, "part.b": 3 }, vec![3]),
    ];
    for (index, filter, ids) in filters {
        let found = others.find(filter).hint(Hint::Name(index.into())).run()?.collect::<Result<Vec<_>>>()?;
        is_right &= found == ids.into_iter().map(other).collect::<Vec<_>>();
    }
    let ignoring_case = doc! { "locale": "en", "strength": 2 };
    let named = others.find(doc! { "text": "NAME 12" }).collation(ignoring_case).run()?.collect::<Result<Vec<_>>>()?;
    is_right &= named == [other(12), other(13)];
    let due = others.count_documents(doc! { "at": { "$gt": bson::DateTime::now() } });
    Ok(is_right && due.hint(Hint::Name("at_1".into())).run()? == u64::try_from(OTHERS).unwrap())
}

/// The database that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Redb,
    /// Closed properly.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// Its process was killed, so the last commits are only in the log.
    #[cfg(feature = "rocksdb")]
    KilledRocksDb,
}

/// The files of a database by their names; one without a name if the database is a file.
#[derive(Clone)]
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn read(path: &Path) -> Self {
        if path.is_file() {
            return Self(BTreeMap::from([(String::new(), fs::read(path).unwrap())]));
        }
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        Self(files.map(|file| (name(&file), fs::read(&file).unwrap())).collect())
    }

    /// Replaces the database at `path`.
    fn write(&self, path: &Path) {
        if let Some(file) = self.0.get("") {
            return fs::write(path, file).unwrap();
        }
        let _ = fs::remove_dir_all(path);
        fs::create_dir(path).unwrap();
        for (name, bytes) in &self.0 {
            fs::write(path.join(name), bytes).unwrap();
        }
    }

    fn length(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Damages one file in one place, and returns the name of the file.
    fn damage(&mut self, kind: Kind, random: &mut Random) -> String {
        let holds_entries = |name: &str| name.ends_with(".sst") || name.ends_with(".log");
        // Locks and messages, which are no data.
        let is_data = |name: &&String| !name.starts_with("LO") && !self.0[*name].is_empty();
        let name = if self.0.len() == 1 {
            String::new()
        } else if kind == Kind::HeaderBit {
            // What belongs to the database as a whole.
            let names: Vec<_> = self.0.keys().filter(is_data).filter(|name| !holds_entries(name)).collect();
            names[random.below(names.len())].clone()
        } else {
            let names: Vec<_> = self.0.keys().filter(is_data).collect();
            let mut at = random.below(names.iter().map(|name| self.0[*name].len()).sum());
            let found = names.iter().find(|name| {
                let length = self.0[**name].len();
                let is_found = at < length;
                at = at.saturating_sub(length);
                is_found
            });
            (*found.unwrap()).clone()
        };
        kind.apply(self.0.get_mut(&name).unwrap(), random);
        name
    }
}

impl Base {
    fn url(self, path: &Path) -> String {
        let scheme = if self == Self::Redb { "redb" } else { "rocksdb" };
        format!("{scheme}:{}", path.display())
    }

    /// Creates the database to be damaged: records, indexes of each kind, and records that were replaced, one after the other.
    fn create(self, path: &Path) -> Files {
        let db = Database::open(&self.url(path)).unwrap();
        let users = db.collection::<RawDocumentBuf>("users");
        users.insert_many(&(0..DOCUMENTS).map(|id| document(id, 0)).collect::<Vec<_>>()).run().unwrap();
        users.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        users.create_index(Index::on(doc! { "text": 1 })).run().unwrap();
        let others = db.collection("others");
        others.insert_many(&(0..OTHERS).map(other).collect::<Vec<_>>()).run().unwrap();
        index_others(&others);
        if self != Self::Redb {
            db.compact().unwrap();
        }
        for id in (0..DOCUMENTS).step_by(STEP) {
            users.replace_one(doc! { "_id": id }, &document(id, 1)).run().unwrap();
        }
        drop((users, others));
        #[cfg(feature = "rocksdb")]
        if self == Self::KilledRocksDb {
            return Files::read(path);
        }
        db.close().unwrap();
        Files::read(path)
    }

    /// Whether an earlier state is right after damage in this file.
    fn allows_earlier(self, file: &str) -> bool {
        match self {
            Self::Redb => false,
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => false,
            #[cfg(feature = "rocksdb")]
            Self::KilledRocksDb => file.ends_with(".log"),
        }
    }
}

/// One in this many documents was replaced.
const STEP: usize = 40;

/// What can be read of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Last,
    Earlier,
    Wrong,
}

/// Returns which state the readable data have. Errors are those of the database.
fn state(db: &Database) -> Result<State> {
    let users = db.collection::<RawDocumentBuf>("users");
    let replacements = DOCUMENTS / i32::try_from(STEP).unwrap();
    let step = i32::try_from(STEP).unwrap();
    // They were replaced in the order of their `_id`s, each by a commit.
    let replaced = i32::try_from(users.count_documents(doc! { "generation": 1 }).run()?).unwrap();
    let expected = |id: i32| document(id, i32::from(id % step == 0 && id / step < replaced));
    let mut next = 0;
    for user in users.find(doc! {}).run()? {
        if user? != expected(next) {
            return Ok(State::Wrong);
        }
        next += 1;
    }
    let mut is_right = next == DOCUMENTS && others_are_right(&db.collection("others"))?;
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
    Ok(match is_right {
        true if replaced == replacements => State::Last,
        true => State::Earlier,
        false => State::Wrong,
    })
}

/// Opens a damaged file and uses it. Errors are those of opening and reading.
fn outcome(base: Base, path: &Path, damaged: (Kind, &str), access: Access) -> Outcome {
    let allows_earlier = base.allows_earlier(damaged.1);
    let open = || Database::builder(&base.url(path)).access(access).open();
    let db = match open() {
        Ok(db) => db,
        Err(error) => {
            refused_when_opened(damaged, &error);
            // The refusal has not written to the file what makes the damage look sound.
            assert!(open().is_err(), "a file that was refused opens the second time");
            return Outcome::Refused;
        }
    };
    let read = state(&db);
    let verified = db.verify().run();
    if access != Access::ReadOnly {
        if verified.as_ref().is_ok_and(|report| !report.is_sound()) {
            let _ = db.flush();
            let _ = db.compact();
            let verified_again = db.verify().run();
            assert!(!verified_again.is_ok_and(|report| report.is_sound()), "a compaction hides the damage");
        }
        write(&db, &copied(base));
    }
    let _ = db.close();
    match (read, verified) {
        // Also if parts that were not read are damaged.
        (Ok(State::Last), _) => Outcome::Right,
        (Ok(State::Earlier), Ok(report)) if allows_earlier && report.is_sound() => Outcome::Earlier,
        (Err(error), verified) => {
            // No other error may come from a damaged file.
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
            let is_found = !verified.as_ref().is_ok_and(VerifyReport::is_sound);
            assert!(is_found, "a read failed, and `verify` finds nothing: {error:?}");
            // What redb fails on is in a collection, unless its list of tables is damaged.
            let is_located = error.collection().is_some() || !error.to_string().contains("redb failed");
            assert!(is_located, "{error:?}");
            Outcome::Refused
        }
        (Ok(State::Earlier | State::Wrong), Ok(report)) if report.is_sound() => Outcome::WrongAndSound,
        (Ok(State::Earlier | State::Wrong), _) => Outcome::WrongAndReported,
    }
}

/// Checks what a database says when it is opened after damage of a kind in a file: that it is damaged, or, if the damage is where a
/// format and its version are, that it is another.
fn refused_when_opened((kind, file): (Kind, &str), error: &Error) {
    match error.kind() {
        ErrorKind::Corrupt => {}
        ErrorKind::WrongFormat | ErrorKind::NewerVersion => {
            assert!(matches!(kind, Kind::HeaderBit | Kind::Cut) || file == "SLATE", "{kind:?} in {file:?}: {error:?}");
        }
        _ => panic!("{kind:?} in {file:?}: {error:?}"),
    }
}

/// Writes wherever damage could be met. The results do not matter: a write may fail.
fn write(db: &Database, copy: &Path) {
    let users = db.collection::<RawDocumentBuf>("users");
    let _ = users.insert_one(&document(DOCUMENTS + 1, 0));
    let _ = users.update_many(doc! { "n": { "$lt": 20 } }, doc! { "$inc": { "generation": 1 } }).run();
    let _ = db.backup(copy);
    let _ = users.delete_many(doc! {}).run();
    let _ = users.drop();
    let _ = db.compact();
}

/// Where the damaged database is copied to. Tests run at the same time.
fn copied(base: Base) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("slate-damage-{base:?}-{}", std::process::id()))
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

fn damages(base: Base, access: Access) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    let sound = base.create(&path);
    // Closing waits a second after RocksDB could not merge damaged files.
    let few = if base == Base::Redb || access == Access::ReadOnly { 30 } else { 5 };
    let (first, count) = (number("SLATE_SEED", 1), number("SLATE_DAMAGES", few));
    let mut counts = Counts(BTreeMap::new());
    for seed in first..first + count {
        let mut random = Random(seed);
        let kind = Kind::any(&mut random);
        let mut files = sound.clone();
        let file = files.damage(kind, &mut random);
        files.write(&path);
        let outcome = || outcome(base, &path, (kind, &file), access);
        let outcome = catch_unwind(AssertUnwindSafe(outcome)).unwrap_or(Outcome::Panicked);
        let copy = copied(base);
        let _ = fs::remove_file(&copy).or_else(|_| fs::remove_dir_all(&copy));
        if outcome == Outcome::WrongAndSound || outcome == Outcome::Panicked {
            println!("{base:?}, seed {seed}: {kind:?} in {file}: {outcome:?}");
        }
        *counts.0.entry((outcome, kind)).or_default() += 1;
    }
    println!("{count} damages of {base:?}, {} bytes, {access:?}\n{counts}", sound.length());
    let bad = |outcome: Outcome| counts.0.keys().any(|(found, _)| *found == outcome);
    assert!(!bad(Outcome::Panicked) && !bad(Outcome::WrongAndSound), "{counts}");
}

/// Every document outside of the damaged page is saved, and none is wrong.
#[test]
fn what_can_be_read_is_saved_and_the_rest_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    let sound = Base::Redb.create(&path);
    let (first, count) = (number("SLATE_SEED", 1), number("SLATE_DAMAGES", 30));
    let (mut saved, mut whole, mut unreadable) = (0, 0, 0);
    for seed in first..first + count {
        let mut random = Random(seed);
        let kind = Kind::any(&mut random);
        let mut files = sound.clone();
        files.damage(kind, &mut random);
        files.write(&path);
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

/// With [`Verification::WhenOpened`] a file that opens is right, and one that does not says so each time.
#[test]
fn a_file_whose_pages_are_verified_when_it_is_opened_is_sound_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    let sound = Base::Redb.create(&path);
    let (first, count) = (number("SLATE_SEED", 1), number("SLATE_DAMAGES", 20));
    let (mut opened, mut refused) = (0, 0);
    for seed in first..first + count {
        let mut random = Random(seed);
        let mut files = sound.clone();
        // Every second damage is a bit in a text of a document, which no read finds.
        let kind = if seed % 2 == 0 { Kind::any(&mut random) } else { Kind::Bit };
        if seed % 2 == 0 {
            let _ = files.damage(kind, &mut random);
        } else {
            flip_in_text(files.0.get_mut("").unwrap(), &mut random);
        }
        for access in [Access::ReadOnly, Access::Open] {
            files.write(&path);
            let builder = Database::builder(&Base::Redb.url(&path)).access(access);
            let open = || builder.clone().verification(Verification::WhenOpened).open();
            match open() {
                Ok(db) => {
                    assert_eq!(state(&db).unwrap(), State::Last, "seed {seed}");
                    opened += 1;
                }
                Err(error) => {
                    refused_when_opened((kind, ""), &error);
                    assert!(open().is_err(), "seed {seed}: a file that was refused opens the second time");
                    refused += 1;
                }
            }
        }
    }
    println!("{opened} openings of sound files, {refused} refused");
    assert!(opened > 0 && refused > 0);

    // One bit in the first text, and nothing else.
    let mut files = sound;
    flip_in_text(files.0.get_mut("").unwrap(), &mut Random(first));
    files.write(&path);
    let builder = Database::builder(&Base::Redb.url(&path)).access(Access::ReadOnly);
    assert!(builder.clone().open().is_ok(), "without verification the file opens");
    let error = builder.verification(Verification::WhenOpened).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let shown = error.to_string();
    assert!(shown.contains("the database was not opened") && shown.contains("db.slate"), "{shown}");
}

/// Flips a bit in the text of one of the documents of the last commit.
fn flip_in_text(file: &mut [u8], random: &mut Random) {
    let id = i32::try_from(random.below(usize::try_from(DOCUMENTS).unwrap())).unwrap() / 2 * 2 + 1;
    let document = document(id, 0);
    let text = document.get_str("text").unwrap().as_bytes();
    // The document as it is stored: pages that are free may hold it, too.
    let places: Vec<usize> =
        (0..file.len() - text.len()).filter(|at| file[*at..].starts_with(document.as_bytes())).collect();
    assert!(!places.is_empty(), "the document is in the file");
    for at in places {
        file[at + document.as_bytes().len() - text.len()] ^= 1;
    }
}

#[test]
fn a_damaged_file_that_is_written_to_neither_panics_nor_lies() {
    damages(Base::Redb, Access::Open);
}

#[test]
fn a_damaged_file_that_is_read_neither_panics_nor_lies() {
    damages(Base::Redb, Access::ReadOnly);
}

#[cfg(feature = "rocksdb")]
#[test]
fn damaged_files_of_rocksdb_that_are_written_to_neither_panic_nor_lie() {
    damages(Base::RocksDb, Access::Open);
    damages(Base::KilledRocksDb, Access::Open);
}

#[cfg(feature = "rocksdb")]
#[test]
fn damaged_files_of_rocksdb_that_are_read_neither_panic_nor_lie() {
    damages(Base::RocksDb, Access::ReadOnly);
    damages(Base::KilledRocksDb, Access::ReadOnly);
}
