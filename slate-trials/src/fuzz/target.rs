use super::TARGETS;

/// Something that takes bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// What is called with the bytes. Panics if it finds a fault.
    pub call: fn(&[u8]) -> Verdict,
    /// The percentage of random inputs that it accepts at least.
    pub accepted: usize,
}

/// Whether an input came to what its target is about, or was refused before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The filter was executed, the file opened, a document read.
    Accepted,
    /// An error says what is wrong with the input.
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
