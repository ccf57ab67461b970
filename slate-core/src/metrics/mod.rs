//! Counts the work of a database. [`observer`] holds the counters of one database, [`call`] measures one call and
//! the rows that it returns, [`tally`] collects what the nodes of its plan examine, and [`report`] is what
//! [`Database::metrics`](crate::Database::metrics) returns. [`prometheus`] writes it as text. [`slow`] reports calls that take too
//! long. [`uses`] counts the uses of each index.

mod call;
mod counters;
mod histogram;
mod kind;
mod observer;
mod prometheus;
mod report;
mod slow;
mod tally;
mod uses;

pub(crate) use call::{Call, ObservedRows};
pub use histogram::Histogram;
pub use kind::OperationKind;
pub(crate) use observer::{Observer, PointRead};
pub use prometheus::Prometheus;
pub use report::{Metrics, OperationMetrics};
pub use slow::SlowQuery;
pub(crate) use slow::{Executed, SlowQueries, Subject};
pub(crate) use tally::Tally;
pub(crate) use uses::{CollectionUses, UseTable, Uses};
