//! The time that commands have taken on each collection, for `top`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bson::{
    RawDocumentBuf, cstr,
    raw::{CStr, CString},
    rawdoc,
};

use crate::command::Command;

/// Maximum number of collections that are counted. Further ones are ignored, so that invented names take bounded memory.
const MOST: usize = 10_000;

/// Maximum length in bytes of the full name of a counted collection: MongoDB's limit. A `bulkWrite` may name longer ones without writing to them.
const MAX_NAME: usize = 255;

/// The times of all collections since the start.
#[derive(Debug, Default)]
pub(crate) struct Top {
    collections: RwLock<HashMap<Namespace, Arc<Usage>>>,
    /// Incremented when collections are removed: connections then look up their last collection again.
    forgotten: AtomicU64,
}

/// A database and a collection of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Namespace {
    database: Box<str>,
    collection: Box<str>,
}

/// The collection that a connection has used last. Most connections use it again, which saves the look-up in the table.
#[derive(Debug, Default)]
pub(crate) struct LastUsage(Mutex<Option<KnownUsage>>);

#[derive(Debug)]
struct KnownUsage {
    namespace: Namespace,
    usage: Arc<Usage>,
    forgotten: u64,
}

/// The times of a collection, by kind.
#[derive(Debug, Default)]
struct Usage([Times; KINDS.len()]);

#[derive(Debug, Default)]
struct Times {
    nanos: AtomicU64,
    count: AtomicU64,
}

/// Kinds of commands, with MongoDB's names. MongoDB counts the last two together as `commands`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Queries,
    GetMore,
    Insert,
    Update,
    Remove,
    ReadCommands,
    WriteCommands,
}

use Kind::{GetMore, Insert, Queries, ReadCommands, Remove, Update, WriteCommands};

const KINDS: [Kind; 7] = [Queries, GetMore, Insert, Update, Remove, ReadCommands, WriteCommands];

/// The fields of `top`, and the kinds that each adds up.
const PARTS: [(&CStr, &[Kind]); 9] = [
    (cstr!("total"), &KINDS),
    (cstr!("readLock"), &[Queries, GetMore, ReadCommands]),
    (cstr!("writeLock"), &[Insert, Update, Remove, WriteCommands]),
    (cstr!("queries"), &[Queries]),
    (cstr!("getmore"), &[GetMore]),
    (cstr!("insert"), &[Insert]),
    (cstr!("update"), &[Update]),
    (cstr!("remove"), &[Remove]),
    (cstr!("commands"), &[ReadCommands, WriteCommands]),
];

impl Kind {
    fn of(command: &str) -> Option<Self> {
        Some(match command {
            "find" => Queries,
            "getMore" => GetMore,
            "insert" => Insert,
            "update" => Update,
            "delete" => Remove,
            "aggregate" | "collStats" | "collstats" | "count" | "distinct" | "explain" | "killCursors"
            | "listIndexes" | "validate" => ReadCommands,
            "bulkWrite" | "collMod" | "compact" | "create" | "createIndexes" | "deleteIndexes" | "dropIndexes"
            | "findAndModify" | "findandmodify" => WriteCommands,
            _ => return None,
        })
    }
}

impl Top {
    /// Adds the time of a successful command to its collection; that of a `bulkWrite` in equal parts to all collections that it names.
    pub(crate) fn record(&self, command: &Command, last: &LastUsage, time: Duration) {
        let Some(kind) = Kind::of(&command.name) else { return };
        if let Some(collection) = command.collection() {
            self.add(command.database(), collection, last, kind, time);
        } else {
            let namespaces: Vec<(&str, &str)> = command.bulk_namespaces().into_iter().flatten().collect();
            let parts = u32::try_from(namespaces.len()).unwrap_or(u32::MAX).max(1);
            for (database, collection) in namespaces {
                self.add(database, collection, last, kind, time / parts);
            }
        }
    }

    fn add(&self, database: &str, collection: &str, last: &LastUsage, kind: Kind, time: Duration) {
        if database.len() + 1 + collection.len() > MAX_NAME {
            return;
        }
        let mut last = last.0.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        let known = last.as_ref().filter(|known| {
            let namespace = &known.namespace;
            known.forgotten == forgotten && &*namespace.collection == collection && &*namespace.database == database
        });
        if let Some(known) = known {
            return known.usage.add(kind, time);
        }
        let namespace = Namespace { database: database.into(), collection: collection.into() };
        let Some(usage) = self.find(&namespace) else { return };
        usage.add(kind, time);
        *last = Some(KnownUsage { namespace, usage, forgotten });
    }

