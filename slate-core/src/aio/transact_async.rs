use std::{pin::Pin, sync::Arc, thread, time::Instant};

use slate_query::Code;

use super::{Database, Transaction, runner::on_pool};
use crate::{
    CancelToken, Error, Result, TransactionOptions,
    call::retry::{Attempts, Failure},
    call::transaction_options::Started,
};

/// The future of [`Database::transact_async`]. It borrows what the closure borrows.
pub type AsyncTransaction<'w, R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send + 'w>>;

impl Database {
    /// Runs async code in a transaction and commits it, with retries, as [`Database::transact`] does with blocking code. An
    /// error of `work` rolls the transaction back.
    ///
    /// Inside, use `tx.collection(…)`. Pass `&tx` to your own async functions, which take a `&Transaction`. The closure
    /// may run again after a conflict, so it borrows its captured variables and cannot change them. If it uses `?` and
    /// ends with `Ok(…)`, write down its result type, or the error's: `Ok::<_, slate_core::Error>(…)`. Inside of
    /// `tokio::spawn`, write `async move { db.transact_async(async |tx| { … }).await }`, so that the task owns what the
    /// closure borrows.
    ///
    /// Prefer [`Database::transact`] for a transaction that consists only of calls of the database: it changes threads once, instead of with each
    /// call.
    ///
    /// Dropping the future rolls the transaction back, unless it is being committed.
    ///
    /// # Errors
    /// Returns the error of `work`, or the last conflict when time is up. Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if `work` has
    /// moved `tx` to a place that outlives it.
    ///
    /// ```
    /// use bson::{Document, doc};
    /// use slate_core::aio::Database;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> slate_core::Result<()> {
    /// # let db = Database::open("memory:").await?;
    /// # db.collection("accounts").insert_one(&doc! { "_id": "Ada", "balance": 10 }).await?;
    /// let (from, to, amount) = ("Ada".to_owned(), "Bob".to_owned(), 7);
    /// let is_paid = db
    ///     .transact_async(async |tx| -> slate_core::Result<bool> {
    ///         let accounts = tx.collection::<Document>("accounts");
    ///         let enough = doc! { "_id": &from, "balance": { "$gte": amount } };
    ///         if accounts.update_one(enough, doc! { "$inc": { "balance": -amount } }).await?.matched == 0 {
    ///             return Ok(false);
    ///         }
    ///         accounts.update_one(doc! { "_id": &to }, doc! { "$inc": { "balance": amount } }).upsert().await?;
    ///         Ok(true)
    ///     })
    ///     .await?;
    /// assert!(is_paid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact_async<'w, R, E, F, W>(&self, work: F) -> AsyncTransaction<'w, R, E>
    where
        R: Send + 'w,
        E: From<Error> + Send + 'w,
        F: FnMut(Arc<Transaction>) -> W + Send + 'w,
        W: Future<Output = Result<R, E>> + Send + 'w,
    {
        self.transact_async_with(&TransactionOptions::default(), work)
    }

    /// Runs async code in a transaction with options, as [`Database::transact_async`] does. The deadline counts from the first
    /// poll.
    ///
    /// # Errors
    /// Fails as [`Database::transact_async`] does; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past the
    /// deadline.
    // `AsyncFnMut` would also accept closures that change captured variables. But its futures cannot be required to be
    // `Send`, so `tokio::spawn` would reject a future that contains them.
    pub fn transact_async_with<'w, R, E, F, W>(
        &self,
        options: &TransactionOptions,
        mut work: F,
    ) -> AsyncTransaction<'w, R, E>
    where
        R: Send + 'w,
        E: From<Error> + Send + 'w,
        F: FnMut(Arc<Transaction>) -> W + Send + 'w,
        W: Future<Output = Result<R, E>> + Send + 'w,
    {
        let (database, options) = (self.clone(), self.as_blocking().limited(options));
        Box::pin(async move {
            let blocking = database.as_blocking();
            blocking.open_transactions().check_outside()?;
            let started = blocking.start(&options);
            let mut attempts = Attempts::new(&started.retry, blocking.observer());
            loop {
                let pause = match database.attempt(&options, &started, &mut work).await {
                    Ok(result) => return Ok(result),
                    Err(failure) => attempts.pause_after(failure)?,
                };
                // Not tokio's sleep: the runtime need not have a clock.
                let sleep = move || {
                    thread::sleep(pause);
                    Ok(())
                };
                on_pool(CancelToken::new(), sleep)?.await?;
            }
        })
    }

    async fn attempt<R, E: From<Error>, W: Future<Output = Result<R, E>>>(
        &self,
        options: &TransactionOptions,
        started: &Started,
        work: &mut (impl FnMut(Arc<Transaction>) -> W + Send),
    ) -> Result<R, Failure<E>> {
        let mut options = options.clone();
        if let Some(end) = started.retry.limits.end() {
            options = options.deadline(end.saturating_duration_since(Instant::now()));
        }
        let transaction = Arc::new(self.begin_with(&options).await?);
        let result = work(Arc::clone(&transaction)).await;
        let has_conflict = transaction.has_conflict();
        match (result, Arc::into_inner(transaction)) {
            (Ok(result), Some(transaction)) => {
                transaction.commit().await?;
                Ok(result)
            }
            (Ok(_), None) => {
                let message = "the transaction cannot be committed, because its closure has kept it";
                Err(Error::invalid(Code::ILLEGAL_OPERATION, message).into())
            }
            (Err(error), transaction) => {
                if let Some(transaction) = transaction {
                    transaction.rollback().await?;
                }
                Err(Failure { is_retryable: has_conflict, error, takes_turn: false })
            }
        }
    }
}
