//! The storage contract of Slate, the traits of [`slate_store`], as tests that any backend can run.
//!
//! Invoke the macro in a file of `tests/`. The closure opens the store in a directory of the test, and opens it again
//! after it was closed:
//!
//! ```ignore
//! slate_store_conformance::conformance!(memory, |_| slate_store::memory::MemoryStore::new());
//! slate_store_conformance::conformance!(redb, |at| RedbStore::open(&at.join("db"), &Options::default()).unwrap());
//! ```
//!
//! Each function tests one guarantee and is named after it. A test of a guarantee that depends on
//! [`Capabilities`](slate_store::Capabilities) expects what the backend's capabilities state.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a suite of tests fails by panicking")]
#![expect(missing_docs, reason = "the name of each function states the tested guarantee")]

mod fixture;
mod tools;

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
pub use tools::Random;

/// Generates a module with one test for each guarantee of the suite: `conformance!(name, open)`. `open` is a
/// non-capturing closure that opens a [`Store`](slate_store::Store) in the directory with the given path.
///
/// `conformance!(name if condition, open)` skips the tests unless the condition holds when they run.
#[macro_export]
macro_rules! conformance {
    ($backend:ident, $open:expr) => {
        $crate::conformance! { $backend if true, $open }
    };
    ($backend:ident if $is_there:expr, $open:expr) => {
        $crate::conformance! { $backend, $is_there, $open;
            counts::a_count_is_the_number_of_keys_within_bounds
            counts::a_stopped_count_returns_none
            counts::counts_during_writes_are_consistent_and_current
            counts::each_snapshot_counts_its_own_keys
            cursors::a_cursor_is_confined_to_its_bounds
            cursors::a_cursor_of_a_snapshot_can_be_sent_to_another_thread
            cursors::a_cursor_beyond_an_end_is_positioned_only_by_a_seek
            cursors::a_read_ahead_has_what_a_scan_has
            cursors::a_seek_beyond_the_bounds_is_confined_to_them
            cursors::a_step_in_the_other_direction_returns_the_adjacent_key
            cursors::cursors_over_several_ranges_are_at_the_edges_of_each
            cursors::bounds_of_0xff_bytes_are_exact
            cursors::empty_and_inverted_bounds_contain_nothing
            cursors::two_cursors_of_a_transaction_are_independent
            durability::a_backup_succeeds_during_an_open_transaction
            durability::a_backup_is_private_until_it_is_complete
            durability::a_backup_does_not_overwrite_a_file
            durability::concurrent_committers_are_all_durable
            durability::deferred_commits_exist_after_a_flush_and_reopening
            durability::deferred_commits_stay_in_order
            durability::sync_commits_exist_after_reopening
            keyspaces::a_dropped_keyspace_is_empty_at_once
            keyspaces::keyspaces_are_separate
            keyspaces::an_open_snapshot_shows_a_dropped_keyspace
            keyspaces::dropping_a_keyspace_conflicts_with_open_writers
            keyspaces::dropping_a_missing_keyspace_does_nothing
            keyspaces::the_size_of_a_database_is_reported
            limits::long_keys_and_empty_keys_and_values_are_stored
            limits::a_value_of_16_mb_is_stored
            limits::the_largest_key_and_value_are_stored
            limits::writes_over_a_limit_fail_and_the_transaction_stays_usable
            points::a_load_reads_keys_of_several_keyspaces
            points::a_load_that_was_sent_ahead_has_what_a_load_has
            points::a_load_takes_duplicates_missing_keys_and_any_order
            points::point_reads_agree_with_a_cursor
            points::close_and_distant_keys_are_loaded
            points::own_writes_in_any_order_are_loaded_and_committed
            points::point_reads_show_own_writes
            snapshots::a_compaction_in_steps_lets_commits_pass_and_can_be_ended
            snapshots::a_read_that_does_not_wait_shows_the_last_commit
            snapshots::a_snapshot_has_no_phantoms
            snapshots::a_snapshot_is_never_torn
            snapshots::a_snapshot_outlives_the_store_and_its_own_handle
            snapshots::a_snapshot_shows_values_that_were_deleted_later
            snapshots::repeated_reads_during_writes_are_consistent_and_current
            snapshots::repeated_reads_agree_with_each_snapshot
            transactions::a_commit_spans_keyspaces
            transactions::a_dropped_transaction_leaves_nothing
            transactions::a_range_delete_covers_own_writes_and_ends_at_its_bounds
            transactions::a_transaction_stays_usable_after_an_error
            transactions::a_transaction_reads_its_own_writes
            transactions::deleting_everything_and_writing_again_shows_the_new_only
            transactions::one_call_with_many_puts_equals_single_puts
            versions::a_commit_returns_the_version_at_which_it_is_visible
            versions::a_view_shows_exactly_the_commits_up_to_its_version
            versions::the_last_stage_of_a_commit_knows_its_version
            versions::versions_grow_across_reopening
            walks::random_walks_agree_with_a_btree_map
            walks::random_walks_over_uncommitted_writes_agree_with_a_btree_map
            writers::a_counter_under_many_writers_loses_no_increment
            writers::a_transaction_that_does_not_wait_commits_or_conflicts
            writers::a_guarded_key_that_was_created_conflicts
            writers::a_key_deleted_and_made_again_conflicts
            writers::a_key_made_and_deleted_again_conflicts
            writers::an_exclusive_guard_conflicts_with_every_other_guard_and_with_writes
            writers::writing_an_equal_value_conflicts
            writers::deleting_a_key_that_another_transaction_changed_conflicts
            writers::random_interleavings_conflict_where_they_must
            writers::shared_guards_of_one_key_do_not_conflict
            writers::the_second_of_two_writers_gets_a_retryable_error
            writers::large_transactions_commit_and_conflict_like_small_ones
            writers::a_repeated_put_conflicts_after_earlier_puts_of_the_key
            writers::keys_deleted_by_other_transactions_stay_deleted
            writers::nothing_waits_for_an_open_transaction
            writers::a_deleted_range_conflicts_with_later_commits
            writers::the_last_stage_of_a_commit_conflicts_as_other_writes_do
            writers::write_skew_is_prevented_by_a_guard
            writers::writers_of_different_keys_do_not_conflict
        }
    };
    ($backend:ident, $is_there:expr, $open:expr; $($topic:ident::$claim:ident)*) => {
        mod $backend {
            $(
                #[test]
                fn $claim() {
                    if $is_there {
                        $crate::$topic::$claim(&$crate::Fixture::new($open));
                    }
                }
            )*
        }
    };
}
