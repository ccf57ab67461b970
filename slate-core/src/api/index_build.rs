//! Builds an index in several transactions.

use std::time::{Duration, Instant};

use slate_query::Code;
use slate_store::Keyspace;

use crate::{
    Durability, Error, ErrorKind, Result,
    call::{
        DatabaseHandle,
        retry::{FIRST_PAUSE, LONGEST_PAUSE},
    },
    call_context::CallContext,
    metrics::trace,
    write::{BUILD_ROUND, BuildProgress, BuildRound, BuildStart, BuildSteps, Created, IndexSpec},
};

/// Creates an index while writers of the collection continue. Returns its name, and whether it is new.
///
/// If the documents violate the index, it is dropped. It is also dropped if the call is interrupted, unless another call began the build. After a
/// crash or an error of the storage the index stays in the state of being built, and the next call for the same index continues the build.
pub(crate) fn create(
    database: &DatabaseHandle,
    collection: &str,
    spec: &IndexSpec,
    progress: BuildProgress<'_>,
    call: &CallContext,
) -> Result<(String, Created)> {
    call.check()?;
    let begin = |steps| database.write(call, |writer| writer.begin_build(collection, spec, steps));
    let mut begun = begin(BuildSteps::Any)?;
    if let BuildStart::Small(name) = &begun {
        let start = Instant::now();
        let created = database.write(call, |writer| writer.create_index(collection, spec, &mut *progress, call));
        match created {
            // The collection has few documents, but more entries than a transaction may write.
            Err(error) if error.kind() == ErrorKind::TooLarge => begun = begin(BuildSteps::Rounds)?,
            created => {
                trace::index_built(collection, name, start.elapsed(), created.as_ref().err());
                return created;
            }
        }
    }
    match begun {
        // With `BuildSteps::Rounds`, `begin_build` never returns `Small`.
        BuildStart::Exists(name) | BuildStart::Small(name) => Ok((name, Created::Exists)),
        BuildStart::Declared { name, keyspace, declared } => {
            finish(database, collection, &[Build { name: name.clone(), keyspace, declared }], progress, call)?;
            // If this fails, queries use the index without statistics.
            let _ = database.engine_to_write()?.analyze(collection, Duration::ZERO);
            Ok((name, Created::New))
        }
    }
}

/// Creates indexes while writers of the collection continue. All of them become ready in one commit, or none does, with two exceptions: an index that
/// another call builds, too, becomes ready when the first of the two calls finishes it; and builds that a crash has interrupted are continued and
/// finished one by one. Returns the number of indexes before, without the one on `_id` (`None` if the collection did not exist), and after.
pub(crate) fn create_all(
    database: &DatabaseHandle,
    collection: &str,
    specs: &[IndexSpec],
    call: &CallContext,
) -> Result<(Option<usize>, usize)> {
    call.check()?;
    // An error in one of the definitions is found before anything is built.
    let begin = |steps| {
        database.write(call, |writer| {
            let before = writer.collection(collection)?.map(|there| there.indexes.len());
            let (mut created, mut builds) = (0, Vec::<Build>::new());
            for spec in specs {
                match writer.begin_build(collection, spec, steps)? {
                    BuildStart::Exists(_) => {}
                    BuildStart::Small(_) => {
                        let (_, made) = writer.create_index(collection, spec, &mut |_| {}, call)?;
                        created += usize::from(made == Created::New);
                    }
                    BuildStart::Declared { name, keyspace, declared } => {
                        // A command may name an index twice.
                        if builds.iter().all(|build| build.keyspace != keyspace) {
                            builds.push(Build { name, keyspace, declared });
                        }
                    }
                }
            }
            Ok((before, created, builds))
        })
    };
    let (before, created, builds) = match begin(BuildSteps::Any) {
        // The collection has few documents, but more entries than a transaction may write.
        Err(error) if error.kind() == ErrorKind::TooLarge => begin(BuildSteps::Rounds)?,
        begun => begun?,
    };
    if !builds.is_empty() {
        finish(database, collection, &builds, &mut |_| {}, call)?;
        // If this fails, queries use the indexes without statistics.
        let _ = database.engine_to_write()?.analyze(collection, Duration::ZERO);
    }
    Ok((before, before.unwrap_or_default() + created + builds.len()))
}

