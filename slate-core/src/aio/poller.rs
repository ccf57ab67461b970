//! The thread of the pool that polls for the waiting streams of a database, for deadlines and for commits of other processes.

use std::{
    sync::{Arc, Weak},
    task::Waker,
    time::Instant,
};

use tokio::runtime::Handle;

use super::runner::runtime;
use crate::{
    Result,
    call::{DatabaseHandle, Engine, poll::look},
    changes::{OtherWriters, Polled, Turn, Wakers},
};

/// Wakes `waker` at `deadline`, and the streams of the database at commits of other processes, until the returned value is dropped. `None` without a
/// deadline if no other process can commit.
pub(super) fn poll(database: &DatabaseHandle, waker: Waker, deadline: Option<Instant>) -> Result<Option<Polled>> {
    let engine = database.engine()?;
    let writers = database.other_writers()?;
    if deadline.is_none() && writers == OtherWriters::None {
        return Ok(None);
    }
    let runtime = runtime()?;
    let wakers = engine.wakers();
    let (polled, starts) = wakers.poll(waker, writers, deadline);
    if starts {
        let turns = Turns { engine: Arc::downgrade(&engine), wakers: Arc::clone(wakers), has_ended: false };
        turns.start(&runtime);
    }
    Ok(Some(polled))
}

/// The polling thread. Between turns it queues behind the pool's other work.
struct Turns {
    /// Weak, so that the database can be closed meanwhile.
    engine: Weak<dyn Engine>,
    wakers: Arc<Wakers>,
    has_ended: bool,
}

impl Turns {
    fn start(self, runtime: &Handle) {
        runtime.spawn_blocking(move || self.run());
    }

    fn run(mut self) {
        let turn = self.wakers.take_turn();
        if turn == Turn::Last {
            self.has_ended = true;
            return;
        }
        match self.engine.upgrade() {
            Some(engine) if turn == Turn::Look => look(&*engine),
            _ => {}
        }
        self.start(&Handle::current());
    }
}

/// A runtime that shuts down drops a turn that it has not begun.
impl Drop for Turns {
    fn drop(&mut self) {
        if !self.has_ended {
            self.wakers.abandon_turns();
        }
    }
}
