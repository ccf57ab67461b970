//! Looks for commits of other processes, which wake no stream of this one.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::engine::Engine;
use crate::{Result, changes::Seen};

/// Maximum number of events that a look reads. If there are more, it wakes all streams.
const LOOK_EVENTS: usize = 20_000;

/// Wakes the streams that watch a collection changed since the last look; all streams if the changes are unknown, too many,
/// or unreadable.
pub(crate) fn look(engine: &dyn Engine) {
    // The error is not lost: the woken streams fail with it, too.
    if look_further(engine).is_err() {
        engine.wakers().set_seen(None);
        engine.wakers().wake_all();
    }
}

fn look_further(engine: &dyn Engine) -> Result<()> {
    let (reader, wakers) = (engine.snapshot()?, engine.wakers());
    let log = reader.catalog().change_log().map(|log| log.id);
    let position = reader.last_change()?;
    let seen = wakers.seen();
    if seen.is_some_and(|seen| Some(seen.log) == log && seen.position == position) {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    let mut is_known = false;
    if let Some(seen) = seen.filter(|seen| Some(seen.log) == log) {
        let mut left = LOOK_EVENTS;
        let broken = reader.changes(seen.position, &mut |_, _, event| {
            for name in [Some(event.source.name), event.renamed_to()].into_iter().flatten() {
                if !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
            left -= 1;
            Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        is_known = broken.is_none() && seen.position >= reader.trimmed_changes()?;
    }
    wakers.set_seen(log.map(|log| Seen { log, position }));
    if is_known {
        wakers.committed(names.iter().map(String::as_str));
    } else {
        wakers.wake_all();
    }
    Ok(())
}
