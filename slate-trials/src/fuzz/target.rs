use super::TARGETS;

/// A function under test that takes arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The function. Panics if it finds a fault.
    pub call: fn(&[u8]) -> Verdict,
    /// Minimum percentage of random inputs that it accepts.
    pub accepted: usize,
}

/// Whether an input reached the tested part of its target, or was refused before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// For example, the filter was executed, the file opened, or a document read.
    Accepted,
    /// The input was refused with an error.
    Refused,
}

impl Verdict {
    pub(super) fn of<T, E>(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(_) => Self::Refused,
        }
    }
}

/// Calls the target of this name.
///
/// # Panics
/// If there is none, or if it finds a fault.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    assert!(target.is_some(), "there is no target {name}");
    target.iter().for_each(|target| {
        let _ = (target.call)(data);
    });
}
