//! Executes random transactions and records what they read.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bson::{Bson, Document, doc};
use slate_core::{Database, Durability, ErrorKind, Index, Isolation, Result, TransactionOptions, aio};

/// How a history is executed.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) isolation: Isolation,
    /// Tasks of the async API instead of threads.
    pub(super) is_async: bool,
    pub(super) is_indexed: bool,
    pub(super) durability: Durability,
    pub(super) seed: u64,
}

/// A transaction that was committed.
#[derive(Clone, Debug, Default)]
pub(super) struct Committed {
    /// Times of a logical clock: before the transaction began, and after its commit was acknowledged.
    pub(super) began: u64,
    pub(super) acknowledged: u64,
    /// The numbers that it appended to each list, in order.
    pub(super) appended: BTreeMap<i32, Vec<i64>>,
    /// The lists that it read, without its own appends.
    pub(super) read: Vec<(i32, Vec<i64>)>,
}

/// The results of a history. The last transaction reads all lists after the others have ended.
#[derive(Debug, Default)]
pub(super) struct Executed {
    pub(super) committed: Vec<Committed>,
    pub(super) conflicts: usize,
    /// The transactions that ended with `OutcomeUnknown`.
    pub(super) unknown: Vec<Committed>,
    /// Broken promises that a single transaction observed.
    pub(super) broken: Vec<String>,
    /// The longest time without a commit, and when the last one was acknowledged, since the history began.
    pub(super) longest_stall: Duration,
    pub(super) last_commit: Duration,
}

const CLIENTS: u64 = 4;
const TRANSACTIONS: usize = 25;
const LISTS: i32 = 6;
const GROUPS: i32 = 2;
const ACCOUNTS: i32 = 4;
const TOTAL: i64 = 100;

/// One step of a transaction.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append(i32),
    Read(i32),
    /// Reads all lists of a group, of which some may not exist yet.
    ReadGroup(i32),
    /// Reads all lists of the other groups.
    ReadOtherGroups(i32),
    /// Reads all lists from a key on.
    ReadFrom(i32),
    /// Reads a list, deletes its document, and inserts it again with one more number.
    Rewrite(i32),
    Transfer(i32, i32, i64),
    Sum,
}

impl Step {
    fn random(random: &mut fastrand::Rng) -> Self {
        match random.u8(..14) {
            0..4 => Self::Append(random.i32(0..LISTS)),
            4..6 => Self::Read(random.i32(0..LISTS)),
            6..8 => Self::ReadGroup(random.i32(0..GROUPS)),
            8 => Self::ReadOtherGroups(random.i32(0..GROUPS)),
            9 => Self::ReadFrom(random.i32(0..LISTS)),
            10..12 => Self::Rewrite(random.i32(0..LISTS)),
            12 => Self::Transfer(random.i32(0..ACCOUNTS), random.i32(0..ACCOUNTS), random.i64(1..5)),
            _ => Self::Sum,
        }
    }
}

/// What all clients share.
struct Shared<'p> {
    plan: &'p Plan,
    began: Instant,
    clock: AtomicU64,
    next: AtomicI64,
    executed: Mutex<Executed>,
}

/// Executes a history in an empty database, which each of the handles has open.
pub(super) fn execute(databases: &[Database], plan: &Plan) -> Result<Executed> {
    let Some(db) = databases.first() else { return Ok(Executed::default()) };
    let began = Instant::now();
    let clients = || (0..CLIENTS).zip(databases.iter().cycle());
    let accounts: Vec<Document> =
        (0..ACCOUNTS).map(|id| doc! { "_id": id, "n": TOTAL / i64::from(ACCOUNTS) }).collect();
    db.collection("accounts").insert_many(&accounts).run()?;
    if plan.is_indexed {
        db.collection::<Document>("lists").create_index(Index::on(doc! { "group": 1 })).run()?;
    }
    let shared =
        Shared { plan, began, clock: AtomicU64::default(), next: AtomicI64::new(1), executed: Mutex::default() };
    if plan.is_async {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.map_err(slate_core::Error::custom)?;
        let shared = &shared;
        let clients = clients().map(|(client, db)| (client, aio::Database::from(db.clone())));
        // The futures borrow shared data, so they cannot be spawned; a thread runs each on the runtime.
        thread::scope(|scope| {
            let handle = runtime.handle();
            let clients: Vec<_> = clients
                .map(|(client, db)| scope.spawn(move || handle.block_on(run_async(&db, shared, client))))
                .collect();
            clients.into_iter().try_for_each(|client| client.join().unwrap_or(Ok(())))
        })?;
    } else {
        let shared = &shared;
        thread::scope(|scope| {
            let clients: Vec<_> = clients().map(|(client, db)| scope.spawn(move || run(db, shared, client))).collect();
            clients.into_iter().try_for_each(|client| client.join().unwrap_or(Ok(())))
        })?;
    }
    let mut last = Open::begin(&shared);
    let transaction = db.begin()?;
    for list in 0..LISTS {
        last.read(list, transaction.collection::<Document>("lists").find_by_id(list)?.as_ref());
    }
    transaction.commit()?;
    let lists = last.found.read.clone();
    last.committed();
    let mut executed = shared.executed.into_inner().unwrap_or_else(PoisonError::into_inner);
    executed.settle(&lists);
    Ok(executed)
}

