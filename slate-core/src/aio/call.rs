use std::{any::Any, fmt, future::IntoFuture};

use bson::{Bson, DateTime, Timestamp};
use serde::de::DeserializeOwned;

use super::{
    ChangeStream, Cursor, Documents, change_stream,
    documents::{Batch, collect},
    operation::{CancelOnDrop, Operation},
    runner::{Runner, Short},
};
use crate::{
    Aggregate, BulkWrite, BulkWriteResult, CancelToken, CopyProgress, CopyResult, CopyTo, Count, CreateIndex, Delete,
    Distinct, ExistingCollections, Expire, Expired, Explain, ExplainVerbosity, Find, FindOne, FindOneAndDelete,
    FindOneAndUpdate, FullDocument, FullDocumentBeforeChange, InsertMany, InsertManyResult, IntoDocument, Result,
    Update, UpdateResult, Verify, VerifyProgress, VerifyReport, Watch, api::setters::setters, call::ScopedRequest,
    interrupt::WaitBudget,
};

/// A builder of the blocking API whose call is awaited: `builder.await` and `builder.run().await` do the same.
///
/// Its methods are those of `B`.
#[derive(Clone)]
#[must_use = "nothing is done until it is awaited"]
pub struct Call<B> {
    builder: B,
    runner: Runner,
}

/// A builder of the blocking API that [`Call`] can run. Only this crate implements it.
pub trait Builder: Start<Self::Output> + Sized {
    /// The result of its `run`.
    type Output;
}

/// Starts a builder. Not exported, so that the runner stays private.
pub trait Start<R> {
    /// Runs the builder on the thread that `runner` chooses.
    fn start(self, runner: &Runner) -> Operation<R>;
}

impl<B> Call<B> {
    pub(super) fn new(builder: B, runner: Runner) -> Self {
        Self { builder, runner }
    }

    /// Returns the builder and its runner.
    pub(super) fn into_parts(self) -> (B, Runner) {
        (self.builder, self.runner)
    }

    pub(super) fn map<C>(self, map: impl FnOnce(B) -> C) -> Call<C> {
        Call { builder: map(self.builder), runner: self.runner }
    }
}

impl<B: Builder> Call<B> {
    /// Runs the call.
    ///
    /// # Errors
    /// Fails as `run` of the blocking builder does.
    pub fn run(self) -> Operation<B::Output> {
        self.builder.start(&self.runner)
    }
}

impl<B: Builder> IntoFuture for Call<B> {
    type Output = Result<B::Output>;
    type IntoFuture = Operation<B::Output>;

    fn into_future(self) -> Operation<B::Output> {
        self.run()
    }
}

impl<B: fmt::Debug> fmt::Debug for Call<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// Lists builders: how the runner executes them, their results, whether they have `explain`, and their setters.
macro_rules! builders {
    ($([$($generics:tt)*] $builder:ty: $how:ident -> $output:ty $([$explain:ident])?, $($setter:ident)*;)*) => {
        $(
            impl<$($generics)*> Builder for $builder {
                type Output = $output;
            }

            impl<$($generics)*> Start<$output> for $builder {
                fn start(mut self, runner: &Runner) -> Operation<$output> {
                    let token = self.child_token();
                    builders!(@ $how runner, token, self)
                }
            }

            impl<$($generics)*> Call<$builder> {
                setters! { async: $($setter),* }

                $(
                    /// Returns the plan; see [`Find::explain`]. Nothing is written.
                    ///
                    /// # Errors
                    /// Fails as `explain` of the blocking builder does.
                    pub fn $explain(mut self, verbosity: ExplainVerbosity) -> Operation<Explain> {
                        let token = self.builder.child_token();
                        self.runner.block(token, move || self.builder.explain(verbosity))
                    }
                )?
            }
        )*
    };
    (@ read $runner:ident, $token:ident, $builder:ident) => {
        $runner.read($token, $builder, Self::run)
    };
    (@ short_write $runner:ident, $token:ident, $builder:ident) => {
        $runner.write_short($token, $builder, Self::run)
    };
    (@ stream $runner:ident, $token:ident, $find:ident) => {{
        // Cancels the blocking cursor when the stream is dropped: the cursor outlives this operation.
        let abandoned = CancelOnDrop($token);
        let first = $runner.read(CancelToken::new(), $find, Batch::first);
        Operation::new(async move { Ok(Documents::new(Cursor::new(first.await?, abandoned))) })
    }};
    (@ watch $runner:ident, $token:ident, $watch:ident) => {
        change_stream::open($watch, $token, $runner)
    };
    (@ $how:ident $runner:ident, $token:ident, $builder:ident) => {
        $runner.$how($token, move || $builder.run())
    };
}

