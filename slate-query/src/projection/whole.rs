use std::{borrow::Cow, collections::HashSet, sync::Arc};

use super::{
    add_fields,
    additions::Additions,
    parse::{Dialect, Parsed, Sense, parse},
    positional,
    shape::Shape,
    slice::Slices,
    tree::{Action, Branch},
};
use crate::{
    Result,
    expression::{Bindings, Needs},
    path::Path,
    raw::Doc,
    regular_expression::failure,
    work,
};

/// A parsed projection. Clones share its parts.
#[derive(Clone, Debug)]
pub struct Projection(Arc<ParsedProjection>);

#[derive(Debug)]
struct ParsedProjection {
    passes: Box<[Pass]>,
    computed: Option<Computed>,
    fields: TopFields,
    included: Option<Box<[Path]>>,
}

/// Computed fields.
#[derive(Debug)]
struct Computed {
    additions: Additions,
    bindings: Bindings,
}

/// The top-level fields that a projection names, sorted.
#[derive(Debug)]
enum TopFields {
    /// An inclusion reads no others.
    Read(Box<[ReadField]>),
    /// All others are the same in a projected document.
    Changed(Box<[Box<str>]>),
}

/// A top-level field that an inclusion reads.
#[derive(Debug)]
struct ReadField {
    name: Box<str>,
    /// Whether it is the same in a projected document.
    is_same: bool,
}

/// The steps of a projection.
#[derive(Debug)]
enum Pass {
    Shape(Shape),
    Slices(Slices),
    Positional(Box<[Box<str>]>),
}

fn sorted(names: impl Iterator<Item = Box<str>>) -> Box<[Box<str>]> {
    let mut names: Box<[_]> = names.collect();
    work::sort_by(&mut names, Ord::cmp);
    names
}

impl Projection {
    /// Parses the projection document of a `find`. An empty one shows documents unchanged.
    ///
    /// # Errors
    /// MongoDB's codes for invalid projections; `NotImplemented` (238) for expressions that Slate does not support, by
    /// name.
    pub fn parse(spec: Doc<'_>, bindings: &Bindings) -> Result<Self> {
        Self::of(parse(spec, Dialect::Find, bindings.names())?, bindings)
    }

    /// Parses the argument of a `$project`.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub fn parse_stage(spec: Doc<'_>, bindings: &Bindings) -> Result<Self> {
        Self::of(parse(spec, Dialect::Stage, bindings.names())?, bindings)
    }

    /// Parses the argument of an `$addFields`.
    ///
    /// # Errors
    /// MongoDB's codes.
    pub fn parse_additions(spec: Doc<'_>, bindings: &Bindings) -> Result<Self> {
        let root = add_fields::parse(spec, bindings.names())?;
        let changed = sorted(root.fields.iter().map(|(name, _)| name.clone()));
        Ok(Self::adding(Computed { additions: root.additions(), bindings: bindings.clone() }, changed))
    }

    /// Returns the projection that does nothing but add fields, with these names.
    fn adding(computed: Computed, names: Box<[Box<str>]>) -> Self {
        let (passes, fields) = (Box::default(), TopFields::Changed(names));
        Self(Arc::new(ParsedProjection { passes, computed: Some(computed), fields, included: None }))
    }

    fn of(Parsed { sense, root }: Parsed, bindings: &Bindings) -> Result<Self> {
        let additions = root.additions();
        work::take(root.fields.len())?;
        let (fields, included) = match sense {
            Sense::Inclusion => (TopFields::Read(read_fields(&root)), paths(&root)?),
            Sense::Exclusion => (TopFields::Changed(sorted(root.fields.iter().map(|(name, _)| name.clone()))), None),
        };
        let slices = Slices::of(&root);
        let slices = (!slices.is_empty()).then_some(Pass::Slices(slices));
        let positional = positional_path(&root).map(|path| Pass::Positional(path.into()));
        let shape = match sense {
            Sense::Inclusion => Shape::inclusion(root),
            Sense::Exclusion => Shape::exclusion(root),
        };
        let shape = (!shape.is_whole()).then_some(Pass::Shape(shape));
        let computed = (!additions.is_empty()).then(|| Computed { additions, bindings: bindings.clone() });
        let passes = shape.into_iter().chain(slices).chain(positional).collect();
        Ok(Self(Arc::new(ParsedProjection { passes, computed, fields, included })))
    }

    /// Writes into `out` (cleared first) the projected document. An inclusion shows the first of repeated fields.
    ///
    /// `position` is the array position for the positional `$`; see [`crate::filter::Filter::positional`].
    ///
    /// # Errors
    /// 51246 or 51247 if the positional `$` has no element to show; the errors of expressions and regular
    /// expressions. Then `out` does not contain a document.
    pub fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let Some(computed) = &self.0.computed else { return self.shape(doc, position, out) };
        if self.0.passes.is_empty() {
            return computed.apply(doc, doc, out);
        }
        self.shape(doc, position, out)?;
        let base = std::mem::take(out);
        computed.apply(Doc::new(&base), doc, out)
    }

    /// Applies everything but the computed fields.
    fn shape(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        let Some((first, rest)) = self.0.passes.split_first() else {
            out.extend_from_slice(doc.bytes());
            return Ok(());
        };
        // A pattern in the condition of an `$elemMatch` can exceed its limit of backtracking steps.
        failure::watch(|| first.apply(doc, position, out))??;
        for pass in rest {
            let input = std::mem::take(out);
            pass.apply(Doc::new(&input), position, out)?;
        }
        Ok(())
    }

    /// Returns whether every document is shown unchanged.
    pub fn is_identity(&self) -> bool {
        self.0.passes.is_empty() && self.0.computed.is_none()
    }

    /// Returns `true` only if a projected document has the same value at `path` as its original, and the path leads to it
    /// through the same documents and arrays. `false` means that this is not known.
    pub fn preserves(&self, path: &Path) -> bool {
        let Some(first) = path.parts().first() else { return false };
        match &self.0.fields {
            TopFields::Read(fields) => {
                let place = fields.binary_search_by(|field| (*field.name).cmp(first.name()));
                place.is_ok_and(|place| fields.get(place).is_some_and(|field| field.is_same))
            }
            TopFields::Changed(names) => names.binary_search_by(|name| (**name).cmp(first.name())).is_err(),
        }
    }

    /// Returns the fields that the projection reads of a document, if its result needs `after`.
    pub(crate) fn needs(&self, after: Needs) -> Needs {
        let mut needs = match &self.0.fields {
            TopFields::Read(fields) => {
                let mut needs = Needs::NOTHING;
                fields.iter().for_each(|field| needs.add_name(&field.name));
                if fields.len() > 1 && after.is_ordered() { needs.ordered() } else { needs }
            }
            TopFields::Changed(_) => after,
        };
        if let Some(computed) = &self.0.computed {
            computed.additions.needs(&mut needs);
        }
        needs
    }

    /// Returns whether both only include whole fields, and all fields that `next` includes are included by this
    /// projection.
    pub(crate) fn shows_all_of(&self, next: &Self) -> bool {
        match (&self.0.included, &next.0.included) {
            (Some(included), Some(shown)) => {
                let included: HashSet<&str> = included.iter().map(Path::as_str).collect();
                shown.iter().all(|path| included.contains(path.as_str()))
            }
            _ => false,
        }
    }

    /// Returns the projection that adds the fields of `self` and `next`. `None` if either of them does more than add fields, or
    /// `next` sets or reads a field that `self` adds.
    pub(crate) fn with_additions(&self, next: &Self) -> Option<Self> {
        let (Some(first), Some(second)) = (&self.0.computed, &next.0.computed) else { return None };
        let (TopFields::Changed(names), TopFields::Changed(more)) = (&self.0.fields, &next.0.fields) else {
            return None;
        };
        let is_plain = self.0.passes.is_empty() && next.0.passes.is_empty();
        if !is_plain || names.iter().any(|name| more.binary_search(name).is_ok()) || second.additions.reads_any(names) {
            return None;
        }
        let additions = first.additions.clone().and(&second.additions);
        let computed = Computed { additions, bindings: first.bindings.clone() };
        Some(Self::adding(computed, sorted(names.iter().chain(more).cloned())))
    }

    /// Returns whether neither a positional `$` nor an expression can make the projection fail.
    pub(crate) fn is_infallible(&self) -> bool {
        !self.needs_position() && self.0.computed.as_ref().is_none_or(|computed| computed.additions.is_infallible())
    }

    /// Returns whether any field is an expression.
    pub fn computes(&self) -> bool {
        self.0.computed.is_some()
    }

    /// Returns the included paths, with `_id` unless it is excluded, of a projection that only includes whole paths;
    /// otherwise `None`.
    pub fn included(&self) -> Option<&[Path]> {
        self.0.included.as_deref()
    }

    /// Returns whether [`Projection::apply`] needs the position at which the filter matched.
    pub fn needs_position(&self) -> bool {
        self.0.passes.iter().any(|pass| matches!(pass, Pass::Positional(_)))
    }
}

