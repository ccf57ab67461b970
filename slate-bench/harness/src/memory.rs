//! Reads the memory of the process (Linux only).

/// Resident memory of the process in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Current.
    pub resident: u64,
    /// Peak since the start or the last [`reset_peak`].
    pub peak: u64,
}

/// Returns the memory of the process. `None` if the system does not report it.
pub fn memory() -> Option<Memory> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(Memory { resident: kilobytes(&status, "VmRSS:")?, peak: kilobytes(&status, "VmHWM:")? })
}

/// Resets the peak. Returns whether the system supports it.
pub fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_status_are_read() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t     512 kB\n";
        assert_eq!(kilobytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_new_peak_is_seen() {
        if !reset_peak() {
            return;
        }
        let before = memory().unwrap();
        std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(memory().unwrap().peak >= before.resident + (60 << 20));
    }
}
