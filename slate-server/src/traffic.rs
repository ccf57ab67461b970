//! The numbers of commands and bytes of each connection. Each connection has its own counters, so that connections on different processors do not
//! wait for each other's cache lines; readers add them up.

use std::{
    ops::AddAssign,
    sync::atomic::{AtomicU64, Ordering},
};

/// A number that one task increases and others read. So an addition is a load and a store, which cost less than an atomic addition.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.0.store(self.get().wrapping_add(number), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The traffic of one connection. Only its task counts.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    requests: Counter,
    bytes_in: Counter,
    bytes_out: Counter,
    inserts: Counter,
    queries: Counter,
    updates: Counter,
    deletes: Counter,
    get_mores: Counter,
    others: Counter,
}

impl Traffic {
    pub(crate) fn received(&self, bytes: usize) {
        self.requests.add(1);
        self.bytes_in.add(bytes);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.add(bytes);
    }

    pub(crate) fn executes(&self, command: &str) {
        let counter = match command {
            "insert" => &self.inserts,
            "find" => &self.queries,
            "update" => &self.updates,
            "delete" => &self.deletes,
            "getMore" => &self.get_mores,
            _ => &self.others,
        };
        counter.add(1);
    }
}

/// The traffic of several connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TotalTraffic {
    pub(crate) requests: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) inserts: u64,
    pub(crate) queries: u64,
    pub(crate) updates: u64,
    pub(crate) deletes: u64,
    pub(crate) get_mores: u64,
    pub(crate) others: u64,
}

impl AddAssign<&Traffic> for TotalTraffic {
    fn add_assign(&mut self, one: &Traffic) {
        self.requests += one.requests.get();
        self.bytes_in += one.bytes_in.get();
        self.bytes_out += one.bytes_out.get();
        self.inserts += one.inserts.get();
        self.queries += one.queries.get();
        self.updates += one.updates.get();
        self.deletes += one.deletes.get();
        self.get_mores += one.get_mores.get();
        self.others += one.others.get();
    }
}