impl Executed {
    fn acknowledged(&mut self, transaction: Committed, now: Duration) {
        self.longest_stall = self.longest_stall.max(now.saturating_sub(self.last_commit));
        self.last_commit = self.last_commit.max(now);
        self.committed.push(transaction);
    }

    /// Adds the transactions with an unknown outcome whose appends are in the final lists to the committed ones.
    fn settle(&mut self, lists: &[(i32, Vec<i64>)]) {
        for transaction in &self.unknown {
            let appended =
                || transaction.appended.iter().flat_map(|(list, numbers)| numbers.iter().map(move |n| (list, n)));
            let is_there =
                |(list, number): (&i32, &i64)| lists.iter().any(|(of, all)| of == list && all.contains(number));
            match (appended().any(is_there), appended().all(is_there)) {
                (true, true) => self.committed.push(Committed { acknowledged: u64::MAX, ..transaction.clone() }),
                (true, false) => self.broken.push(format!("a part of a transaction was committed: {transaction:?}")),
                (false, _) => {}
            }
        }
    }
}

/// A transaction that is being executed.
struct Open<'s> {
    shared: &'s Shared<'s>,
    found: Committed,
}

impl<'s> Open<'s> {
    fn begin(shared: &'s Shared<'s>) -> Self {
        let began = shared.clock.fetch_add(1, Ordering::SeqCst);
        Self { shared, found: Committed { began, ..Committed::default() } }
    }

    fn options(&self) -> TransactionOptions {
        TransactionOptions::new().isolation(self.shared.plan.isolation).detached()
    }

    /// Returns a new number, and records that it is appended to a list.
    fn append(&mut self, list: i32) -> i64 {
        let number = self.shared.next.fetch_add(1, Ordering::SeqCst);
        self.found.appended.entry(list).or_default().push(number);
        number
    }

    /// Records a list that was read. `None` is an empty list.
    fn read(&mut self, list: i32, document: Option<&Document>) {
        let elements =
            document.and_then(|document| document.get_array("list").ok()).map(Vec::as_slice).unwrap_or_default();
        let numbers: Vec<i64> = elements.iter().filter_map(Bson::as_i64).collect();
        let own = self.found.appended.get(&list).map(Vec::as_slice).unwrap_or_default();
        match numbers.strip_suffix(own) {
            Some(others) => self.found.read.push((list, others.to_vec())),
            None => self.broken(format!("a transaction has appended {own:?} to list {list} and reads {numbers:?}")),
        }
    }

    /// Returns the document of a list, as it was read, with a new number at the list's end.
    fn rewritten(&mut self, list: i32, document: Option<Document>) -> Document {
        let mut document = document.unwrap_or_else(|| doc! { "_id": list, "group": list % GROUPS });
        let mut numbers = document.get_array("list").cloned().unwrap_or_default();
        numbers.push(self.append(list).into());
        document.insert("list", numbers);
        document
    }

    /// Records a read of all lists that a predicate selects. Lists without a document are empty.
    fn read_all(&mut self, documents: &[Document], is_selected: impl Fn(i32) -> bool) {
        for list in (0..LISTS).filter(|list| is_selected(*list)) {
            let found = documents.iter().find(|document| document.get_i32("_id").is_ok_and(|id| id == list));
            self.read(list, found);
        }
    }

    fn sum(&self, accounts: &[Document]) {
        let sum: i64 = accounts.iter().filter_map(|account| account.get_i64("n").ok()).sum();
        if sum != TOTAL {
            self.broken(format!("the accounts have {sum} instead of {TOTAL}"));
        }
    }