builders! {
    [T: DeserializeOwned + Send + Any] Find<T>: stream -> Documents<T> [explain],
        sort projection skip limit hint deadline cancel memory_limit allow_disk_use let_variables collation;
    [T: DeserializeOwned + Send + Any] FindOne<T>: read -> Option<T> [explain],
        sort projection skip hint deadline cancel memory_limit allow_disk_use let_variables collation;
    [T: DeserializeOwned + Send + Any] Aggregate<T>: stream -> Documents<T> [explain],
        hint deadline cancel memory_limit allow_disk_use let_variables collation bypass_document_validation;
    [] Count: read -> u64 [explain], skip limit collation hint deadline cancel memory_limit;
    [] Distinct: read -> Vec<Bson> [explain], sort skip limit collation hint deadline cancel memory_limit;
    [] Update: short_write -> UpdateResult [explain],
        upsert array_filters sort hint deadline cancel memory_limit let_variables collation bypass_document_validation
        bypass_empty_ts_replacement;
    [] Delete: short_write -> u64 [explain], hint deadline cancel memory_limit let_variables collation;
    [T: DeserializeOwned + Send + Any] FindOneAndUpdate<T>: short_write -> Option<T>,
        upsert array_filters return_document sort projection hint deadline cancel memory_limit let_variables collation
        bypass_document_validation bypass_empty_ts_replacement;
    [T: DeserializeOwned + Send + Any] FindOneAndDelete<T>: short_write -> Option<T>,
        sort projection hint deadline cancel memory_limit let_variables collation;
    [] InsertMany<'static>: write -> InsertManyResult,
        ordered all_or_nothing bypass_document_validation bypass_empty_ts_replacement deadline cancel;
    [] BulkWrite: write -> BulkWriteResult,
        ordered bypass_document_validation bypass_empty_ts_replacement deadline cancel;
    [] CopyTo<'static>: block -> CopyResult, deadline cancel;
    [] CreateIndex<'static>: write -> String, deadline cancel;
    [] Expire: write -> Expired, deadline cancel;
    [] Verify<'static>: block -> VerifyReport, deadline cancel;
    [] Watch: watch -> ChangeStream, let_variables collation deadline cancel;
}

impl<T: DeserializeOwned + Send + Any> Call<Find<T>> {
    /// Counts the documents instead of returning them; see [`Find::count`].
    pub fn count(self) -> Call<Count> {
        self.map(Find::count)
    }

    /// Returns distinct values instead of the documents; see [`Find::distinct`].
    pub fn distinct(self, path: &str) -> Call<Distinct> {
        self.map(|find| find.distinct(path))
    }
}

impl<T: DeserializeOwned + Send + Any> Call<Aggregate<T>> {
    /// Reads the resulting documents as another type.
    pub fn with_type<U>(self) -> Call<Aggregate<U>> {
        self.map(Aggregate::with_type)
    }
}

/// Declares `cursor`, `collect` and `first` of a builder.
macro_rules! streams {
    ($($builder:ident)*) => {
        $(
            impl<T: DeserializeOwned + Send + Any> Call<$builder<T>> {
                /// Opens a cursor that lends each document.
                ///
                /// # Errors
                #[doc = concat!("As [`", stringify!($builder), "::cursor`].")]
                pub fn cursor(self) -> Operation<Cursor> {
                    let documents = self.run();
                    Operation::new(async move { Ok(documents.await?.into_cursor()) })
                }

                /// Returns all documents at once.
                ///
                /// # Errors
                #[doc = concat!("As [`", stringify!($builder), "::run`]; if a document is not a `T`.")]
                pub fn collect(mut self) -> Operation<Vec<T>> {
                    self.runner.read(self.builder.child_token(), self.builder, collect)
                }

                /// Returns the first document, `None` if there is none.
                ///
                /// # Errors
                #[doc = concat!("As [`", stringify!($builder), "::first`].")]
                pub fn first(mut self) -> Operation<Option<T>> {
                    self.runner.read(self.builder.child_token(), self.builder, $builder::first)
                }
            }
        )*
    };
}

