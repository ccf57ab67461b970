//! Measures the peak memory of each size after the first in a separate process. A process reuses memory that it has
//! freed, so a second database in the same process would appear to use less.

use std::{collections::BTreeMap, path::Path, process::Command};

use slate_bench_harness::{
    Report, Result,
    memory::{self, Memory},
};

use crate::{
    Options,
    workload::{HELD, PEAK, SPACE},
};

/// How much a process grew while it loaded records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Bytes at the peak.
    pub peak: u64,
    /// Bytes after loading.
    pub held: u64,
}

impl Growth {
    /// Returns the growth since `before`. `None` if the system does not report memory.
    pub fn since(before: Option<Memory>) -> Option<Self> {
        let (before, now) = (before?.resident, memory::memory()?);
        Some(Self { peak: now.peak.saturating_sub(before), held: now.resident.saturating_sub(before) })
    }
}

/// The growth by number of records.
pub type Peaks = BTreeMap<u64, Growth>;

/// Runs this program again for each size after the first, only to load the records, and returns the growth. Returns
/// nothing if memory cannot be measured or its rows are not selected.
///
/// # Errors
/// Fails if the program cannot be started or fails.
pub fn of_later_sizes(options: &Options) -> Result<Peaks> {
    let mut peaks = Peaks::new();
    if memory::memory().is_none() || !options.shared.wants(SPACE, PEAK) && !options.shared.wants(SPACE, HELD) {
        return Ok(peaks);
    }
    let folder = tempfile::tempdir()?;
    for size in options.records.iter().skip(1) {
        let report = folder.path().join("report.json");
        load(options, *size, &report)?;
        let report = Report::read(&report)?;
        let bytes = |name| report.section(SPACE, Some(*size))?.rows.iter().find(|row| row.name == name)?.bytes;
        let growth = bytes(PEAK).zip(bytes(HELD)).map(|(peak, held)| Growth { peak, held });
        peaks.extend(growth.map(|growth| (*size, growth)));
    }
    Ok(peaks)
}

fn load(options: &Options, size: u64, report: &Path) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--records").arg(size.to_string()).arg("--users").arg(options.users.to_string());
    command.arg("--seed").arg(options.shared.seed.to_string()).args(["--only", SPACE]).arg("--json").arg(report);
    if let Some(folder) = &options.shared.folder {
        command.arg("--folder").arg(folder);
    }
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("loading {size} records in a separate process: {}", String::from_utf8_lossy(&output.stderr)).into())
}
