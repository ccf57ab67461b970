use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::{Record, SessionId, SessionState, Work};
use crate::{
    failure::{Code, Failure, Result},
    operations,
    shared::Shared,
};

/// Lifetime of a session without a command, as MongoDB's `logicalSessionTimeoutMinutes`.
const LIFE: Duration = Duration::from_secs(30 * 60);

/// Lifetime of a session's snapshot, as MongoDB's `minSnapshotHistoryWindowInSeconds`.
const SNAPSHOT_LIFE: Duration = Duration::from_secs(300);

/// Lifetime of a cursor between two batches.
const CURSOR_LIFE: Duration = Duration::from_secs(600);

/// The default of the maximum number of sessions, as in MongoDB.
pub(crate) const MAX_SESSIONS: usize = 1_000_000;

/// Interval between two deletions of records of ended sessions.
const SWEEP: Duration = Duration::from_secs(300);

/// The sessions of all clients.
pub(crate) struct Sessions {
    /// Maximum number of sessions.
    most: usize,
    /// Lifetime of a session without a command.
    life: Duration,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    swept: Mutex<Option<Instant>>,
}

/// A session. Commands lock its state, so that they run one after the other.
pub(crate) struct Session {
    used: Mutex<Instant>,
    pub(crate) state: Arc<tokio::sync::Mutex<SessionState>>,
}

