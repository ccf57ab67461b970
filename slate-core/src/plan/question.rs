use std::borrow::Cow;

use slate_query::filter::OneValue;

use super::Query;
use crate::Result;

/// A question as it is asked of a store.
pub(crate) enum Question<'q> {
    Parsed(&'q Query),
    /// One that is parsed only where it has to be planned: to parse it, and to let go of that, is a fifth of its answer.
    Unparsed {
        few: Few<'q>,
        parse: &'q dyn Fn() -> Result<Query>,
    },
}

/// Whole records that hold one value are asked for, in any order. There may be few of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few<'q> {
    pub(crate) value: OneValue<'q>,
    /// How many are wanted at most; not 0.
    pub(crate) limit: Option<u64>,
}

impl Question<'_> {
    pub(crate) fn few(&self) -> Option<Few<'_>> {
        match self {
            Self::Parsed(query) => query.few(),
            Self::Unparsed { few, .. } => Some(*few),
        }
    }

    pub(crate) fn query(&self) -> Result<Cow<'_, Query>> {
        match self {
            Self::Parsed(query) => Ok(Cow::Borrowed(query)),
            Self::Unparsed { parse, .. } => parse().map(Cow::Owned),
        }
    }
}
