//! Limits the memory of the process, page cache included, with a memory control group (Linux only).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where the control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// A limit on the memory of this process. Dropping it moves the process back and removes the control group.
#[derive(Debug)]
pub struct MemoryLimit {
    /// The control group with the limit.
    group: PathBuf,
    /// The control group that the process was in.
    before: PathBuf,
    version: Version,
}

/// The version of the control group interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryLimit {
    /// Moves this process, with all threads, into a new control group that may use this many bytes for memory and page
    /// cache, and no swap. Call it early: memory that the process already has is not counted.
    ///
    /// # Errors
    /// Fails if the system has no memory control groups, or forbids creating one.
    pub fn of_process(bytes: u64) -> io::Result<Self> {
        Self::within(Path::new(ROOT), &fs::read_to_string("/proc/self/cgroup")?, bytes)
    }

    /// Moves this process into a new group below `root`. `membership` is the content of `/proc/self/cgroup`.
    fn within(root: &Path, membership: &str, bytes: u64) -> io::Result<Self> {
        let (version, before) = current(root, membership)
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "no memory control groups"))?;
        // In version 2 a group with processes has no children, so the new group is next to the current one.
        let parent = match (version, before.parent()) {
            (Version::Two, Some(parent)) if before != root => parent,
            _ => &before,
        };
        let limit = Self { group: parent.join(format!("slate-bench-{}", std::process::id())), before, version };
        fs::create_dir(&limit.group)?;
        let (limits, swap) = match version {
            Version::One => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", bytes)),
            Version::Two => ("memory.max", ("memory.swap.max", 0)),
        };
        fs::write(limit.group.join(limits), bytes.to_string())?;
        // Fails on systems that do not account for swap.
        let _ = fs::write(limit.group.join(swap.0), swap.1.to_string());
        join(&limit.group)?;
        Ok(limit)
    }

    /// Describes how memory is limited, for a report.
    pub fn describe(&self) -> &'static str {
        match self.version {
            Version::One => "control group v1, page cache included",
            Version::Two => "control group v2, page cache included",
        }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let _ = join(&self.before);
        let _ = fs::remove_dir(&self.group);
    }
}

/// Moves this process into a group.
fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Returns the memory control group of this process and the version of its interface; `None` without one.
fn current(root: &Path, membership: &str) -> Option<(Version, PathBuf)> {
    let mut groups = membership.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        line.split_once(':')
    });
    let is_memory = |controllers: &str| controllers.split(',').any(|controller| controller == "memory");
    if let Some((_, path)) = groups.clone().find(|(controllers, _)| is_memory(controllers)) {
        return Some((Version::One, under(&root.join("memory"), path)));
    }
    let (_, path) = groups.find(|(controllers, _)| controllers.is_empty())?;
    Some((Version::Two, under(root, path)))
}

fn under(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(group: &Path, name: &str) -> Option<String> {
        fs::read_to_string(group.join(name)).ok()
    }

    #[test]
    fn version_one_has_a_hierarchy_for_memory() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("memory/work")).unwrap();
        let limit = MemoryLimit::within(root.path(), "5:cpu,cpuacct:/\n4:memory:/work\n0::/x\n", 4096).unwrap();
        assert_eq!(limit.group.parent().unwrap(), root.path().join("memory/work"));
        assert_eq!(written(&limit.group, "memory.limit_in_bytes").as_deref(), Some("4096"));
        assert_eq!(written(&limit.group, "cgroup.procs"), Some(std::process::id().to_string()));
    }

    #[test]
    fn version_two_gets_a_group_next_to_the_current_one() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("user/app")).unwrap();
        let limit = MemoryLimit::within(root.path(), "0::/user/app\n", 8192).unwrap();
        let (group, before) = (limit.group.clone(), limit.before.clone());
        assert_eq!(group.parent().unwrap(), root.path().join("user"));
        assert_eq!(written(&group, "memory.max").as_deref(), Some("8192"));
        assert_eq!(written(&group, "memory.swap.max").as_deref(), Some("0"));
        drop(limit);
        assert_eq!(written(&before, "cgroup.procs"), Some(std::process::id().to_string()));
    }

    #[test]
    fn a_system_without_control_groups_is_an_error() {
        assert!(MemoryLimit::within(Path::new("/nonexistent"), "", 4096).is_err());
        assert!(MemoryLimit::within(Path::new("/nonexistent"), "0::/\n", 4096).is_err());
    }
}
