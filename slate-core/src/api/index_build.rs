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
/// If the documents violate the index, or the call is interrupted, nothing of the index remains. After a crash or an error of
/// the storage the index remains as being built, and the next call for the same index continues the build.
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
            // Its documents are few, but have more entries than a transaction may write.
            Err(error) if error.kind() == ErrorKind::TooLarge => begun = begin(BuildSteps::Rounds)?,
            created => {
                trace::index_built(collection, name, start.elapsed(), created.as_ref().err());
                return created;
            }
        }
    }
    match begun {
        BuildStart::Exists(name) | BuildStart::Small(name) => Ok((name, Created::Exists)),
        BuildStart::Declared { name, keyspace } => {
            finish(database, BuildTarget { collection, index: &name, keyspace }, progress, call)?;
            // If this fails, queries use the index without statistics.
            let _ = database.engine_to_write()?.analyze(collection, Duration::ZERO);
            Ok((name, Created::New))
        }
    }
}

/// Creates indexes while writers of the collection continue: all of them or, as far as the process lives, none. Returns how many indexes
/// the collection had, without that on `_id`, if it was there, and how many it has.
pub(crate) fn create_all(
    database: &DatabaseHandle,
    collection: &str,
    specs: &[IndexSpec],
    call: &CallContext,
) -> Result<(Option<usize>, usize)> {
    call.check()?;
    // What is wrong with one of the definitions is found before anything is built.
    let begin = |steps| {
        database.write(call, |writer| {
            let before = writer.collection(collection)?.map(|there| there.indexes.len());
            let (mut created, mut declared) = (0, Vec::new());
            for spec in specs {
                match writer.begin_build(collection, spec, steps)? {
                    BuildStart::Exists(_) => {}
                    BuildStart::Small(_) => {
                        let (_, made) = writer.create_index(collection, spec, &mut |_| {}, call)?;
                        created += usize::from(made == Created::New);
                    }
                    BuildStart::Declared { name, keyspace } => declared.push((name, keyspace)),
                }
            }
            Ok((before, created, declared))
        })
    };
    let (before, created, declared) = match begin(BuildSteps::Any) {
        // The documents are few, but have more entries than a transaction may write.
        Err(error) if error.kind() == ErrorKind::TooLarge => begin(BuildSteps::Rounds)?,
        begun => begun?,
    };
    for (at, (index, keyspace)) in declared.iter().enumerate() {
        let target = BuildTarget { collection, index, keyspace: *keyspace };
        if let Err(error) = finish(database, target, &mut |_| {}, call) {
            if is_final(&error) {
                undo(database, collection, &declared, at);
            }
            return Err(error);
        }
    }
    if !declared.is_empty() {
        // If this fails, queries use the indexes without statistics.
        let _ = database.engine_to_write()?.analyze(collection, Duration::ZERO);
    }
    Ok((before, before.unwrap_or_default() + created + declared.len()))
}

/// Drops the indexes whose builds were finished before one that was not, and those whose builds would have followed. What fails here
/// remains, and can be dropped or finished later.
fn undo(database: &DatabaseHandle, collection: &str, declared: &[(String, Keyspace)], failed: usize) {
    for (at, (index, keyspace)) in declared.iter().enumerate().filter(|(at, _)| *at != failed) {
        let _ = database.write(&CallContext::default(), |writer| match at < failed {
            true => writer.drop_index(collection, index).map(drop),
            false => writer.abandon_build(collection, *keyspace).map(drop),
        });
    }
}

/// Whether a build that has ended with this error is not to be continued.
fn is_final(error: &Error) -> bool {
    error.is_refusal() || error.kind() == ErrorKind::Interrupted
}

/// Finishes interrupted index builds and returns how many.
pub(crate) fn resume_all(database: &DatabaseHandle) -> Result<u64> {
    let call = &CallContext::begin(database.limits());
    let mut finished = 0;
    for collection in database.catalog()?.collections() {
        for index in &collection.building {
            let target = BuildTarget { collection: &collection.name, index: &index.name, keyspace: index.keyspace };
            finish(database, target, &mut |_| {}, call)?;
            finished += 1;
        }
    }
    Ok(finished)
}

/// The index that is being built.
#[derive(Clone, Copy)]
struct BuildTarget<'t> {
    collection: &'t str,
    index: &'t str,
    keyspace: Keyspace,
}

fn finish(
    database: &DatabaseHandle,
    target: BuildTarget<'_>,
    progress: BuildProgress<'_>,
    call: &CallContext,
) -> Result<()> {
    let BuildTarget { collection, index, keyspace } = target;
    let start = Instant::now();
    let filled = fill(database, target, progress, call);
    trace::index_built(collection, index, start.elapsed(), filled.as_ref().err());
    if filled.as_ref().is_err_and(is_final) {
        // If that fails, too, the index remains as being built and can be dropped or finished later.
        let _ = database.write(&CallContext::default(), |writer| writer.abandon_build(collection, keyspace));
    }
    filled
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
            Ok(BuildRound::Ready(read)) => {
                progress(read);
                return Ok(());
            }
            Ok(BuildRound::Gone) => {
                let message = "the index was dropped while it was being built";
                return Err(Error::new(ErrorKind::NotFound, Code::INDEX_BUILD_ABORTED, message));
            }
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
    let BuildTarget { collection, index, keyspace } = target;
    let mut writer = database.begin_write(call)?;
    let round = writer.build_round(collection, keyspace, limit, call)?;
    let durability = match round {
        // After a crash, lost rounds are repeated.
        BuildRound::More(_) => Durability::Deferred,
        BuildRound::Ready(_) | BuildRound::Gone => database.durability(),
    };
    database.finish(writer, durability)?;
    if let BuildRound::More(documents) | BuildRound::Ready(documents) = &round {
        trace::index_round(collection, index, *documents);
    }
    Ok(round)
}
