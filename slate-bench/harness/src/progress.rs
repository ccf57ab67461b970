//! A bar on the terminal. Where standard error is none, nothing is drawn.

use indicatif::{ProgressBar, ProgressStyle};

/// How far a run is.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A run of so many steps.
    pub fn of(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// A run that nobody watches.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// What is being done now.
    pub fn tell(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
        self.bar.tick();
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// More steps than was thought.
    pub fn more(&self, steps: u64) {
        self.bar.inc_length(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
