//! Counts the work of a database. [`observer`] holds the counters of one database, [`tally`] counts the keys and documents that the nodes of a plan
//! examine, and [`report`] is the result of [`Database::metrics`](crate::Database::metrics). [`prometheus`] writes it as text. [`slow`] reports slow
//! calls. [`uses`] counts the uses of each index. [`activity`] shows the work of a running command. [`trace`] has the spans and events.
//! `call::measured` counts one call and its rows.

mod activity;
mod counters;
mod examined;
mod histogram;
mod kind;
mod observer;
mod prometheus;
mod report;
mod slow;
mod spilled;
mod tally;
pub(crate) mod trace;
mod uses;

pub use activity::Activity;
pub(crate) use activity::PlanSummary;
pub(crate) use examined::Examined;
pub use histogram::Histogram;
pub use kind::OperationKind;
pub(crate) use observer::{Observer, PointRead};
pub use prometheus::Prometheus;
pub use report::{Metrics, OperationMetrics};
pub use slow::SlowQuery;
pub(crate) use slow::{OwnedSubject, ReportedPlan, SlowQueries, Subject};
pub(crate) use spilled::Spilled;
pub(crate) use tally::Tally;
pub(crate) use uses::{CollectionUses, UseTable, Uses};
