//! The profiler: records slow commands, or all, as documents of the collection `system.profile` of their database.
//!
//! The collection is not stored. Each profiled database has a ring buffer of the latest entries in memory. Reads of the collection get them as its
//! documents ([`Call::commands`]), in the order in which they were written.

mod bulk;
mod entry;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use self::bulk::BulkPart;
use crate::{
    auth,
    commands::Call,
    failure::{Code, Failure, Result},
};

/// The name of the collection of entries.
pub(crate) const PROFILE: &str = "system.profile";

/// Maximum bytes of the entries of a database: MongoDB's size of the collection.
const MAX_BYTES: usize = 1 << 20;

/// Maximum bytes of an entry. A longer one is dropped, so that it does not displace all others.
const MAX_ENTRY: usize = 1 << 16;

/// Time limit of the filter for an entry, in milliseconds. The entry is dropped when it is exceeded.
const FILTER_MILLIS: i32 = 1000;

/// Maximum number of profiled databases.
const MAX_DATABASES: usize = 64;

/// Which commands are recorded, and the recorded entries.
#[derive(Debug)]
pub(crate) struct Profiler {
    /// Whether any database is profiled; read without a lock.
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// A command is slow if it takes more than this many milliseconds, in any database.
    slow_millis: i64,
    /// The fraction of slow commands that is recorded, from 0 to 1.
    sample_rate: f64,
    databases: HashMap<String, Profile>,
}

/// The settings and the entries of a database.
#[derive(Debug, Default)]
struct Profile {
    level: Level,
    /// The filter that selects the recorded commands, instead of the threshold.
    filter: Option<RawDocumentBuf>,
    entries: VecDeque<RawDocumentBuf>,
    bytes: usize,
    /// A copy of the entries, shared by reads until the next entry is added.
    copy: Option<Arc<[RawDocumentBuf]>>,
}

impl Profile {
    fn copy(&mut self) -> Arc<[RawDocumentBuf]> {
        Arc::clone(self.copy.get_or_insert_with(|| self.entries.iter().cloned().collect()))
    }

