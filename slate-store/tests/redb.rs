//! Properties of the redb store only: opening, locks, formats, and device failures.
#![cfg(feature = "redb")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "redb/busy_readers.rs"]
mod busy_readers;
#[path = "redb/device.rs"]
mod device;
#[path = "redb/faults.rs"]
mod faults;
#[path = "redb/full.rs"]
mod full;
#[path = "redb/opening.rs"]
mod opening;
#[path = "redb/sharing.rs"]
mod sharing;
#[path = "redb/space.rs"]
mod space;
#[path = "redb/tools.rs"]
mod tools;
