/// Marks a place where the trials of crashes end the process: between two steps that a crash must not separate visibly. Does nothing
/// without the feature `failpoints`.
#[doc(hidden)]
#[inline(always)]
pub fn crash_point(_name: &str) {
    #[cfg(feature = "failpoints")]
    let _: Option<()> = fail::eval(_name, |_| std::process::abort());
}
