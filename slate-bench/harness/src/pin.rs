//! Pins threads to cores, so that threads do not share a core or move between cores.

/// Pins this thread, and threads that it starts later, to a core. Returns whether it succeeded.
pub fn to_core(number: usize) -> bool {
    core_affinity::set_for_current(core_affinity::CoreId { id: number })
}

/// Returns the cores that this thread may use; empty if the system does not report them.
pub fn cores() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect()
}