impl Computed {
    fn apply(&self, base: Doc<'_>, original: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.bindings.within(original, |env| self.additions.apply(base, env, out))
    }
}

impl Pass {
    fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Shape(shape) => shape.apply(doc, out),
            Self::Slices(slices) => slices.apply(doc, out),
            Self::Positional(path) => positional::apply(doc, path, position, out)?,
        }
        Ok(())
    }
}

/// Returns the top-level fields that an inclusion reads.
fn read_fields(root: &Branch) -> Box<[ReadField]> {
    let read = root.fields.iter().filter(|(_, action)| !matches!(action, Action::Exclude | Action::Computed(_)));
    let field = |(name, action): &(Box<str>, Action)| ReadField {
        name: name.clone(),
        is_same: matches!(action, Action::Include),
    };
    let mut fields: Box<[_]> = read.map(field).collect();
    work::sort_by(&mut fields, |a, b| a.name.cmp(&b.name));
    fields
}

/// Returns the included paths, if the projection only includes whole paths.
fn paths(root: &Branch) -> Result<Option<Box<[Path]>>> {
    fn collect(branch: &Branch, prefix: &str, paths: &mut Vec<Path>) -> Result<bool> {
        for (name, action) in branch.fields.iter() {
            let path = if prefix.is_empty() { Cow::Borrowed(&**name) } else { format!("{prefix}.{name}").into() };
            match action {
                Action::Include => paths.push(Path::parse(&path)?),
                Action::Within(branch) if collect(branch, &path, paths)? => {}
                // Only `_id` can be excluded from an inclusion.
                Action::Exclude => {}
                Action::Within(_)
                | Action::Slice(_)
                | Action::ElemMatch(_)
                | Action::Positional
                | Action::Computed(_) => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
    let mut paths = Vec::new();
    Ok(collect(root, "", &mut paths)?.then(|| paths.into()))
}

/// Returns the names that lead to the positional `$`, of which a projection has at most one.
fn positional_path(branch: &Branch) -> Option<Vec<Box<str>>> {
    branch.fields.iter().find_map(|(name, action)| {
        let below = match action {
            Action::Positional => Vec::new(),
            Action::Within(branch) => positional_path(branch)?,
            Action::Include | Action::Exclude | Action::Slice(_) | Action::ElemMatch(_) | Action::Computed(_) => {
                return None;
            }
        };
        Some(std::iter::once(name.clone()).chain(below).collect())
    })
}
