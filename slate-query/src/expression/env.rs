use std::{collections::BTreeMap, sync::Arc};

use super::Evaluated;
use crate::{
    Code, Error, Result,
    collation::Collation,
    raw::{Doc, FieldName, OwnedValue, Value},
};

/// The variables that an expression may use, by name.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// For each variable its value, if expressions are parsed for that value only. The position of a variable in the list is
    /// its position among the [frames](Frame) of an [`Env`].
    values: Vec<Option<Arc<OwnedValue>>>,
    /// The positions of the variables that no other variable of the same name hides.
    positions: BTreeMap<Box<str>, usize>,
    /// How strings are compared, if not by their bytes.
    collation: Option<Collation>,
    is_lenient: bool,
}

impl Variables {
    /// Returns the same variables and one more, which may hide another of the same name.
    ///
    /// # Errors
    /// `FailedToParse` (9) if the name is not one for a variable: it must begin with a lowercase letter and consist of
    /// letters, digits and underscores.
    pub fn with(&self, name: &str) -> Result<Self> {
        check(name)?;
        Ok(self.with_system(name))
    }

    /// Adds a variable, which may hide another of the same name, without copying the others.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub(super) fn add(&mut self, name: &str) -> Result<()> {
        check(name)?;
        self.add_system(name);
        Ok(())
    }

    fn add_system(&mut self, name: &str) {
        self.positions.insert(name.into(), self.values.len());
        self.values.push(None);
    }

    /// Like [`with`](Self::with), but accepts any name.
    pub(crate) fn with_system(&self, name: &str) -> Self {
        let mut extended = self.clone();
        extended.add_system(name);
        extended
    }

    /// Sets the value of the last variable. Expressions that are parsed with the variables are valid for this value only.
    pub(crate) fn set_last(&mut self, value: &OwnedValue) {
        if let Some(last) = self.values.last_mut() {
            *last = Some(Arc::new(value.clone()));
        }
    }

    /// Returns the same variables for expressions that are perhaps never evaluated: an operator that fails for its constant
    /// operands then fails when it is evaluated, not when it is parsed.
    pub(crate) fn lenient(self) -> Self {
        Self { is_lenient: true, ..self }
    }

    pub(super) fn is_lenient(&self) -> bool {
        self.is_lenient
    }

    /// Returns the same variables where strings are compared by a collation.
    pub(crate) fn collated(self, collation: Option<Collation>) -> Self {
        Self { collation, ..self }
    }

    /// Returns how strings are compared, if not by their bytes.
    pub(crate) fn collation(&self) -> Option<&Collation> {
        self.collation.as_ref()
    }

    /// Returns the distance of the variable from the innermost, which has 0; `None` for an unknown name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.positions.get(name).map(|position| self.values.len() - 1 - position)
    }

    /// Returns the value of the variable at this distance from the innermost, if expressions are parsed for one value only.
    pub(super) fn value(&self, up: usize) -> Option<&OwnedValue> {
        self.values.iter().rev().nth(up)?.as_deref()
    }
}

/// Fails with `FailedToParse` (9) for a name that no variable may have.
fn check(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let is_allowed = name == "CURRENT"
        || bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first >= 0x80)
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80);
    if !is_allowed {
        let message = format!("'{name}' is not a name for a variable: it begins with a lowercase letter");
        return Err(Error::new(Code::FAILED_TO_PARSE, message));
    }
    Ok(())
}

/// The document and the variables for which an expression is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Env<'v> {
    root: Doc<'v>,
    now: i64,
    collation: Option<&'v Collation>,
    frame: Option<&'v Frame<'v>>,
}

/// The values of variables, and the frames of the variables around them.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'v> {
    values: FrameValues<'v>,
    outer: Option<&'v Frame<'v>>,
}

/// The values of the variables of a frame, the innermost last. `None` and missing: the value is missing.
#[derive(Clone, Copy, Debug)]
enum FrameValues<'v> {
    One(Option<Value<'v>>),
    Computed(&'v [Evaluated<'v>]),
    Bound(&'v [Option<OwnedValue>]),
}

impl<'v> FrameValues<'v> {
    fn len(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Computed(values) => values.len(),
            Self::Bound(values) => values.len(),
        }
    }

    /// Returns the value of the variable at this distance from the innermost.
    fn at(self, up: usize) -> Option<Value<'v>> {
        let place = self.len().checked_sub(up + 1)?;
        match self {
            Self::One(value) => value,
            Self::Computed(values) => values.get(place)?.as_value(),
            Self::Bound(values) => values.get(place)?.as_ref().map(OwnedValue::as_value),
        }
    }
}

impl<'v> Env<'v> {
    /// Creates the environment for a document. `now` is the value of `$$NOW` in milliseconds since 1970.
    #[inline]
    pub fn new(document: Doc<'v>, now: i64) -> Self {
        Self { root: document, now, collation: None, frame: None }
    }

    /// Returns the frame of one more variable with this value; `None`: the value is missing.
    pub fn frame(&self, value: Option<Value<'v>>) -> Frame<'v> {
        Frame { values: FrameValues::One(value), outer: self.frame }
    }

    /// Returns the frame of one more variable for each value.
    pub(super) fn frame_of_computed(&self, values: &'v [Evaluated<'v>]) -> Frame<'v> {
        Frame { values: FrameValues::Computed(values), outer: self.frame }
    }

    /// Returns the frame of one more variable for each value.
    pub(super) fn frame_of_bound(&self, values: &'v [Option<OwnedValue>]) -> Frame<'v> {
        Frame { values: FrameValues::Bound(values), outer: self.frame }
    }

    /// Returns the same environment with a frame from [`frame`](Self::frame).
    #[must_use]
    pub fn within<'w>(&self, frame: &'w Frame<'w>) -> Env<'w>
    where
        'v: 'w,
    {
        Env { frame: Some(frame), ..*self }
    }

    /// Returns the same variables for another document.
    #[must_use]
    pub fn with_document(self, document: Doc<'v>) -> Self {
        Self { root: document, ..self }
    }

    /// Returns the value of a field of the document.
    #[inline]
    pub(super) fn field(&self, name: &FieldName) -> Option<Value<'v>> {
        self.root.find(name)
    }

    /// Returns the same environment with strings compared by a collation.
    #[inline]
    #[must_use]
    pub fn with_collation(self, collation: Option<&'v Collation>) -> Self {
        Self { collation, ..self }
    }

    #[inline]
    pub(crate) fn collation(&self) -> Option<&'v Collation> {
        self.collation
    }

    #[inline]
    pub(crate) fn root(&self) -> Doc<'v> {
        self.root
    }

    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Returns the value of the variable at this distance from the innermost.
    pub(super) fn variable(&self, up: usize) -> Option<Value<'v>> {
        let (mut frame, mut up) = (self.frame?, up);
        while up >= frame.values.len() {
            up -= frame.values.len();
            frame = frame.outer?;
        }
        frame.values.at(up)
    }
}
