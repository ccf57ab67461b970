//! Joins reports of several programs and rounds into one table: times, ratios to a baseline, and goals.

mod goals;
mod joined;
mod markdown;

pub use goals::{Goal, Goals, Reach};
pub use joined::{Cell, Column, Joined, Line};
pub use markdown::markdown;
