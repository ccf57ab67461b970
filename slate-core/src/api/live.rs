use std::{
    any::Any,
    marker::PhantomData,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;

use crate::{
    LiveChange, Result,
    api::watch::Following,
    call::{live::LiveState, live_change::converted},
    document::As,
};

/// A live query: an iterator of the steps that build its result, and then of those that update it. It waits for the next step, and ends only after an
/// error; see [`Find::live`](crate::Find::live).
pub struct LiveQuery<T> {
    following: Following<LiveState>,
    collection: Arc<str>,
    documents: As<T>,
}

impl<T: DeserializeOwned + Any> LiveQuery<T> {
    pub(crate) fn new(following: Following<LiveState>, collection: Arc<str>) -> Self {
        Self { following, collection, documents: PhantomData }
    }

    /// Waits at most this time for the next step; `None` if there was none, or the live query has ended.
    ///
    /// # Errors
    /// Fails if a document is not a `T`, after which other steps may follow; otherwise as the query does, which ends the live query.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<LiveChange<T>>> {
        self.next_until(Instant::now().checked_add(time))
    }

    fn next_until(&mut self, until: Option<Instant>) -> Result<Option<LiveChange<T>>> {
        let step = self.following.next_until(until)?;
        step.map(|step| converted(step, &self.collection)).transpose()
    }
}

impl<T: DeserializeOwned + Any> Iterator for LiveQuery<T> {
    type Item = Result<LiveChange<T>>;

    fn next(&mut self) -> Option<Result<LiveChange<T>>> {
        self.next_until(None).transpose()
    }
}

crate::debug::shown! { self: LiveQuery<T> { collection: self.collection } }
