/// Returns whether the trials of crashes have chosen a way that is otherwise taken in other cases. Never without the feature `failpoints`.
#[cfg(feature = "redb")]
#[inline(always)]
pub(crate) fn is_chosen(_name: &str) -> bool {
    #[cfg(feature = "failpoints")]
    let is_chosen = fail::eval(_name, |_| ()).is_some();
    #[cfg(not(feature = "failpoints"))]
    let is_chosen = false;
    is_chosen
}

/// Marks a place where the trials of crashes end the process: between two steps that a crash must not separate visibly. Does nothing
/// without the feature `failpoints`.
#[doc(hidden)]
#[inline(always)]
pub fn crash_point(_name: &str) {
    #[cfg(feature = "failpoints")]
    let _: Option<()> = fail::eval(_name, |_| std::process::abort());
}
