//! Files: backups of a database in memory, and files of redb.

use std::{cell::RefCell, fs, path::Path};

use bson::{Document, doc};
use slate_core::{Access, Database};

use super::{
    Verdict,
    database::{fault, filled, folder, right},
    input::Input,
};

/// The length of a backup's checksum at its end, and of the magic number and the version at its beginning.
const CHECKSUM: usize = 8;
const HEAD: usize = 12;

/// Opens a backup of a database in memory with some bytes replaced. With its old checksum it must be refused or have the same content.
/// With a new checksum its entries are like an attacker's: it may be refused or open, but no call may panic.
pub(super) fn backup(data: &[u8]) -> Verdict {
    thread_local! {
        static BACKUP: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    }
    let folder = folder();
    let path = folder.path().join("backup");
    let whole = BACKUP.with_borrow_mut(|cached| {
        let made = cached.get_or_insert_with(|| {
            right(filled().backup(&path));
            fs::read(&path).unwrap_or_default()
        });
        made.clone()
    });
    let mut input = Input::new(data);
    let (mut damaged, is_signed) = match input.byte() % 4 {
        0 => (input.damage(&whole), false),
        1 => (input.damage(&whole), true),
        2 => (reordered(&whole, &mut input), true),
        _ => (with_damaged_entry(&whole, input), true),
    };
    if is_signed {
        sign(&mut damaged);
    }
    write(&path, &damaged);
    let opened = Database::builder(&format!("memory:{}", path.display())).access(Access::Open).open();
    if let Ok(db) = &opened {
        if is_signed {
            use_everything(db);
        } else {
            assert_eq!(damaged, whole, "a damaged backup is refused");
            assert!(right(db.verify().run()).is_sound(), "a backup is sound");
        }
    }
    Verdict::of(&opened)
}

/// Returns the entries of a backup, each as its bytes.
fn entries(whole: &[u8]) -> Vec<&[u8]> {
    let mut entries = Vec::new();
    let mut rest = whole.get(HEAD..whole.len().saturating_sub(CHECKSUM + HEAD)).unwrap_or_default();
    while let Some(head) = rest.first_chunk::<HEAD>() {
        let length =
            |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).copied().map(u32::from_le_bytes);
        let lengths = [length(4), length(8)].map(|length| length.and_then(|length| usize::try_from(length).ok()));
        let [Some(key), Some(value)] = lengths else { break };
        let Some((entry, later)) = rest.split_at_checked(HEAD + key + value) else { break };
        entries.push(entry);
        rest = later;
    }
    entries
}

/// Returns a backup with these entries, and room for its checksum.
fn joined(whole: &[u8], entries: &[&[u8]]) -> Vec<u8> {
    let head = whole.get(..HEAD).unwrap_or_default();
    [head, &entries.concat(), &[0xff; HEAD], &[0; CHECKSUM]].concat()
}

/// Returns a backup with some entries removed, repeated or swapped.
fn reordered(whole: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let mut entries = entries(whole);
    for _ in 0..=input.byte() % 3 {
        let places = [(); 2].map(|()| usize::from(input.byte()) % entries.len().max(1));
        let [first, second] = places;
        match input.byte() % 3 {
            0 if entries.len() > 1 => drop(entries.remove(first)),
            1 => entries.extend(entries.get(first).copied()),
            _ => entries.swap(first, second),
        }
    }
    joined(whole, &entries)
}

/// Returns a backup with one damaged entry, mostly an entry of the catalog, which come first.
fn with_damaged_entry(whole: &[u8], mut input: Input<'_>) -> Vec<u8> {
    let mut entries = entries(whole);
    let count = if input.byte().is_multiple_of(4) { entries.len() } else { entries.len().min(8) };
    let at = usize::from(input.byte()) % count.max(1);
    let Some(entry) = entries.get(at) else { return whole.to_vec() };
    let (head, body) = entry.split_at(HEAD.min(entry.len()));
    let mut damaged = input.damage(body);
    // The lengths in its head stay valid.
    damaged.resize(body.len(), 0);
    let damaged = [head, &damaged].concat();
    if let Some(entry) = entries.get_mut(at) {
        *entry = &damaged;
    }
    joined(whole, &entries)
}

/// Writes the checksum of the bytes before it (FNV-1a).
fn sign(backup: &mut [u8]) {
    let Some((bytes, checksum)) = backup.split_last_chunk_mut::<CHECKSUM>() else { return };
    let sum = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    *checksum = sum.to_le_bytes();
}

/// Opens a redb file with some bytes replaced. If it opens, makes calls on the database. Errors are allowed, panics are not.
pub(super) fn catalog(data: &[u8]) -> Verdict {
    thread_local! {
        static FILE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    }
    let folder = folder();
    let path = folder.path().join("db");
    let url = format!("redb:{}", path.display());
    let whole = FILE.with_borrow_mut(|cached| {
        let made = cached.get_or_insert_with(|| {
            let db = right(Database::open(&url));
            right(filled().copy_to(&db).run());
            right(db.close());
            fs::read(&path).unwrap_or_default()
        });
        made.clone()
    });
    write(&path, &Input::new(data).damage(&whole));
    let opened = Database::builder(&url).access(Access::Open).open();
    if let Ok(db) = &opened {
        use_everything(db);
    }
    Verdict::of(&opened)
}

/// Makes calls of many kinds on a database that may be damaged. Errors are allowed.
fn use_everything(db: &Database) {
    let names = db.list_collection_names().unwrap_or_default();
    let _ = db.list_collections();
    let _ = db.verify().run();
    let _ = db.stats();
    for name in names.iter().map(String::as_str).chain(["indexed", "new"]) {
        let c = db.collection::<Document>(name);
        let _ = c.find(doc! { "a": 1 }).collect();
        let _ = c.find(doc! {}).sort(doc! { "b": -1, "a": 1 }).collect();
        let _ = c.insert_one(&doc! { "a": [1, 2] });
        let _ = c.update_many(doc! { "a": { "$gt": 0 } }, doc! { "$inc": { "b": 1 } }).run();
        let _ = c.delete_many(doc! { "b": 1 }).run();
        let _ = c.drop();
    }
}

fn write(path: &Path, bytes: &[u8]) {
    if let Err(error) = fs::write(path, bytes) {
        fault(&format!("a target cannot begin: {error}"));
    }
}
