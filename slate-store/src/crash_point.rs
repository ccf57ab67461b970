/// Returns whether crash tests force this code path, which otherwise depends on the size of the file. Always `false` without the feature
/// `failpoints`.
#[cfg(feature = "redb")]
#[inline(always)]
pub(crate) fn is_forced(_name: &str) -> bool {
    #[cfg(feature = "failpoints")]
    let is_forced = fail::eval(_name, |_| ()).is_some();
    #[cfg(not(feature = "failpoints"))]
    let is_forced = false;
    is_forced
}

/// Marks a place where crash tests end the process: between two steps that must look like one after a crash. Does nothing without the feature
/// `failpoints`.
#[doc(hidden)]
#[inline(always)]
pub fn crash_point(_name: &str) {
    #[cfg(feature = "failpoints")]
    let _: Option<()> = fail::eval(_name, |_| std::process::abort());
}
