//! The contract as tests that any backend can run.
//!
//! ```ignore
//! // In a file of `tests/`. The closure opens the store in a folder of the test's own, and again after it was closed.
//! slate_store::conformance!(memory, |_| slate_store::memory::MemoryStore::new());
//! slate_store::conformance!(redb, |at| RedbStore::open(&at.join("db"), &Options::default()).unwrap());
//! ```
//!
//! Each claim is one test, named as what it claims. What depends on a backend's [`Capabilities`](crate::Capabilities) is
//! claimed in the form that they state.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a suite of tests fails by panicking")]
#![expect(missing_docs, reason = "the name of each function is what it claims")]

mod fixture;
mod tools;

#[cfg(test)]
pub(crate) use tools::Random;

pub mod counts;
pub mod cursors;
pub mod durability;
pub mod keyspaces;
pub mod limits;
pub mod points;
pub mod snapshots;
pub mod transactions;
pub mod versions;
pub mod walks;
pub mod writers;

pub use fixture::Fixture;

/// Makes a module of tests, one for each claim of the suite: `conformance!(name, open)`. `open` is a closure, capturing
/// nothing, from the path of a folder to a [`Store`](crate::Store) opened in it.
#[macro_export]
macro_rules! conformance {
    ($backend:ident, $open:expr) => {
        $crate::conformance! { $backend, $open;
            counts::a_count_is_of_the_keys_within_its_bounds
            counts::a_count_that_is_broken_off_tells_nothing
            counts::counts_beside_writers_are_whole_and_never_old
            counts::each_snapshot_counts_what_it_has
            cursors::a_cursor_is_confined_to_its_bounds
            cursors::a_cursor_of_a_snapshot_can_be_sent_to_another_thread
            cursors::a_cursor_off_an_end_returns_only_by_a_seek
            cursors::a_seek_beyond_the_bounds_is_confined_to_them
            cursors::a_turn_steps_to_the_neighbour
            cursors::bounds_at_0xff_hold_what_they_name
            cursors::empty_and_inverted_bounds_hold_nothing
            cursors::two_cursors_of_a_transaction_stand_at_once
            durability::a_backup_is_made_beside_an_open_writer
            durability::a_backup_leaves_alone_what_lies_in_its_place
            durability::concurrent_committers_are_all_durable
            durability::deferred_commits_are_there_after_a_flush
            durability::deferred_commits_stay_in_order
            durability::what_was_committed_sync_is_there_after_reopening
            keyspaces::a_dropped_keyspace_is_empty_at_once
            keyspaces::a_keyspace_is_blind_to_the_others
            keyspaces::an_open_snapshot_keeps_seeing_a_dropped_keyspace
            keyspaces::dropping_a_keyspace_and_an_open_writer
            keyspaces::dropping_what_does_not_exist_does_nothing
            keyspaces::the_size_of_a_database_can_be_asked
            limits::a_long_key_and_an_empty_key_and_value_are_kept
            limits::a_value_of_16_mb_is_kept
            limits::the_largest_key_and_value_are_kept
            limits::what_is_over_the_limit_is_refused_and_the_transaction_goes_on
            points::a_load_reads_keys_of_several_keyspaces
            points::a_load_takes_duplicates_missing_keys_and_any_order
            points::a_point_lends_what_a_cursor_shows
            points::keys_near_and_far_are_loaded_alike
            points::own_writes_of_any_order_are_loaded_and_committed
            points::points_see_own_writes
            snapshots::a_read_that_does_not_wait_shows_the_last_commit
            snapshots::a_snapshot_has_no_phantoms
            snapshots::a_snapshot_is_never_torn
            snapshots::a_snapshot_outlives_the_store_and_its_own_handle
            snapshots::a_snapshot_outlives_what_is_deleted_after_it
            snapshots::what_is_read_often_beside_writers_is_whole_and_never_old
            snapshots::what_is_read_often_is_what_each_snapshot_has
            transactions::a_commit_spans_keyspaces
            transactions::a_dropped_transaction_leaves_nothing
            transactions::a_range_delete_covers_own_writes_and_ends_at_its_bounds
            transactions::a_transaction_goes_on_after_an_error
            transactions::a_transaction_reads_its_own_writes
            transactions::deleting_everything_and_writing_again_shows_the_new_only
            transactions::many_puts_at_once_are_as_one_put_each
            versions::a_commit_returns_the_version_from_which_on_it_is_seen
            versions::a_view_shows_exactly_the_commits_up_to_its_version
            versions::versions_grow_across_reopening
            walks::random_walks_agree_with_a_btree_map
            walks::random_walks_over_uncommitted_writes_agree_with_a_btree_map
            writers::a_counter_under_many_writers_loses_no_increment
            writers::a_guarded_key_that_was_created_conflicts
            writers::a_key_deleted_and_made_again_conflicts
            writers::a_key_made_and_deleted_again_conflicts
            writers::an_exclusive_guard_conflicts_with_every_other_guard_and_with_writes
            writers::an_equal_value_conflicts_all_the_same
            writers::deleting_what_the_other_changed_conflicts
            writers::random_interleavings_conflict_where_they_must
            writers::shared_guards_of_one_key_do_not_conflict
            writers::the_second_of_two_writers_gets_a_retryable_error
            writers::transactions_of_many_writes_commit_and_conflict_as_others_do
            writers::what_was_put_before_is_told_from_what_is_put_again
            writers::what_others_deleted_stays_deleted
            writers::who_waits_for_himself_is_told_at_once
            writers::write_skew_is_prevented_by_a_guard
            writers::writers_apart_do_not_conflict
            writers::writers_are_served_in_the_order_in_which_they_came
        }
    };
    ($backend:ident, $open:expr; $($topic:ident::$claim:ident)*) => {
        mod $backend {
            $(
                #[test]
                fn $claim() {
                    $crate::conformance::$topic::$claim(&$crate::conformance::Fixture::new($open));
                }
            )*
        }
    };
}
