//! Shared parts of the benches. This crate does not depend on Slate, so the programs for other databases measure,
//! report and parse options exactly as Slate's programs do.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | the command line: `--json`, `--only`, `--runs`, `--seed`, `--chart`, … and a bench's own options |
//! | [`clock`] | repeated measurement of an operation |
//! | [`compare`] | joins reports of several programs into one table with ratios |
//! | [`samples`] | measured times: median, 95th percentile, spread |
//! | [`allocations`] | counts the allocations of an operation |
//! | [`memory`] | memory of the process, and its peak |
//! | [`memory_limit`] | limits the memory of the process with a control group |
//! | [`machine`] | description of the machine, and the date |
//! | [`pin`] | pins threads to cores |
//! | [`processes`] | measures several processes at once on one database |
//! | [`rng`] | a seeded random number generator |
//! | [`report`] | sections of rows, as JSON |
//! | [`table`] | Markdown tables |
//! | [`format`](mod@format) | formats times, counts and bytes |
//! | [`chart`] | bar charts as SVG |
//! | [`progress`] | a progress bar on the terminal |
//! | [`error`] | errors with causes, and `Unsupported` |

pub mod allocations;
pub mod arguments;
pub mod chart;
pub mod clock;
pub mod compare;
pub mod error;
pub mod format;
pub mod machine;
pub mod memory;
pub mod memory_limit;
pub mod number;
pub mod pin;
pub mod processes;
pub mod progress;
pub mod report;
pub mod rng;
pub mod samples;
pub mod table;

pub use allocations::Allocations;
pub use arguments::{Arguments, Known, Parsed, Usage};
pub use clock::{Clock, Repeat};
pub use error::{Failure, Result, Unsupported};
pub use machine::Machine;
pub use memory_limit::MemoryLimit;
pub use progress::Progress;
pub use report::{About, Report, Row, Section, Verdict};
pub use rng::Rng;
pub use samples::Samples;
pub use table::{Align, Table};