impl Session {
    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Sessions {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, life: LIFE, sessions: Mutex::default(), swept: Mutex::default() }
    }

    /// Returns a session, and creates it if it does not exist. Renews its lifetime.
    ///
    /// # Errors
    /// Fails with `TooManyLogicalSessions` (261).
    pub(crate) fn use_session(&self, id: SessionId) -> Result<Arc<Session>> {
        let mut sessions = self.lock();
        if let Some(session) = sessions.get(&id) {
            session.touch();
            return Ok(Arc::clone(session));
        }
        if sessions.len() >= self.most {
            let message =
                format!("cannot add session into the cache: there are {} sessions, which is the limit", self.most);
            return Err(Failure::new(Code::TOO_MANY_SESSIONS, message));
        }
        let session = Arc::new(Session { used: Mutex::new(Instant::now()), state: Arc::default() });
        sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// Describes the sessions and when each was last used, lazily.
    pub(crate) fn describe(&self, is_shown: impl Fn(SessionId) -> bool) -> impl Iterator<Item = RawDocumentBuf> {
        let now = DateTime::now().timestamp_millis();
        self.all().into_iter().filter(move |(id, _)| is_shown(*id)).map(move |(id, session)| {
            let used = session.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            let used = i64::try_from(used.as_millis()).unwrap_or(i64::MAX);
            rawdoc! { "_id": id.document(), "lastUse": DateTime::from_millis(now.saturating_sub(used)) }
        })
    }

    /// Describes the idle transactions: open, between two commands.
    pub(crate) fn idle_transactions(
        &self,
        is_shown: impl Fn(SessionId) -> bool,
        life: Duration,
        host: &str,
    ) -> Vec<RawDocumentBuf> {
        let describe = |(id, session): &(SessionId, Arc<Session>)| {
            // A locked session runs a command, which shows the transaction.
            let state = session.state.try_lock().ok()?;
            let (Work::Open(open), Some(number)) = (&state.work, state.number) else { return None };
            Some(operations::idle_transaction(*id, number, open.since, life, host))
        };
        self.all().iter().filter(|(id, _)| is_shown(*id)).filter_map(describe).collect()
    }

    /// Returns a copy of the list of sessions, so that iterating over it blocks no other command.
    fn all(&self) -> Vec<(SessionId, Arc<Session>)> {
        self.lock().iter().map(|(id, session)| (*id, Arc::clone(session))).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Ends sessions: cancels their commands, rolls back their transactions and closes their cursors.
    pub(crate) async fn end(&self, shared: &Shared, ids: impl IntoIterator<Item = SessionId>) {
        // Searches all commands and cursors only once, for any number of sessions.
        let ids: HashSet<SessionId> = ids.into_iter().collect();
        if ids.is_empty() {
            return;
        }
        shared.operations.kill_sessions(&ids);
        let mut lsids: HashMap<Option<[u8; 32]>, Vec<RawDocumentBuf>> = HashMap::new();
        ids.iter().for_each(|id| lsids.entry(id.owner()).or_default().push(id.document()));
        for (owner, lsids) in &lsids {
            let commands = shared.commands.as_blocking();
            let lsids = lsids.iter().map(|lsid| &**lsid);
            match owner {
                Some(owner) => commands.owned_by(*owner).close_session_cursors(lsids),
                None => commands.close_session_cursors(lsids),
            };
        }
        for id in ids {
            let session = self.lock().remove(&id);
            if let Some(session) = session {
                let mut state = session.state.lock().await;
                if let Work::Open(open) = std::mem::replace(&mut state.work, Work::Aborted) {
                    open.roll_back().await;
                }
                state.snapshot = None;
            }
        }
    }

    /// Ends all sessions that `is_ended` selects.
    pub(crate) async fn end_all(&self, shared: &Shared, is_ended: impl Fn(SessionId) -> bool) {
        let ids: Vec<SessionId> = self.lock().keys().copied().filter(|id| is_ended(*id)).collect();
        self.end(shared, ids).await;
    }

    /// Rolls back overdue transactions and drops overdue snapshots. Returns the overdue sessions.
    fn overdue(&self, shared: &Shared) -> Vec<SessionId> {
        let mut overdue = Vec::new();
        let running = shared.operations.sessions();
        for (id, session) in self.all() {
            // A running command keeps its session alive, however long it runs.
            if running.contains(&id) {
                session.touch();
            }
            // A locked session runs a command, so it is not idle; the transaction's lifetime ends the command.
            let Ok(mut state) = session.state.try_lock() else { continue };
            if matches!(&state.work, Work::Open(open) if open.since.elapsed() >= shared.settings.transaction_life) {
                // Dropping the old work rolls the transaction back without waiting.
                state.work = Work::Aborted;
            }
            state.snapshot.take_if(|snapshot| snapshot.since.elapsed() >= SNAPSHOT_LIFE);
            if !running.contains(&id)
                && session.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= self.life
            {
                overdue.push(id);
            }
        }
        overdue
    }

    /// Ends overdue transactions, snapshots, sessions and cursors, and deletes old records.
    pub(crate) fn tidy(shared: &Arc<Shared>) {
        let ended = shared.sessions.overdue(shared);
        shared.commands.as_blocking().close_idle_cursors(CURSOR_LIFE);
        let is_due = {
            let mut swept = shared.sessions.swept.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = swept.is_none_or(|swept| swept.elapsed() >= SWEEP);
            if is_due {
                *swept = Some(Instant::now());
            }
            is_due && !shared.settings.read_only
        };
        if is_due || !ended.is_empty() {
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                shared.sessions.end(&shared, ended).await;
                if is_due {
                    Record::delete_old(&shared, LIFE).await;
                }
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use slate_core::{Activity, CancelToken, Database, aio::RunningCommand};

    use super::*;
    use crate::{Server, command::Command, listener::Address, operations::Admission};

    #[tokio::test]
    async fn a_session_does_not_end_while_its_command_runs() {
        let mut shared = Server::new(Database::open("memory:").unwrap()).shared().unwrap();
        Arc::get_mut(&mut shared).unwrap().sessions.life = Duration::ZERO;
        let ids = [SessionId::new(None), SessionId::new(None)];
        for id in ids {
            shared.sessions.use_session(id).unwrap();
        }
        let command = rawdoc! { "compact": "c", "$db": "shop", "lsid": ids[0].document() };
        let command = Arc::new(Command::read(command).unwrap());
        let place = shared.operations.enter(1, Address::Tcp("127.0.0.1:1".parse().unwrap()), Admission::Admitted);
        let (began, token, activity) = (Instant::now(), &CancelToken::new(), &Activity::default());
        let running = RunningCommand { began, token, activity };
        let running = shared.operations.begin(&place, &command, running, None);
        assert_eq!(shared.sessions.overdue(&shared), [ids[1]]);
        drop(running);
        assert_eq!(shared.sessions.overdue(&shared).len(), 2);
    }
}
