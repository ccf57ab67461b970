use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tikv_client::{
    Backoff, CheckLevel, Config, Error as ClientError, RetryOptions, Snapshot, Timestamp, TimestampExt, Transaction,
    TransactionClient, TransactionOptions, transaction::HeartbeatOption,
};
use tokio::time::timeout;

use super::{
    address::Address,
    error::{self, ReadFailure},
    layout::Layout,
    options::Options,
    regions::Regions,
    runtime::Runtime,
    stripes::Stripes,
};
use crate::{Keyspace, Result, Version};

/// The connection to a cluster, shared by a store and everything opened on it.
pub(super) struct Cluster {
    pub(super) runtime: Runtime,
    pub(super) client: TransactionClient,
    pub(super) layout: Layout,
    pub(super) options: Options,
    pub(super) stripes: Stripes,
    pub(super) regions: Arc<Regions>,
    dropped: Mutex<BTreeMap<Keyspace, Version>>,
    round_trips: AtomicU64,
    requests: AtomicU64,
    /// Whether transactions request a commit in one phase.
    pub(super) in_one_phase: AtomicBool,
}

/// Maximum length of an answer, in bytes: above that of a request for [`MAX_KEYS`](super::read::MAX_KEYS) values, each in one piece.
pub(super) const MAX_MESSAGE: usize = 320 << 20;

/// Time between two renewals of the locks of a slow commit. The locks of a small commit expire after three seconds.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The first and the longest pause before a read is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause before the client sends a request of a commit again.
const LONGEST_REGION_PAUSE: Duration = Duration::from_millis(500);

/// Minimum time of one attempt, even if less of the patience is left.
pub(super) const LEAST_TIME: Duration = Duration::from_millis(100);

impl Cluster {
    pub(super) fn connect(address: &Address, options: &Options) -> Result<Arc<Self>> {
        let runtime = Runtime::start()?;
        let regions = Arc::new(Regions::new(address)?);
        let mut config = Config::default()
            .with_timeout(options.request_timeout)
            .with_grpc_max_decoding_message_size(options.max_message);
        if let Some(tls) = &address.tls {
            config = config.with_security(&tls.authority, &tls.certificate, &tls.key);
        }
        let drivers = address.drivers.clone();
        let patience = options.patience;
        let client = runtime.wait(async move {
            let connect = || TransactionClient::new_with_config(drivers.clone(), config.clone());
            let connected = persist(patience, connect).await;
            connected.map_err(|failed| error::of_request(failed, "the placement drivers do not answer"))
        })?;
        Ok(Arc::new(Self {
            runtime,
            client,
            layout: Layout::of(&address.database),
            options: options.clone(),
            stripes: Stripes::default(),
            regions,
            dropped: Mutex::default(),
            round_trips: AtomicU64::default(),
            requests: AtomicU64::default(),
            in_one_phase: AtomicBool::new(true),
        }))
    }

    /// Begins a transaction at the current timestamp.
    pub(super) async fn begin(&self, wait: Duration) -> Result<Transaction> {
        // Nodes elect leaders for seconds: a commit retries for as long as reads do.
        let retry = RetryOptions {
            region_backoff: Backoff::no_jitter_backoff(2, 500, attempts(self.options.patience)),
            lock_backoff: Backoff::no_jitter_backoff(2, 200, 60),
        };
        let mut options = TransactionOptions::new_optimistic()
            .drop_check(CheckLevel::None)
            .heartbeat_option(HeartbeatOption::FixedTime(HEARTBEAT))
            .retry_options(retry);
        if self.in_one_phase.load(Ordering::Relaxed) {
            options = options.try_one_pc();
        }
        let begin = || {
            self.count_request();
            self.client.begin_with_options(options.clone())
        };
        let begun = persist(wait.max(self.options.patience), begin).await;
        begun.map_err(|failed| error::of_request(failed, "the cluster gives no timestamp"))
    }

    /// Returns the longest time after its start in which a request of a commit can still be sent: the client retries unanswered requests, even if
    /// no caller waits. Settling and undoing an undecided commit then take up to the patience each.
    pub(super) fn longest_commit(&self) -> Duration {
        let Options { patience, request_timeout, .. } = &self.options;
        let sent = (*request_timeout + LONGEST_REGION_PAUSE).saturating_mul(attempts(*patience));
        sent.max(patience.saturating_mul(6))
    }

    /// Returns the current timestamp.
    pub(super) async fn now(&self) -> Result<u64> {
        let now = || {
            self.count_request();
            self.client.current_timestamp()
        };
        let now = persist(self.options.patience, now).await;
        now.map(|now| now.version()).map_err(|failed| error::of_request(failed, "the cluster gives no timestamp"))
    }

    /// Returns a snapshot for one request. It caches what it reads, so each request gets a new one.
    pub(super) fn snapshot(&self, at: u64) -> Snapshot {
        let retry = RetryOptions {
            region_backoff: Backoff::no_jitter_backoff(2, 200, 8),
            lock_backoff: Backoff::no_jitter_backoff(2, 200, 60),
        };
        let options = TransactionOptions::new_optimistic().drop_check(CheckLevel::None).retry_options(retry);
        self.client.snapshot(Timestamp::from_version(at), options)
    }

    /// Counts a round trip with one request.
    pub(super) fn count_request(&self) {
        self.count(1, 1);
    }

    /// Counts round trips that follow each other, and requests, of which several can be concurrent.
    pub(super) fn count(&self, round_trips: u64, requests: u64) {
        self.round_trips.fetch_add(round_trips, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed) + self.regions.requests()
    }

    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed) + self.regions.round_trips()
    }

    /// The keyspaces that this process has dropped, each with the version from which on it is empty.
    pub(super) fn dropped(&self) -> MutexGuard<'_, BTreeMap<Keyspace, Version>> {
        // No code under this lock can panic between two dependent updates.
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of attempts within `patience`, with pauses that double from 2 ms to half a second.
fn attempts(patience: Duration) -> u32 {
    8 + u32::try_from(patience.as_millis() / 500).unwrap_or(u32::MAX).min(1_000)
}

/// Calls `request` until it succeeds, fails permanently, or `patience` has passed. The client itself would retry requests for longer.
pub(super) async fn persist<T, F>(patience: Duration, mut request: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let left = patience.saturating_sub(start.elapsed()).max(LEAST_TIME);
        match timeout(left, request()).await {
            Err(_) => return Err(ClientError::StringError(format!("no answer within {patience:?}"))),
            Ok(Err(failed)) if error::of_read(&failed) == ReadFailure::Transient && start.elapsed() < patience => {
                tokio::time::sleep(pause).await;
            }
            Ok(answer) => return answer,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_an_answer_ends_with_the_patience() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let never = || std::future::pending::<Result<(), ClientError>>();
        let (start, patience) = (Instant::now(), Duration::from_millis(20));
        let failed = runtime.block_on(persist(patience, never)).unwrap_err();
        assert!(failed.to_string().contains("no answer"), "{failed}");
        assert!(start.elapsed() >= LEAST_TIME.max(patience) && start.elapsed() < Duration::from_secs(20));
    }
}
