//! Operations. [`read_op`] and [`write_op`] list them, [`request`] parses a builder's arguments, [`over_view`] turns
//! requests over views into aggregations, [`scope`] dispatches to the database, a snapshot or an open transaction,
//! [`open_transactions`] registers the transactions that callers have open, and [`retry`] retries after conflicts.

pub(crate) mod open_transactions;
mod over_view;
pub(crate) mod read_op;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod scope;
mod sink;
pub(crate) mod write_op;
