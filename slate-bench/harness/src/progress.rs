//! A progress bar on the terminal. Draws nothing if standard error is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar with this many steps.
    pub fn of(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Creates a bar that is not displayed.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// Sets the description of the current step.
    pub fn set_message(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
        self.bar.tick();
    }

    /// Completes one step.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Increases the number of steps.
    pub fn more(&self, steps: u64) {
        self.bar.inc_length(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
