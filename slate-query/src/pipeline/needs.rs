//! The fields that stages read.

use super::Stage;
use crate::{expression::Needs, filter::Filter};

impl Needs {
    /// Returns the needs of a pipeline whose result is returned.
    pub fn of(stages: &[Stage]) -> Self {
        stages.iter().rev().fold(Self::Whole, |after, stage| stage.needs(after))
    }

    pub(crate) fn add_filter(&mut self, filter: &Filter) {
        let is_known = filter.all_paths(|path| {
            self.add_path(path);
            true
        });
        if !is_known {
            *self = Self::Whole;
        }
    }
}
