//! The thread of the pool that takes turns for the streams of a database that wait for a deadline or for commits of other processes.

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

/// Wakes `waker` at the deadline, and the streams of the database when other processes have committed, until the value is dropped. `None`
/// if neither is to be waited for.
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

/// The thread. Between turns it queues behind the pool's other work.
struct Turns {
    /// A database can be closed meanwhile.
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

/// A runtime that shuts down drops the turn that it has not begun.
impl Drop for Turns {
    fn drop(&mut self) {
        if !self.has_ended {
            self.wakers.abandon_turns();
        }
    }
}
