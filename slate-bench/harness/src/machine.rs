//! Describes the machine of a measurement, and the date.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Number of cores available to this process.
    pub cores: u64,
    /// Bytes of memory, if the system reports them.
    pub memory: Option<u64>,
    /// Operating system and architecture: `linux x86_64`.
    pub system: String,
}

impl Machine {
    /// Describes this machine.
    pub fn here() -> Self {
        Self {
            processor: processor().unwrap_or_else(|| "unknown processor".into()),
            cores: std::thread::available_parallelism().map_or(1, |cores| crate::number::count(cores.get())),
            memory: total_memory(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

fn processor() -> Option<String> {
    if let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") {
        let named = |name: &str| cpuinfo.lines().find(|line| line.starts_with(name))?.split_once(':');
        return named("model name").or_else(|| named("Hardware")).map(|(_, name)| name.trim().into());
    }
    if cfg!(target_os = "macos") {
        let output = std::process::Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"]).output().ok()?;
        return Some(String::from_utf8(output.stdout).ok()?.trim().into());
    }
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

fn total_memory() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Returns the current date and time in UTC: `2026-03-14 15:09:26`.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds)
}

/// Converts seconds since 1970 into a date with Howard Hinnant's `civil_from_days`.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3_600, rest % 3_600 / 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date(1_773_500_966), "2026-03-14 15:09:26");
    }
}
