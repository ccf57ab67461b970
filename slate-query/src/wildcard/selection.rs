//! The fields that a wildcard stands for.

use crate::{
    Code, Error, Result,
    expression::Bindings,
    number::Number,
    path::Path,
    projection::Projection,
    raw::{Doc, Kind, Value},
};

/// The paths that an index contains, each with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    Only(Vec<Box<str>>),
    AllBut(Vec<Box<str>>),
}

/// Which values at and below a path an index contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Nothing,
    /// Not the value at the path, but something below it.
    OnlyBelow,
    /// The value at the path, and some of what is below it.
    Partly,
    Whole,
}

impl Selection {
    /// Returns the selection with each path once, in order, and without those within another one.
    pub(super) fn reduced(self) -> Self {
        let reduce = |mut paths: Vec<Box<str>>| {
            paths.sort_unstable();
            paths.dedup();
            let within: Vec<bool> =
                paths.iter().map(|path| paths.iter().any(|other| other != path && is_within(path, other))).collect();
            let mut within = within.into_iter();
            paths.retain(|_| within.next() != Some(true));
            paths
        };
        match self {
            Self::Only(paths) => Self::Only(reduce(paths)),
            Self::AllBut(paths) => Self::AllBut(reduce(paths)),
        }
    }

    pub(super) fn extent(&self, path: &str) -> Extent {
        let any = |paths: &[Box<str>], holds: &dyn Fn(&str) -> bool| paths.iter().any(|path| holds(path));
        match self {
            Self::Only(paths) if any(paths, &|selected| is_within(path, selected)) => Extent::Whole,
            Self::Only(paths) if any(paths, &|selected| is_within(selected, path)) => Extent::OnlyBelow,
            Self::Only(_) => Extent::Nothing,
            Self::AllBut(paths) if any(paths, &|excluded| is_within(path, excluded)) => Extent::Nothing,
            Self::AllBut(paths) if any(paths, &|excluded| is_within(excluded, path)) => Extent::Partly,
            Self::AllBut(_) => Extent::Whole,
        }
    }

    /// Parses the `wildcardProjection` of an index with these other fields.
    ///
    /// # Errors
    /// MongoDB's codes for invalid projections, and for those of a compound index that include one of its other fields or do not
    /// exclude all of them.
    pub(super) fn parse(projection: Doc<'_>, others: &[Path]) -> Result<Self> {
        if projection.is_empty() {
            return Err(at_projection(Code::FAILED_TO_PARSE, "the wildcardProjection is an empty document"));
        }
        let mut paths = Projected::default();
        paths.collect(projection, "")?;
        if !others.is_empty() {
            paths.check_beside(others)?;
        }
        Projection::parse_stage(projection, &Bindings::new(0)).map_err(|error| error.at("wildcardProjection"))?;
        Ok(paths.selection())
    }
}

/// Returns whether `path` is `other` or below it.
pub(super) fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

pub(super) fn at_projection(code: Code, message: &str) -> Error {
    Error::new(code, message).at("wildcardProjection")
}

/// The paths of a projection.
#[derive(Default)]
struct Projected {
    included: Vec<Box<str>>,
    excluded: Vec<Box<str>>,
}

impl Projected {
    fn collect(&mut self, projection: Doc<'_>, below: &str) -> Result<()> {
        for element in projection.elements() {
            let name = element.display_name();
            let path = if below.is_empty() { name.into_owned() } else { format!("{below}.{name}") };
            let is_included = match (element.value.as_bool(), Number::of(element.value)) {
                (Some(is_included), _) => is_included,
                (None, Some(number)) => number.signum().is_ne() || number.is_nan(),
                (None, None) if element.value.kind() == Kind::Document && !is_operator(element.value) => {
                    self.collect(Doc::new(element.value.bytes()), &path)?;
                    continue;
                }
                (None, None) => {
                    let message = "a wildcardProjection only includes and excludes fields";
                    return Err(at_projection(Code(51_271), message).at(path));
                }
            };
            let paths = if is_included { &mut self.included } else { &mut self.excluded };
            paths.push(path.into());
        }
        Ok(())
    }

    /// Returns whether the projection excludes fields. As in every projection, `_id` may differ from the other fields.
    fn is_exclusion(&self) -> bool {
        are_id(&self.included) && !are_id(&self.excluded)
    }

    fn selection(mut self) -> Selection {
        if self.is_exclusion() {
            // An index contains _id only if it is included.
            if self.included.is_empty() {
                self.excluded.push("_id".into());
            }
            return Selection::AllBut(self.excluded);
        }
        if self.included.is_empty() { Selection::AllBut(self.excluded) } else { Selection::Only(self.included) }
    }

    /// Checks that the projection leaves out the other fields of a compound index, that none of its paths contains another one,
    /// and that it does not both include and exclude fields.
    fn check_beside(&self, others: &[Path]) -> Result<()> {
        for paths in [&self.included, &self.excluded] {
            let others = |at: usize| paths.iter().enumerate().filter(move |(place, _)| *place != at);
            let overlaps = |(at, path): (usize, &str)| others(at).any(|(_, other)| is_within(path, other));
            if paths.iter().map(|path| &**path).enumerate().any(overlaps) {
                return Err(at_projection(Code(7_246_200), "a field of the wildcardProjection contains another one"));
            }
        }
        if !are_id(&self.included) && !are_id(&self.excluded) {
            let message = "a wildcardProjection includes or excludes fields, it does not do both";
            return Err(at_projection(Code(7_246_211), message));
        }
        if !self.is_exclusion() && !self.included.is_empty() {
            let is_included = |other: &&Path| self.included.iter().any(|included| is_within(other.as_str(), included));
            return match others.iter().find(is_included) {
                Some(other) => {
                    let message = format!("the wildcardProjection includes {other}, another field of the index");
                    Err(at_projection(Code(7_246_208), &message))
                }
                None => Ok(()),
            };
        }
        self.check_excludes(others)
    }

    /// Checks that all other fields are excluded. Both lists are compared in their order, because MongoDB's code depends on it.
    fn check_excludes(&self, others: &[Path]) -> Result<()> {
        let mut others: Vec<&str> = others.iter().map(Path::as_str).collect();
        others.sort_unstable_by(|a, b| a.split('.').cmp(b.split('.')));
        let mut excluded: Vec<&str> = self.excluded.iter().map(|path| &**path).collect();
        excluded.sort_unstable_by(|a, b| a.split('.').cmp(b.split('.')));
        let mut excluded = excluded.into_iter().peekable();
        for other in others {
            while excluded.next_if(|path| !is_within(other, path) && path.split('.').lt(other.split('.'))).is_some() {}
            let code = match excluded.peek() {
                Some(path) if is_within(other, path) => continue,
                Some(_) => Code(7_246_209),
                None => Code(7_246_210),
            };
            let message = format!("the wildcardProjection does not exclude {other}, another field of the index");
            return Err(at_projection(code, &message));
        }
        Ok(())
    }
}

fn are_id(paths: &[Box<str>]) -> bool {
    paths.iter().all(|path| &**path == "_id")
}

fn is_operator(value: Value<'_>) -> bool {
    value.as_document().and_then(|document| document.elements().next()).is_none_or(|first| first.name.starts_with(b"$"))
}
