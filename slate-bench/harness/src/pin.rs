//! Threads bound to cores, so that two of them do not share one, or a run does not wander.

/// Binds this thread, and those it starts from now on, to the core of that number; whether the system did so.
pub fn to_core(number: usize) -> bool {
    core_affinity::set_for_current(core_affinity::CoreId { id: number })
}

/// The numbers of the cores this thread may run on; empty where the system does not tell.
pub fn cores() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect()
}