    fn broken(&self, what: String) {
        self.executed().broken.push(what);
    }

    fn committed(mut self) {
        self.found.acknowledged = self.shared.clock.fetch_add(1, Ordering::SeqCst);
        let found = std::mem::take(&mut self.found);
        self.executed().acknowledged(found, self.shared.began.elapsed());
    }

    /// Records the outcome of a transaction. Fails with an error that is neither a conflict nor an unknown outcome.
    fn ended(self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) => self.committed(),
            Err(error) if error.is_retryable() => self.executed().conflicts += 1,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                let found = self.found.clone();
                self.executed().unknown.push(found);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn executed(&self) -> std::sync::MutexGuard<'_, Executed> {
        self.shared.executed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The filter and the update that append a number to a list.
fn appending(list: i32, number: i64) -> (Document, Document) {
    (doc! { "_id": list }, doc! { "$push": { "list": number }, "$setOnInsert": { "group": list % GROUPS } })
}

/// Executes the steps of each transaction with the blocking (no last argument) or the async API (`await`).
macro_rules! client {
    ($db:ident, $shared:ident, $client:ident $(, $wait:tt)?) => {{
        let mut random = fastrand::Rng::with_seed($shared.plan.seed ^ ($client << 48));
        for _ in 0..TRANSACTIONS {
            let mut open = Open::begin($shared);
            let transaction = $db.begin_with(&open.options())$(.$wait)??;
            let lists = transaction.collection::<Document>("lists");
            let accounts = transaction.collection::<Document>("accounts");
            let mut outcome = Ok(());
            for step in (0..random.usize(1..5)).map(|_| Step::random(&mut random)).collect::<Vec<_>>() {
                outcome = match step {
                    Step::Append(list) => {
                        let (filter, update) = appending(list, open.append(list));
                        lists.update_one(filter, update).upsert().run()$(.$wait)?.map(drop)
                    }
                    Step::Read(list) => lists.find_by_id(list)$(.$wait)?.map(|found| open.read(list, found.as_ref())),
                    Step::ReadGroup(group) => {
                        let found = lists.find(doc! { "group": group }).collect()$(.$wait)?;
                        found.map(|found| open.read_all(&found, |list| list % GROUPS == group))
                    }
                    Step::ReadOtherGroups(group) => {
                        let found = lists.find(doc! { "group": { "$ne": group } }).collect()$(.$wait)?;
                        found.map(|found| open.read_all(&found, |list| list % GROUPS != group))
                    }
                    Step::ReadFrom(first) => {
                        let found = lists.find(doc! { "_id": { "$gte": first } }).collect()$(.$wait)?;
                        found.map(|found| open.read_all(&found, |list| list >= first))
                    }
                    Step::Rewrite(list) => match lists.find_by_id(list)$(.$wait)? {
                        Ok(found) => {
                            open.read(list, found.as_ref());
                            let rewritten = open.rewritten(list, found);
                            match lists.delete_one(doc! { "_id": list }).run()$(.$wait)? {
                                Ok(_) => lists.insert_one(&rewritten)$(.$wait)?.map(drop),
                                Err(error) => Err(error),
                            }
                        }
                        Err(error) => Err(error),
                    },
                    Step::Transfer(from, to, n) => {
                        let moved = accounts.update_one(doc! { "_id": from }, doc! { "$inc": { "n": -n } }).run()$(.$wait)?;
                        match moved {
                            Ok(_) => accounts.update_one(doc! { "_id": to }, doc! { "$inc": { "n": n } }).run()$(.$wait)?.map(drop),
                            Err(error) => Err(error),
                        }
                    }
                    Step::Sum => accounts.find(doc! {}).collect()$(.$wait)?.map(|found| open.sum(&found)),
                };
                if outcome.is_err() {
                    break;
                }
            }
            let ended = match outcome {
                Ok(()) => transaction.commit()$(.$wait)?,
                Err(error) => Err(error),
            };
            open.ended(ended)?;
        }
        Ok(())
    }};
}

fn run(db: &Database, shared: &Shared<'_>, client: u64) -> Result<()> {
    client!(db, shared, client)
}

async fn run_async(db: &aio::Database, shared: &Shared<'_>, client: u64) -> Result<()> {
    client!(db, shared, client, await)
}
