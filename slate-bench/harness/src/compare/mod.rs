//! Reports of several programs and rounds, joined into one table: what each took, how many times faster than a baseline,
//! and whether that is what was aimed at.

mod goals;
mod joined;
mod markdown;

pub use goals::{Goal, Goals, Reach};
pub use joined::{Cell, Column, Joined, Line};
pub use markdown::markdown;