    /// Returns the times of a collection, from zero if it is new; `None` if there are too many collections.
    fn find(&self, namespace: &Namespace) -> Option<Arc<Usage>> {
        let known = self.collections.read().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned();
        if known.is_some() {
            return known;
        }
        let mut collections = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = collections.len() >= MOST;
        match collections.get(namespace) {
            Some(known) => Some(Arc::clone(known)),
            None if is_full => None,
            None => Some(Arc::clone(collections.entry(namespace.clone()).or_default())),
        }
    }

    /// Removes the times of a collection that was dropped, or of all collections of a database for `None`.
    pub(crate) fn forget(&self, database: &str, collection: Option<&str>) {
        let is_forgotten = |namespace: &Namespace| {
            *namespace.database == *database && collection.is_none_or(|collection| *namespace.collection == *collection)
        };
        let mut collections = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        collections.retain(|namespace, _| !is_forgotten(namespace));
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the times in the form of MongoDB's `top`.
    pub(crate) fn describe(&self) -> RawDocumentBuf {
        let mut known: Vec<(Namespace, Arc<Usage>)> = {
            let collections = self.collections.read().unwrap_or_else(PoisonError::into_inner);
            collections.iter().map(|(namespace, usage)| (namespace.clone(), Arc::clone(usage))).collect()
        };
        known.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut totals = rawdoc! { "note": "all times in microseconds" };
        for (Namespace { database, collection }, usage) in known {
            // A name with a NUL byte belongs to no collection.
            if let Ok(name) = CString::try_from(format!("{database}.{collection}")) {
                totals.append(&name, usage.describe());
            }
        }
        totals
    }
}

impl Usage {
    fn add(&self, kind: Kind, time: Duration) {
        let times = KINDS.iter().zip(&self.0).find(|(known, _)| **known == kind);
        times.into_iter().for_each(|(_, times)| {
            times.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            times.count.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn describe(&self) -> RawDocumentBuf {
        let mut described = RawDocumentBuf::new();
        for (name, kinds) in PARTS {
            let (mut nanos, mut count) = (0_u64, 0_u64);
            for (_, times) in KINDS.iter().zip(&self.0).filter(|(kind, _)| kinds.contains(kind)) {
                nanos = nanos.saturating_add(times.nanos.load(Ordering::Relaxed));
                count = count.saturating_add(times.count.load(Ordering::Relaxed));
            }
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let part = rawdoc! { "time": number(nanos / 1000), "count": number(count) };
            described.append(name, part);
        }
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(document: RawDocumentBuf) -> Command {
        Command::read(document).unwrap()
    }

    #[test]
    fn times_are_those_of_the_collection_and_a_dropped_one_begins_anew() {
        let (top, last) = (Top::default(), LastUsage::default());
        let find = command(rawdoc! { "find": "c", "$db": "shop" });
        let insert = command(rawdoc! { "insert": "c", "$db": "shop", "documents": [] });
        let bulk =
            command(rawdoc! { "bulkWrite": 1, "$db": "admin", "nsInfo": [{ "ns": "shop.c" }, { "ns": "a.b.c" }] });
        for (command, micros) in [(&find, 10), (&find, 20), (&insert, 5), (&bulk, 8)] {
            top.record(command, &last, Duration::from_micros(micros));
        }
        let totals = top.describe();
        let part = |namespace: &str, part: &str| {
            let part = totals.get_document(namespace).unwrap().get_document(part).unwrap();
            (part.get_i64("time").unwrap(), part.get_i64("count").unwrap())
        };
        assert_eq!(part("shop.c", "total"), (39, 4));
        assert_eq!(part("shop.c", "queries"), (30, 2));
        assert_eq!(part("shop.c", "readLock"), (30, 2));
        assert_eq!(part("shop.c", "writeLock"), (9, 2));
        assert_eq!(part("shop.c", "commands"), (4, 1));
        assert_eq!(part("a.b.c", "total"), (4, 1));
        top.forget("shop", Some("c"));
        top.record(&find, &last, Duration::from_micros(1));
        let queries = top.describe().get_document("shop.c").unwrap().get_document("queries").unwrap().to_owned();
        assert_eq!(queries, rawdoc! { "time": 1_i64, "count": 1_i64 });
    }

    #[test]
    fn names_beyond_the_limit_are_not_counted() {
        let (top, last) = (Top::default(), LastUsage::default());
        top.add("shop", &"x".repeat(MAX_NAME - 4), &last, Queries, Duration::ZERO);
        assert!(top.collections.read().unwrap().is_empty());
        for place in 0..=MOST {
            top.add("shop", &place.to_string(), &last, Queries, Duration::ZERO);
        }
        assert_eq!(top.collections.read().unwrap().len(), MOST);
    }
}
