//! How many keys lie in stretches of keyspaces, for who counts again: a tree on disk keeps no counts of what lies below its
//! branches, and a walk takes a step for each key. It serves backends whose database this process alone writes to.
//!
//! A range that was counted is kept as stretches of some thousand keys. Each commit marks the stretches that it writes to with
//! its number before anybody can see it, as it does for the [cache of rows](crate::row_cache), and by the same rule a
//! stretch's count is taken by a snapshot only where no commit marked it that either may not have seen: the snapshot, or the
//! one that the count was taken from. The others are counted again, and they alone.

mod cache;
mod noted;
mod stretches;
#[cfg(test)]
pub(crate) mod trial;
mod walk;

pub(crate) use cache::CountCache;
pub(crate) use noted::NotedKeys;