streams! { Find Aggregate }

impl Call<Distinct> {
    /// Collects the values as `T`.
    ///
    /// # Errors
    /// Fails as [`Distinct::run_as`] does.
    pub fn run_as<T: DeserializeOwned + Send + 'static>(mut self) -> Operation<Vec<T>> {
        self.runner.read(self.builder.child_token(), self.builder, Distinct::run_as)
    }
}

/// Declares the setters that only one builder has.
macro_rules! own_setters {
    ($($builder:ident $(<$lifetime:lifetime>)?: $($name:ident($($argument:ident: $type:ty)?))*;)*) => {
        $(
            impl Call<$builder$(<$lifetime>)?> {
                $(
                    #[doc = concat!("See [`", stringify!($builder), "::", stringify!($name), "`].")]
                    pub fn $name(self, $($argument: $type)?) -> Self {
                        self.map(|builder| builder.$name($($argument)?))
                    }
                )*
            }
        )*
    };
}

own_setters! {
    CopyTo<'static>:
        existing(existing: ExistingCollections)
        progress(progress: impl FnMut(&CopyProgress<'_>) + Send + 'static);
    CreateIndex<'static>: progress(progress: impl FnMut(u64) + Send + 'static);
    Expire: at(now: DateTime) limit(documents: u64);
    Verify<'static>: progress(progress: impl FnMut(&VerifyProgress<'_>) + Send + 'static);
    Watch:
        full_document(full_document: FullDocument)
        full_document_before_change(before: FullDocumentBeforeChange)
        resume_after(token: impl IntoDocument)
        start_after(token: impl IntoDocument)
        start_at(time: Timestamp)
        expanded_events();
}

/// A builder whose call is first tried without waiting.
pub(super) trait ShortBuilder: Clone {
    fn scoped(&self) -> &ScopedRequest;

    fn scoped_mut(&mut self) -> &mut ScopedRequest;

    /// Returns the budget of a call that must not wait; `None` for a call that may wait.
    fn budget(&self) -> Option<&WaitBudget> {
        self.scoped().request.call.interrupt.budget()
    }
}

/// A call is not tried if its pipeline writes, nor in a scope where every call would wait.
impl<B: ShortBuilder + Send + 'static> Short for B {
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        let ScopedRequest { scope, request, .. } = self.scoped();
        let mut tried = (scope.tries_queries() && !request.writes()).then(|| self.clone())?;
        tried.scoped_mut().request.call.interrupt.limit_to(budget);
        Some(tried)
    }
}

/// Implements [`ShortBuilder`] for builders with this field.
macro_rules! short_builders {
    ($([$($generic:ident)?] $builder:ty: $field:ident $(. $rest:ident)*;)*) => {
        $(
            impl$(<$generic>)? ShortBuilder for $builder {
                fn scoped(&self) -> &ScopedRequest {
                    &self.$field$(.$rest)*
                }

                fn scoped_mut(&mut self) -> &mut ScopedRequest {
                    &mut self.$field$(.$rest)*
                }
            }
        )*
    };
}

short_builders! {
    [T] Find<T>: scoped;
    [T] FindOne<T>: find.scoped;
    [T] Aggregate<T>: scoped;
    [] Count: scoped;
    [] Distinct: scoped;
    [] Update: scoped;
    [] Delete: scoped;
    [T] FindOneAndUpdate<T>: scoped;
    [T] FindOneAndDelete<T>: scoped;
}

impl<T: 'static> Short for crate::ReadCollection<T> {
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        Self::within_budget(self, budget)
    }
}
