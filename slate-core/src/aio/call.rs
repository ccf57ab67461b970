use std::{any::Any, fmt, future::IntoFuture, time::Duration};

use bson::Bson;
use serde::de::DeserializeOwned;

use super::{
    Cursor, Documents,
    documents::Batch,
    operation::{CancelOnDrop, Operation},
    runner::Runner,
};
use crate::{
    BulkWriteResult, CancelToken, Count, Distinct, Explain, ExplainVerbosity, Hint, InsertManyResult, IntoDocument,
    Result, ReturnDocument, UpdateResult, VerifyProgress, VerifyReport,
};

/// A builder of the blocking API whose call is awaited: `builder.await` and `builder.run().await` do the same.
///
/// Its methods are those of `B`, where they are described.
#[must_use = "nothing is done until it is awaited"]
pub struct Call<B> {
    builder: B,
    runner: Runner,
    token: CancelToken,
}

/// A builder of the blocking API that [`Call`] can run.
pub trait Builder: Sized {
    /// The result of its `run`.
    type Output;

    /// Runs it on the thread that `run` chooses.
    #[doc(hidden)]
    fn start(self, call: Context) -> Operation<Self::Output>;
}

/// Where a call runs and what cancels it.
#[derive(Debug)]
pub struct Context {
    runner: Runner,
    token: CancelToken,
}

impl<B> Call<B> {
    pub(super) fn new(builder: B, runner: Runner) -> Self {
        Self { builder, runner, token: CancelToken::new() }
    }

    /// Makes the call fail with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when the token is cancelled. A
    /// write then has changed nothing.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    fn map<C>(self, map: impl FnOnce(B) -> C) -> Call<C> {
        Call { builder: map(self.builder), runner: self.runner, token: self.token }
    }

    fn read<R: Send + 'static>(self, work: impl FnOnce(B, CancelToken) -> Result<R> + Send + 'static) -> Operation<R>
    where
        B: Send + 'static,
    {
        let Self { builder, runner, token } = self;
        runner.read(&token, move |token| work(builder, token))
    }
}

impl<B: Builder> Call<B> {
    /// Runs the call.
    ///
    /// # Errors
    /// As `run` of the blocking builder.
    pub fn run(self) -> Operation<B::Output> {
        self.builder.start(Context { runner: self.runner, token: self.token })
    }
}

impl<B: Builder> IntoFuture for Call<B> {
    type Output = Result<B::Output>;
    type IntoFuture = Operation<B::Output>;

    fn into_future(self) -> Operation<B::Output> {
        self.run()
    }
}

impl<B: Clone> Clone for Call<B> {
    fn clone(&self) -> Self {
        Self { builder: self.builder.clone(), runner: self.runner.clone(), token: self.token.clone() }
    }
}

impl<B: fmt::Debug> fmt::Debug for Call<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// Implements [`Builder`] by the builder's own `cancel` and `run`, on the runner's `read` or `write`.
macro_rules! builder {
    ($how:ident [$($generics:tt)*] $builder:ty => $output:ty) => {
        impl<$($generics)*> Builder for $builder {
            type Output = $output;

            fn start(self, Context { runner, token }: Context) -> Operation<$output> {
                runner.$how(&token, |token| self.cancel(token).run())
            }
        }
    };
}

