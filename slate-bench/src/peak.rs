//! The peak of memory of each size after the first, measured in a process of its own: what a process has freed it keeps
//! for what comes next, so that a second database in it seems to take less than it does.

use std::{collections::BTreeMap, path::Path, process::Command};

use slate_bench_harness::{
    Report, Result,
    memory::{self, Memory},
};

use crate::{
    Options,
    workload::{HELD, PEAK, SPACE},
};

/// By how much a process grew while it loaded records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// At its peak, in bytes.
    pub peak: u64,
    /// Once they were loaded, in bytes.
    pub held: u64,
}

impl Growth {
    /// Since then; `None` where the system does not tell.
    pub fn since(before: Option<Memory>) -> Option<Self> {
        let (before, now) = (before?.resident, memory::memory()?);
        Some(Self { peak: now.peak.saturating_sub(before), held: now.resident.saturating_sub(before) })
    }
}

/// By how much a process grew, by the size that it loaded.
pub type Peaks = BTreeMap<u64, Growth>;

/// Runs this program again for each size after the first, for nothing but the loading. Nothing is run where memory cannot be
/// told, or is not asked for.
///
/// # Errors
/// Where the program cannot be run, or fails.
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
    Err(format!("loading {size} records in a process of its own: {}", String::from_utf8_lossy(&output.stderr)).into())
}
