//! Transfers between accounts while nodes are killed, stopped and cut off: every snapshot shows the same total, and commits continue within a time
//! limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use super::*;

const ACCOUNTS: u8 = 30;
const EACH: u64 = 100;
const WORKERS: u64 = 4;

/// The longest time without a commit while a majority of nodes is available. An election takes a few seconds, the lock of a lost commit expires
/// after 20 seconds, and a request is repeated for 30 seconds before its call fails; two of these can follow each other.
const LONGEST_STALL: Duration = Duration::from_secs(60);

struct Bank {
    store: TikvStore,
    is_done: AtomicBool,
    commits: AtomicU64,
    conflicts: AtomicU64,
    unknown: AtomicU64,
}

/// Ends the workers when dropped, even if the test panics.
struct End<'b>(&'b Bank);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_done.store(true, SeqCst);
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

impl Bank {
    fn open() -> Option<Self> {
        let store = open()?;
        put_all(&store, (0..ACCOUNTS).map(|account| (vec![account], EACH.to_be_bytes().to_vec())));
        let [commits, conflicts, unknown] = [(); 3].map(|()| AtomicU64::default());
        Some(Self { store, is_done: AtomicBool::default(), commits, conflicts, unknown })
    }

    fn check(&self) {
        let (mut total, view) = (0, self.store.snapshot().unwrap());
        let broken = view.scan(A, Bounds::ALL, |_, value| {
            total += number(value);
            std::ops::ControlFlow::<()>::Continue(())
        });
        assert_eq!((broken.unwrap(), total), (None, u64::from(ACCOUNTS) * EACH));
    }

    fn transfer(&self, from: u8, to: u8) -> crate::Result<crate::Version> {
        let mut transaction = self.store.begin(NOW)?;
        let (source, target) = {
            let view = transaction.view();
            let balance = |account: u8| view.get(A, &[account], number).map(Option::unwrap);
            (balance(from)?, balance(to)?)
        };
        let moved = source.min(7);
        transaction.put(A, &[from], &(source - moved).to_be_bytes())?;
        transaction.put(A, &[to], &(target + moved).to_be_bytes())?;
        transaction.commit(Durability::Sync)
    }

    fn work(&self) {
        while !self.is_done.load(SeqCst) {
            let account = || u8::try_from(random() % u64::from(ACCOUNTS)).unwrap();
            let (from, to) = (account(), account());
            if from == to {
                continue;
            }
            match self.transfer(from, to) {
                Ok(_) => self.commits.fetch_add(1, SeqCst),
                Err(Error::Conflict(_)) => self.conflicts.fetch_add(1, SeqCst),
                Err(Error::OutcomeUnknown(_)) => self.unknown.fetch_add(1, SeqCst),
                Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
            };
        }
    }

    /// Returns the longest time without a commit until the work ends.
    fn watch(&self) -> Duration {
        let (mut last, mut since, mut longest) = (0, Instant::now(), Duration::ZERO);
        while !self.is_done.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
            let now = self.commits.load(SeqCst);
            if now > last {
                longest = longest.max(since.elapsed());
                (last, since) = (now, Instant::now());
            }
        }
        longest.max(since.elapsed())
    }

    /// Waits for so many commits that some must have begun after the call.
    fn wait_for_commits(&self) {
        let (before, start) = (self.commits.load(SeqCst), Instant::now());
        while self.commits.load(SeqCst) < before + 2 * WORKERS {
            assert!(start.elapsed() < LONGEST_STALL, "no commits for {:?}", start.elapsed());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Moves money until `trouble` returns. Prints the longest time without a commit.
    fn work_during(&self, trouble: impl FnOnce()) {
        let longest = std::thread::scope(|scope| {
            let end = End(self);
            (0..WORKERS).for_each(|_| drop(scope.spawn(|| self.work())));
            scope.spawn(|| {
                while !self.is_done.load(SeqCst) {
                    self.check();
                }
            });
            let watched = scope.spawn(|| self.watch());
            trouble();
            drop(end);
            watched.join().unwrap()
        });
        self.check();
        let [commits, conflicts, unknown] = [&self.commits, &self.conflicts, &self.unknown].map(|n| n.load(SeqCst));
        println!(
            "{commits} commits, {conflicts} conflicts, {unknown} unknown outcomes, at most {longest:.1?} without a commit"
        );
        assert!(longest < LONGEST_STALL, "{longest:?} without a commit");
    }
}

/// Runs a command of the cluster's script, which kills a node, for example; returns what it prints.
fn control(arguments: &[&str]) -> String {
    let mut script = std::process::Command::new(std::env::var("SLATE_TIKV_CLUSTER").unwrap());
    // Programs that the script starts outlive it, and would hold a pipe for errors open.
    let output = script.args(arguments).stderr(std::process::Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn pause(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// `slate-tikv-cluster/cluster.sh with cargo test --workspace --all-features --lib -- --ignored --nocapture while_their_leader`
#[test]
#[ignore = "needs a cluster of three nodes to itself: `.ci/test` runs it after the others"]
fn transfers_go_on_while_their_leader_is_killed() {
    let Some(bank) = Bank::open() else { return };
    bank.work_during(|| {
        bank.wait_for_commits();
        let leader = control(&["leader"]);
        control(&["kill", &leader]);
        bank.wait_for_commits();
        assert_ne!(control(&["leader"]), leader);
        pause(6);
        control(&["up", &leader]);
        pause(6);
        bank.wait_for_commits();
    });
}

/// The leader and then each node is killed and comes back, one is stopped and one cut off for longer than a request may take, the placement
/// driver is killed, and at last everything at once.
///
/// `PROXY=1 slate-tikv-cluster/cluster.sh with cargo test --workspace --all-features --lib -- --ignored --nocapture while_nodes_are_killed`
#[test]
#[ignore = "takes two minutes, and a cluster with proxies to itself"]
fn transfers_lose_nothing_while_nodes_are_killed_and_cut_off() {
    let Some(bank) = Bank::open() else { return };
    bank.work_during(|| {
        let trouble = |begin: &[&str], seconds: u64, end: &[&str]| {
            pause(3);
            control(begin);
            pause(seconds);
            bank.wait_for_commits();
            control(end);
            bank.wait_for_commits();
        };
        let leader = control(&["leader"]);
        for node in [&leader, "1", "2", "3"] {
            trouble(&["kill", node], 6, &["up", node]);
        }
        let leader = control(&["leader"]);
        trouble(&["pause", &leader], 8, &["resume", &leader]);
        let leader = control(&["leader"]);
        trouble(&["cut", &leader], 8, &["mend", &leader]);
        pause(3);
        control(&["pd-kill"]);
        pause(3);
        control(&["pd-up"]);
        bank.wait_for_commits();
        control(&["restart"]);
        bank.wait_for_commits();
        pause(3);
    });
}
