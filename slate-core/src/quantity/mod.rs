//! Quantities as people write them in a file of settings: `"256MiB"`, `"5s"`.

pub(crate) mod size;
pub(crate) mod time;
mod units;
