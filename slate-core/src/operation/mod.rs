//! An operation as its builder describes it, and where it runs: on the database, a snapshot or an open transaction.

pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod scope;