/// Finishes interrupted index builds and returns how many.
pub(crate) fn resume_all(database: &DatabaseHandle) -> Result<u64> {
    let call = &CallContext::begin(database.limits());
    let mut finished = 0;
    for collection in database.catalog()?.collections() {
        for index in &collection.building {
            let (name, keyspace) = (index.name.to_string(), index.keyspace);
            let build = Build { name, keyspace, declared: Created::Exists };
            finish(database, &collection.name, &[build], &mut |_| {}, call)?;
            finished += 1;
        }
    }
    Ok(finished)
}

/// An index that is being built.
struct Build {
    name: String,
    keyspace: Keyspace,
    /// `New` if this call has declared it.
    declared: Created,
}

/// Fills indexes, and makes all of them ready in one commit. If it fails, the indexes that this call has declared are dropped, unless their builds
/// are to be continued later or another call has finished them.
fn finish(
    database: &DatabaseHandle,
    collection: &str,
    builds: &[Build],
    progress: BuildProgress<'_>,
    call: &CallContext,
) -> Result<()> {
    for build in builds {
        let start = Instant::now();
        let filled = fill(database, BuildTarget { collection, build }, progress, call);
        trace::index_built(collection, &build.name, start.elapsed(), filled.as_ref().err());
        let Err(error) = filled else { continue };
        // Every call that builds this index would fail on these documents, so the build is dropped for all calls.
        if error.is_refusal() {
            abandon(database, collection, build);
        }
        return Err(abandon_own(database, collection, builds, error));
    }
    let keyspaces: Vec<Keyspace> = builds.iter().map(|build| build.keyspace).collect();
    match database.write(call, |writer| writer.finish_builds(collection, &keyspaces)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(abandon_own(database, collection, builds, dropped())),
        Err(error) => Err(abandon_own(database, collection, builds, error)),
    }
}

/// Drops the builds that this call has declared, unless they are to be continued after this error. Returns the error.
fn abandon_own(database: &DatabaseHandle, collection: &str, builds: &[Build], error: Error) -> Error {
    let is_final =
        error.is_refusal() || error.kind() == ErrorKind::Interrupted || error.code() == Code::INDEX_BUILD_ABORTED.0;
    if is_final {
        builds.iter().filter(|build| build.declared == Created::New).for_each(|own| abandon(database, collection, own));
    }
    error
}

/// Drops an index that is being built. If that fails, the build can be dropped or finished later.
fn abandon(database: &DatabaseHandle, collection: &str, build: &Build) {
    let _ = database.write(&CallContext::default(), |writer| writer.abandon_build(collection, build.keyspace));
}

fn dropped() -> Error {
    let message = "the index was dropped while it was being built";
    Error::new(ErrorKind::NotFound, Code::INDEX_BUILD_ABORTED, message)
}

/// The index to fill.
#[derive(Clone, Copy)]
struct BuildTarget<'t> {
    collection: &'t str,
    build: &'t Build,
}

fn fill(
    database: &DatabaseHandle,
    target: BuildTarget<'_>,
    progress: BuildProgress<'_>,
    call: &CallContext,
) -> Result<()> {
    let mut limit = BUILD_ROUND;
    let mut pause = FIRST_PAUSE;
    let mut last_success = Instant::now();
    loop {
        call.check()?;
        match round(database, target, limit, call) {
            Ok(BuildRound::More(read)) => {
                progress(read);
                limit = (limit * 2).min(BUILD_ROUND);
                (pause, last_success) = (FIRST_PAUSE, Instant::now());
            }
            Ok(BuildRound::Filled(read)) => {
                progress(read);
                return Ok(());
            }
            Ok(BuildRound::Gone) => return Err(dropped()),
            // The documents of this round have more entries than a transaction may write.
            Err(error) if error.kind() == ErrorKind::TooLarge && limit > 1 => limit /= 2,
            // A round of fewer documents is less likely to conflict with a writer.
            Err(error) if error.is_retryable() && last_success.elapsed() < database.lock_timeout() => {
                limit = (limit / 2).max(1);
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn round(database: &DatabaseHandle, target: BuildTarget<'_>, limit: usize, call: &CallContext) -> Result<BuildRound> {
    let BuildTarget { collection, build } = target;
    let mut writer = database.begin_write(call)?;
    let round = writer.build_round(collection, build.keyspace, limit, call)?;
    // Not synced: rounds that a crash loses are repeated.
    database.finish(writer, Durability::Deferred)?;
    if let BuildRound::More(documents) | BuildRound::Filled(documents) = &round {
        trace::index_round(collection, &build.name, *documents);
    }
    Ok(round)
}
