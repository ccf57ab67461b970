use std::collections::HashSet;

use super::{
    add_fields,
    additions::Additions,
    parse::{Dialect, Parsed, Sense, parse},
    positional,
    shape::Shape,
    slice::Slice,
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

/// A parsed projection, as `find` takes it.
#[derive(Clone, Debug)]
pub struct Projection {
    passes: Box<[Pass]>,
    computed: Option<Box<Computed>>,
    kept: Kept,
    included: Option<Box<[Path]>>,
    /// The top-level fields that an inclusion reads; `None` for other projections.
    shown: Option<Box<[Box<str>]>>,
}

/// Computed fields.
#[derive(Clone, Debug)]
struct Computed {
    additions: Additions,
    bindings: Bindings,
}

/// The top-level fields that are the same in a projected document, sorted.
#[derive(Clone, Debug)]
enum Kept {
    Only(Box<[Box<str>]>),
    AllBut(Box<[Box<str>]>),
}

/// The steps of a projection.
#[derive(Clone, Debug)]
enum Pass {
    Shape(Shape),
    Slice(Box<[Box<str>]>, Slice),
    Positional(Box<[Box<str>]>),
}

fn sorted(names: impl Iterator<Item = Box<str>>) -> Box<[Box<str>]> {
    let mut names: Box<[_]> = names.collect();
    names.sort_unstable();
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
        let kept = Kept::AllBut(sorted(root.fields.iter().map(|(name, _)| name.clone())));
        let computed = Some(Box::new(Computed { additions: root.additions(), bindings: bindings.clone() }));
        Ok(Self { passes: Box::default(), computed, kept, included: None, shown: None })
    }

    fn of(Parsed { sense, root }: Parsed, bindings: &Bindings) -> Result<Self> {
        let additions = root.additions();
        let names = |holds: fn(&Action) -> bool| {
            work::take(root.fields.len())?;
            let names = root.fields.iter().filter(|(_, action)| holds(action)).map(|(name, _)| name.clone());
            Ok(sorted(names))
        };
        let kept = match sense {
            Sense::Inclusion => Kept::Only(names(|action| matches!(action, Action::Include))?),
            Sense::Exclusion => Kept::AllBut(names(|_| true)?),
        };
        let included = match sense {
            Sense::Inclusion => paths(&root)?,
            Sense::Exclusion => None,
        };
        let shown = match sense {
            Sense::Inclusion => Some(names(|action| !matches!(action, Action::Exclude | Action::Computed(_)))?),
            Sense::Exclusion => None,
        };
        let mut changes = Vec::new();
        collect_changes(&root, &mut Vec::new(), &mut changes);
        let shape = match sense {
            Sense::Inclusion => Shape::inclusion(root),
            Sense::Exclusion => Shape::exclusion(root),
        };
        let shape = (!shape.is_whole()).then_some(Pass::Shape(shape));
        let computed = (!additions.is_empty()).then(|| Box::new(Computed { additions, bindings: bindings.clone() }));
        Ok(Self { passes: shape.into_iter().chain(changes).collect(), computed, kept, included, shown })
    }

    /// Writes into `out` (cleared first) the projected document. An inclusion shows the first of repeated fields.
    ///
    /// `position` is the array position for the positional `$`; see [`crate::filter::Filter::positional`].
    ///
    /// # Errors
    /// 51246 or 51247 if the positional `$` has no element to show. Then `out` does not contain a document.
    pub fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let Some(computed) = &self.computed else { return self.shape(doc, position, out) };
        if self.passes.is_empty() {
            return computed.apply(doc, doc, out);
        }
        self.shape(doc, position, out)?;
        let base = std::mem::take(out);
        computed.apply(Doc::new(&base), doc, out)
    }

    /// Applies everything but the computed fields.
    fn shape(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        let Some((first, rest)) = self.passes.split_first() else {
            out.extend_from_slice(doc.bytes());
            return Ok(());
        };
        // The condition of an `$elemMatch` can be given up.
        failure::watch(|| first.apply(doc, position, out))??;
        for pass in rest {
            let input = std::mem::take(out);
            pass.apply(Doc::new(&input), position, out)?;
        }
        Ok(())
    }

    /// Returns whether every document is shown unchanged.
    pub fn is_identity(&self) -> bool {
        self.passes.is_empty() && self.computed.is_none()
    }

    /// Returns `true` only if a projected document has the same value at `path` as its original, and the path leads to it
    /// through the same documents and arrays. `false` means that this is not known.
    pub fn preserves(&self, path: &Path) -> bool {
        let is_among = |names: &[Box<str>]| {
            path.parts().first().is_some_and(|first| names.binary_search_by(|name| (**name).cmp(first.name())).is_ok())
        };
        match &self.kept {
            Kept::Only(names) => is_among(names),
            Kept::AllBut(names) => !is_among(names),
        }
    }

    /// Returns the fields that the projection reads of a document, if its result needs `after`.
    pub(crate) fn needs(&self, after: Needs) -> Needs {
        let mut needs = match &self.shown {
            Some(shown) => {
                let mut needs = Needs::NOTHING;
                shown.iter().for_each(|name| needs.add_name(name));
                if shown.len() > 1 && after.is_ordered() { needs.ordered() } else { needs }
            }
            None => after,
        };
        if let Some(computed) = &self.computed {
            computed.additions.needs(&mut needs);
        }
        needs
    }

    /// Returns whether both only include whole fields, and all fields that `next` includes are included by this
    /// projection.
    pub(crate) fn shows_all_of(&self, next: &Self) -> bool {
        match (&self.included, &next.included) {
            (Some(included), Some(shown)) => {
                let included: HashSet<&str> = included.iter().map(Path::as_str).collect();
                shown.iter().all(|path| included.contains(path.as_str()))
            }
            _ => false,
        }
    }

    /// Returns the projection that adds the fields of `self` and `next`. `None` if either of them does more than add fields, or
    /// `next` depends on the fields that `self` adds.
    pub(crate) fn with_additions(&self, next: &Self) -> Option<Self> {
        let (Some(first), Some(second)) = (&self.computed, &next.computed) else { return None };
        let (Kept::AllBut(names), Kept::AllBut(more)) = (&self.kept, &next.kept) else { return None };
        let is_plain = self.passes.is_empty() && next.passes.is_empty();
        if !is_plain || names.iter().any(|name| more.binary_search(name).is_ok()) || second.additions.reads_any(names) {
            return None;
        }
        let additions = first.additions.clone().and(&second.additions);
        let computed = Some(Box::new(Computed { additions, bindings: first.bindings.clone() }));
        let kept = Kept::AllBut(sorted(names.iter().chain(more).cloned()));
        Some(Self { passes: Box::default(), computed, kept, included: None, shown: None })
    }

    /// Returns whether no document makes the projection fail.
    pub(crate) fn is_infallible(&self) -> bool {
        !self.needs_position() && self.computed.as_ref().is_none_or(|computed| computed.additions.is_infallible())
    }

    /// Returns whether a document's projection can fail.
    pub fn computes(&self) -> bool {
        self.computed.is_some()
    }

    /// Returns the included paths, with `_id` unless it is excluded, of a projection that only includes whole paths;
    /// otherwise `None`.
    pub fn included(&self) -> Option<&[Path]> {
        self.included.as_deref()
    }

    /// Returns whether [`Projection::apply`] needs the position at which the filter matched.
    pub fn needs_position(&self) -> bool {
        self.passes.iter().any(|pass| matches!(pass, Pass::Positional(_)))
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
            Self::Slice(path, slice) => slice.apply(path, doc, out)?,
            Self::Positional(path) => positional::apply(doc, path, position, out)?,
        }
        Ok(())
    }
}

/// Returns the included paths, if the projection only includes whole paths.
fn paths(root: &Branch) -> Result<Option<Box<[Path]>>> {
    fn collect(branch: &Branch, prefix: &str, paths: &mut Vec<Path>) -> Result<bool> {
        for (name, action) in branch.fields.iter() {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
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

/// Appends the changes to arrays, in the order of their paths.
fn collect_changes(branch: &Branch, prefix: &mut Vec<Box<str>>, changes: &mut Vec<Pass>) {
    for (name, action) in branch.fields.iter() {
        prefix.push(name.clone());
        match action {
            Action::Within(branch) => collect_changes(branch, prefix, changes),
            Action::Slice(slice) => changes.push(Pass::Slice(prefix.as_slice().into(), *slice)),
            Action::Positional => changes.push(Pass::Positional(prefix.as_slice().into())),
            Action::Include | Action::Exclude | Action::ElemMatch(_) | Action::Computed(_) => {}
        }
        prefix.pop();
    }
}
