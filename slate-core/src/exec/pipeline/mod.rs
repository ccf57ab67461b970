//! Executes the document tier: the stages of a pipeline on the rows of a plan. Each node lends one document at a time.

mod bucket_auto;
mod count;
mod densify;
mod documents;
mod facet;
mod foreign;
mod graph_lookup;
mod group;
mod join_stages;
mod join_table;
mod lookup;
mod lookup_batches;
mod open;
mod repeat;
mod running_window;
mod sorted_group;
mod statistics;
mod transform;
mod union_with;
mod unwind;
mod wanted_rows;
mod window;
mod window_source;

use open::above;
pub(super) use open::open;