builder!(read [] Count => u64);
builder!(read [] Distinct => Vec<Bson>);
builder!(read [] crate::Verify<'static> => VerifyReport);
builder!(write [] crate::Update => UpdateResult);
builder!(write [] crate::Delete => u64);
builder!(write [] crate::InsertMany<'static> => InsertManyResult);
builder!(write [] crate::BulkWrite => BulkWriteResult);
builder!(write [] crate::CreateIndex<'static> => String);
builder!(write [T: DeserializeOwned + Send + Any] crate::FindOneAndUpdate<T> => Option<T>);
builder!(write [T: DeserializeOwned + Send + Any] crate::FindOneAndDelete<T> => Option<T>);

impl<T: DeserializeOwned + Send + Any> Builder for crate::Find<T> {
    type Output = Documents<T>;

    fn start(self, Context { runner, token }: Context) -> Operation<Documents<T>> {
        // The token of the stream, which outlives this operation.
        let abandoned = CancelOnDrop(token.child());
        let find = self.cancel(abandoned.0.clone());
        let first = runner.read(&token, |_| Ok(Batch::first(find.cursor()?)));
        Operation::new(async move { Ok(Documents::new(first.await?, abandoned)) })
    }
}

/// Declares methods that call the builder's own of the same name.
macro_rules! setters {
    ([$($generics:tt)*] $builder:ty: $($name:ident($($argument:ident: $type:ty),*);)*) => {
        impl<$($generics)*> Call<$builder> {
            $(
                #[doc = concat!("See `", stringify!($name), "` of [`slate_core::", stringify!($builder), "`].")]
                #[doc = ""]
                #[doc = concat!("[`slate_core::", stringify!($builder), "`]: ", stringify!($builder))]
                pub fn $name(self, $($argument: $type),*) -> Self {
                    self.map(|builder| builder.$name($($argument),*))
                }
            )*
        }
    };
}

/// Declares `explain`.
macro_rules! explain {
    ([$($generics:tt)*] $builder:ty) => {
        impl<$($generics)*> Call<$builder> {
            /// Returns the plan; see [`slate_core::Find::explain`](crate::Find::explain). Nothing is written.
            ///
            /// # Errors
            /// As the call's own.
            pub fn explain(self, verbosity: ExplainVerbosity) -> Operation<Explain> {
                self.read(move |builder, token| builder.cancel(token).explain(verbosity))
            }
        }
    };
}

setters! { [T] crate::Find<T>:
    sort(sort: impl IntoDocument);
    projection(projection: impl IntoDocument);
    skip(documents: u64);
    limit(documents: u64);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}
explain!([T: 'static] crate::Find<T>);

impl<T> Call<crate::Find<T>> {
    /// Counts the documents instead of returning them; see [`slate_core::Find::count`](crate::Find::count).
    pub fn count(self) -> Call<Count> {
        self.map(crate::Find::count)
    }

    /// Returns distinct values instead of the documents; see [`slate_core::Find::distinct`](crate::Find::distinct).
    pub fn distinct(self, path: &str) -> Call<Distinct> {
        self.map(|find| find.distinct(path))
    }

    /// Opens a cursor that lends each document.
    ///
    /// # Errors
    /// As [`slate_core::Find::cursor`](crate::Find::cursor).
    pub fn cursor(self) -> Operation<Cursor> {
        let documents = self.map(crate::Find::with_raw_documents).run();
        Operation::new(async move { Ok(Cursor::new(documents.await?)) })
    }
}

impl<T: DeserializeOwned + Send + Any> Call<crate::Find<T>> {
    /// Returns all documents at once.
    ///
    /// # Errors
    /// As [`slate_core::Find::run`](crate::Find::run); if a document is not a `T`.
    pub fn collect(self) -> Operation<Vec<T>> {
        self.read(|find, token| find.cancel(token).run()?.collect())
    }

    /// Returns the first document, `None` if there is none.
    ///
    /// # Errors
    /// As [`slate_core::Find::first`](crate::Find::first).
    pub fn first(self) -> Operation<Option<T>> {
        self.read(|find, token| find.cancel(token).first())
    }
}

setters! { [] Count:
    skip(documents: u64);
    limit(documents: u64);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}
explain!([] Count);

setters! { [] Distinct:
    sort(sort: impl IntoDocument);
    skip(values: u64);
    limit(values: u64);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}
explain!([] Distinct);

setters! { [] crate::Update:
    upsert();
    array_filters(filters: impl IntoIterator<Item = impl IntoDocument>);
    sort(sort: impl IntoDocument);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}
explain!([] crate::Update);

setters! { [] crate::Delete:
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}
explain!([] crate::Delete);

setters! { [T: DeserializeOwned + Any] crate::FindOneAndUpdate<T>:
    upsert();
    array_filters(filters: impl IntoIterator<Item = impl IntoDocument>);
    return_document(returns: ReturnDocument);
    sort(sort: impl IntoDocument);
    projection(projection: impl IntoDocument);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}

setters! { [T: DeserializeOwned + Any] crate::FindOneAndDelete<T>:
    sort(sort: impl IntoDocument);
    projection(projection: impl IntoDocument);
    hint(hint: Hint);
    deadline(within: Duration);
    memory_limit(bytes: usize);
}

setters! { [] crate::InsertMany<'static>:
    ordered(ordered: bool);
    all_or_nothing();
    deadline(within: Duration);
}

setters! { [] crate::BulkWrite:
    ordered(ordered: bool);
    deadline(within: Duration);
}

setters! { [] crate::CreateIndex<'static>:
    progress(progress: impl FnMut(u64) + Send + 'static);
    deadline(within: Duration);
}

setters! { [] crate::Verify<'static>:
    progress(progress: impl FnMut(&VerifyProgress<'_>) + Send + 'static);
    deadline(within: Duration);
}