    fn clear(&mut self) {
        self.entries.clear();
        (self.bytes, self.copy) = (0, None);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    #[default]
    Off,
    Slow,
    All,
}

impl Level {
    fn number(self) -> i32 {
        match self {
            Self::Off => 0,
            Self::Slow => 1,
            Self::All => 2,
        }
    }
}

/// A change of the filter.
enum FilterChange {
    None,
    Unset,
    Set(RawDocumentBuf),
}

impl Profiler {
    pub(crate) fn new(slow: Duration) -> Self {
        let slow_millis = i64::try_from(slow.as_millis()).unwrap_or(i64::MAX);
        let state = State { slow_millis, sample_rate: 1.0, databases: HashMap::new() };
        Self { is_on: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Whether any database is profiled.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Returns the entries of a database, the oldest first.
    pub(crate) fn entries(&self, database: &str) -> Arc<[RawDocumentBuf]> {
        self.lock().databases.get_mut(database).map(Profile::copy).unwrap_or_default()
    }

    /// Drops the entries of a database.
    ///
    /// # Errors
    /// Fails with `IllegalOperation` (20) while the database is profiled, as in MongoDB.
    fn drop_entries(&self, database: &str) -> Result<()> {
        let mut state = self.lock();
        match state.databases.get_mut(database) {
            None => Ok(()),
            Some(profile) if profile.level != Level::Off => {
                let message = "turn off profiling before dropping system.profile collection";
                Err(Failure::new(Code::ILLEGAL_OPERATION, message))
            }
            Some(profile) => {
                profile.clear();
                Ok(())
            }
        }
    }

    /// Drops the entries of a database that was dropped. Its settings stay.
    pub(crate) fn forget(&self, database: &str) {
        self.lock().databases.get_mut(database).into_iter().for_each(Profile::clear);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `{profile: level, slowms, sampleRate, filter}`: changes the settings of the database, and returns the previous ones. With a level other than 0,
/// 1 and 2, the level and the filter stay, and only `slowms` and `sampleRate` are changed if they are given.
pub(crate) async fn configure(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let command = call.command;
    let level = match call.integer("profile")?.ok_or_else(|| Failure::mistyped("profile.profile", "int"))? {
        0 => Some(Level::Off),
        1 => Some(Level::Slow),
        2 => Some(Level::All),
        _ => None,
    };
    let slow_millis = match command.get("slowms")? {
        None | Some(RawBsonRef::Null) => None,
        Some(_) => Some(call.integer("slowms")?.ok_or_else(|| Failure::mistyped("profile.slowms", "long"))?),
    };
    let sample_rate = match command.get("sampleRate")? {
        None | Some(RawBsonRef::Null) => None,
        Some(RawBsonRef::Double(rate)) => Some(rate),
        Some(RawBsonRef::Int32(rate)) => Some(f64::from(rate)),
        Some(RawBsonRef::Int64(rate)) if (0..=1).contains(&rate) => Some(if rate == 0 { 0.0 } else { 1.0 }),
        Some(_) => return Err(Failure::mistyped("profile.sampleRate", "double")),
    };
    if sample_rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        return Err(Failure::new(Code::BAD_VALUE, "'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    let filter = match command.get("filter")? {
        None | Some(RawBsonRef::Null) => FilterChange::None,
        Some(RawBsonRef::String("unset")) => FilterChange::Unset,
        Some(RawBsonRef::Document(filter)) => FilterChange::Set(filter.to_owned()),
        Some(_) => {
            return Err(Failure::new(Code::BAD_VALUE, "Expected an object, or the string 'unset'."));
        }
    };
    if let FilterChange::Set(filter) = &filter {
        matches(call, filter, &rawdoc! {}).await?;
    }
    let profiler = &call.shared().profiler;
    let mut state = profiler.lock();
    let mut reply = state.describe(command.database());
    state.slow_millis = slow_millis.unwrap_or(state.slow_millis);
    state.sample_rate = sample_rate.unwrap_or(state.sample_rate);
    if let Some(level) = level {
        state.change(command.database(), level, filter)?;
        profiler.is_on.store(state.databases.values().any(|profile| profile.level != Level::Off), Ordering::Relaxed);
    }
    let has_filter = state.databases.get(command.database()).is_some_and(|profile| profile.filter.is_some());
    if has_filter || reply.get("filter")?.is_some() {
        let note = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";
        reply.append(cstr!("note"), note);
    }
    reply.append(cstr!("ok"), 1.0);
    Ok(reply)
}

/// `{drop: "system.profile"}`: drops the entries of the database.
pub(crate) fn drop_collection(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let database = call.command.database();
    call.shared().profiler.drop_entries(database)?;
    Ok(rawdoc! { "ns": format!("{database}.{PROFILE}"), "ok": 1.0 })
}

impl State {
    /// Returns the settings of a database, as fields of a reply.
    fn describe(&self, database: &str) -> RawDocumentBuf {
        let profile = self.databases.get(database);
        let level = profile.map(|profile| profile.level).unwrap_or_default();
        let slow = i32::try_from(self.slow_millis).map_or(RawBson::Int64(self.slow_millis), RawBson::Int32);
        let mut reply = rawdoc! { "was": level.number(), "slowms": slow, "sampleRate": self.sample_rate };
        if let Some(filter) = profile.and_then(|profile| profile.filter.as_ref()) {
            reply.append(cstr!("filter"), filter.clone());
        }
        reply
    }

    fn change(&mut self, database: &str, level: Level, filter: FilterChange) -> Result<()> {
        if !self.databases.contains_key(database) {
            if level == Level::Off && !matches!(filter, FilterChange::Set(_)) {
                return Ok(());
            }
            // Databases that are off and have no entries are removed to make room.
            if self.databases.len() >= MAX_DATABASES {
                self.databases.retain(|_, profile| profile.level != Level::Off || !profile.entries.is_empty());
            }
            if self.databases.len() >= MAX_DATABASES {
                let message = format!("{MAX_DATABASES} databases are profiled, which is the limit");
                return Err(Failure::new(Code::BAD_VALUE, message));
            }
        }
        let profile = self.databases.entry(database.to_owned()).or_default();
        profile.level = level;
        match filter {
            FilterChange::None => {}
            FilterChange::Unset => profile.filter = None,
            FilterChange::Set(filter) => profile.filter = Some(filter),
        }
        Ok(())
    }

    /// Returns whether a command of this database that took `time` may be recorded: `None` if not, otherwise the filter that decides, if any.
    fn wants(&self, database: &str, time: Duration) -> Option<Option<RawDocumentBuf>> {
        let profile = self.databases.get(database).filter(|profile| profile.level != Level::Off)?;
        if let Some(filter) = &profile.filter {
            return Some(Some(filter.clone()));
        }
        let is_slow = || u128::try_from(self.slow_millis).map_or(true, |slow| time.as_micros() > slow * 1000);
        let is_drawn = || self.sample_rate >= 1.0 || draw() < self.sample_rate;
        (profile.level == Level::All || (is_slow() && is_drawn())).then_some(None)
    }

    fn add(&mut self, database: &str, entry: RawDocumentBuf) {
        let Some(profile) = self.databases.get_mut(database).filter(|profile| profile.level != Level::Off) else {
            return;
        };
        if entry.as_bytes().len() > MAX_ENTRY {
            return;
        }
        profile.copy = None;
        profile.bytes += entry.as_bytes().len();
        profile.entries.push_back(entry);
        while profile.bytes > MAX_BYTES {
            let Some(oldest) = profile.entries.pop_front() else { break };
            profile.bytes -= oldest.as_bytes().len();
        }
    }
}

/// Records a finished command in each profiled database that it names, if the settings of that database select it.
pub(crate) async fn record(call: &Call<'_>, reply: &RawDocument, time: Duration) {
    // The profile has the commands between two calls of `profile`. An unknown name may be mistyped, so its fields may contain anything.
    if call.command.name == "profile" || call.command.known.is_none() {
        return;
    }
    record_in(call, call.command.database(), None, reply, time).await;
    for part in BulkPart::all(call.command) {
        if part.database != call.command.database() {
            record_in(call, part.database, Some(part), reply, time).await;
        }
    }
}

async fn record_in(call: &Call<'_>, database: &str, part: Option<BulkPart<'_>>, reply: &RawDocument, time: Duration) {
    let profiler = &call.shared().profiler;
    let Some(filter) = profiler.lock().wants(database, time) else { return };
    let entry = entry::describe(call, part, reply, time);
    if let Some(filter) = filter
        && !matches!(matches(call, &filter, &entry).await, Ok(true))
    {
        return;
    }
    profiler.lock().add(database, entry);
}

/// Whether an entry matches a filter.
///
/// # Errors
/// Fails if the filter is invalid.
async fn matches(call: &Call<'_>, filter: &RawDocument, entry: &RawDocument) -> Result<bool> {
    let pipeline = rawdoc! {
        "aggregate": 1, "$db": "admin", "cursor": {}, "maxTimeMS": FILTER_MILLIS,
        "pipeline": [{ "$documents": { "$literal": [entry.to_owned()] } }, { "$match": filter.to_owned() }],
    };
    let reply = call.shared().commands.run(pipeline).await?;
    let found = reply.get_document("cursor")?.get_array("firstBatch")?;
    Ok(found.into_iter().next().is_some())
}

/// Returns a random number from 0 up to 1; 0 if the system has no random bytes, so that commands are recorded.
fn draw() -> f64 {
    auth::random::<4>().map_or(0.0, |bytes| f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_the_latest_entries_and_bounded_bytes() {
        let mut state = State { slow_millis: 100, sample_rate: 1.0, databases: HashMap::new() };
        state.change("shop", Level::All, FilterChange::None).unwrap();
        let entry = |number: i32| rawdoc! { "n": number, "text": "x".repeat(1000) };
        (0..5000).for_each(|number| state.add("shop", entry(number)));
        state.add("shop", rawdoc! { "text": "x".repeat(MAX_BYTES) });
        let profile = &state.databases["shop"];
        let held: usize = profile.entries.iter().map(|entry| entry.as_bytes().len()).sum();
        assert_eq!(profile.bytes, held);
        assert!(held <= MAX_BYTES && held > MAX_BYTES - 2000, "{held}");
        assert_eq!(profile.entries.back().unwrap().get_i32("n").unwrap(), 4999);
        let profile = state.databases.get_mut("shop").unwrap();
        assert!(Arc::ptr_eq(&profile.copy(), &profile.copy()));
        state.add("shop", entry(5000));
        let copy = state.databases.get_mut("shop").unwrap().copy();
        assert_eq!(copy.last().unwrap().get_i32("n").unwrap(), 5000);
    }

    #[test]
    fn the_level_and_the_threshold_choose() {
        let mut state = State { slow_millis: 100, sample_rate: 1.0, databases: HashMap::new() };
        let (fast, slow) = (Duration::from_millis(99), Duration::from_millis(101));
        for (level, expected) in [(Level::Off, [false; 2]), (Level::Slow, [false, true]), (Level::All, [true; 2])] {
            state.change("shop", level, FilterChange::None).unwrap();
            assert_eq!([fast, slow].map(|time| state.wants("shop", time).is_some()), expected, "{level:?}");
            assert!(state.wants("other", slow).is_none());
        }
        state.change("shop", Level::Slow, FilterChange::None).unwrap();
        state.sample_rate = 0.0;
        assert!(state.wants("shop", slow).is_none());
        state.change("shop", Level::Slow, FilterChange::Set(rawdoc! { "op": "query" })).unwrap();
        assert!(state.wants("shop", fast).unwrap().is_some());
    }

    #[test]
    fn the_number_of_databases_is_limited() {
        let mut state = State { slow_millis: 100, sample_rate: 1.0, databases: HashMap::new() };
        for number in 0..MAX_DATABASES {
            state.change(&number.to_string(), Level::All, FilterChange::None).unwrap();
        }
        assert!(state.change("more", Level::All, FilterChange::None).is_err());
        state.change("7", Level::Off, FilterChange::None).unwrap();
        state.change("more", Level::All, FilterChange::None).unwrap();
    }
}
