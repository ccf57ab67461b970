//! Checks the pages of a redb file against redb's checksums, which redb itself compares only when it repairs a file.
//!
//! ```text
//! header ── slot of the last commit ─┬─ root of the list of tables ── a table's root ── branches ── leaves
//!           (its own checksum)       └─ root of redb's own tables (free pages, the state of the allocator)
//! ```
//!
//! Every root and every child of a branch is stored as a page number and a checksum, so a page is correct if it matches the checksum in its parent,
//! and so on up to the header. That finds changed bits, pages with other content (zeros, another page), and pages that were not written. It does
//! not find a file that is consistent and old, such as an older copy.
//!
//! The layout is that of redb's file format version 3, from its design document,
//! <https://github.com/cberner/redb/blob/master/docs/design.md>.

mod branches;
mod header;
mod leaves;
mod page;
mod survey;
mod walk;

pub(super) use header::{Header, SIZE as HEADER_SIZE, header, is_last_commit_damaged, with_new_regions};
#[cfg(test)]
pub(super) use leaves::branches_of;
pub(super) use leaves::{LeafContent, LeafPlace, check_around, leaves, read as read_leaves};
pub(super) use survey::used_bytes;
pub(super) use walk::{PageWalk, damage_of_free_pages};
