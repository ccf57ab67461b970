//! What the benches share, and nothing of Slate: so that a peer's program measures, reports and reads its command line
//! exactly as Slate's does.
//!
//! | module | has |
//! |---|---|
//! | [`arguments`] | the command line: `--json`, `--only`, `--runs`, `--seed`, `--chart`, … and a bench's own options |
//! | [`clock`] | an operation repeated, and timed each time |
//! | [`compare`] | reports of several programs, joined into one table with ratios |
//! | [`samples`] | the times: median, 95th percentile, spread |
//! | [`allocations`] | what an operation allocates, counted |
//! | [`memory`] | what the process holds, and its peak |
//! | [`machine`] | what it ran on, and when |
//! | [`pin`] | threads bound to cores |
//! | [`rng`] | a seeded generator |
//! | [`report`] | sections of rows, to JSON and back |
//! | [`table`] | Markdown tables |
//! | [`format`](mod@format) | times, counts and bytes as people read them |
//! | [`chart`] | bars, to SVG |
//! | [`progress`] | a bar on a terminal |
//! | [`error`] | errors with their cause, and `Unsupported` |

pub mod allocations;
pub mod arguments;
pub mod chart;
pub mod clock;
pub mod compare;
pub mod error;
pub mod format;
pub mod machine;
pub mod memory;
pub mod number;
pub mod pin;
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
pub use progress::Progress;
pub use report::{About, Report, Row, Section, Verdict};
pub use rng::Rng;
pub use samples::Samples;
pub use table::{Align, Table};
