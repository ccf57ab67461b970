use super::{
    parse::{Parsed, Sense, parse},
    positional::Positional,
    shape::Shape,
    slice::Slice,
    tree::{Action, Branch},
};
use crate::{Result, path::Path, raw::Doc};

/// A parsed projection, as `find` takes it.
#[derive(Clone, Debug)]
pub struct Projection {
    passes: Box<[Pass]>,
    included: Option<Box<[Path]>>,
}

/// The steps of a projection.
#[derive(Clone, Debug)]
enum Pass {
    Shape(Shape),
    Slice(Box<[Box<str>]>, Slice),
    Positional(Positional),
}

impl Projection {
    /// Parses a projection document. An empty one shows documents unchanged.
    ///
    /// # Errors
    /// MongoDB's codes for invalid projections; `NotImplemented` (238) for computed fields, by name.
    pub fn parse(spec: Doc<'_>) -> Result<Self> {
        let Parsed { sense, root } = parse(spec)?;
        let included = match sense {
            Sense::Inclusion => paths(&root)?,
            Sense::Exclusion => None,
        };
        let mut changes = Vec::new();
        collect_changes(&root, &mut Vec::new(), &mut changes);
        let shape = match sense {
            Sense::Inclusion => Shape::inclusion(root),
            Sense::Exclusion => Shape::exclusion(root),
        };
        let shape = (!shape.is_whole()).then_some(Pass::Shape(shape));
        Ok(Self { passes: shape.into_iter().chain(changes).collect(), included })
    }

    /// Replaces the content of `out` by the projected document. An inclusion shows the first of repeated fields.
    ///
    /// `position` is the array position for the positional `$`; see [`crate::filter::Filter::positional`].
    ///
    /// # Errors
    /// 51246 or 51247 if the positional `$` has no element to show. Then `out` does not contain a document.
    pub fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let Some((first, rest)) = self.passes.split_first() else {
            out.extend_from_slice(doc.bytes());
            return Ok(());
        };
        first.apply(doc, position, out)?;
        for pass in rest {
            let input = std::mem::take(out);
            pass.apply(Doc::new(&input), position, out)?;
        }
        Ok(())
    }

    /// Whether every document is shown unchanged.
    pub fn is_identity(&self) -> bool {
        self.passes.is_empty()
    }

    /// The included paths, with `_id` unless it is excluded, of a projection that only includes whole paths; otherwise
    /// `None`.
    pub fn included(&self) -> Option<&[Path]> {
        self.included.as_deref()
    }

    /// Whether [`Projection::apply`] needs the position at which the filter matched.
    pub fn needs_position(&self) -> bool {
        self.passes.iter().any(|pass| matches!(pass, Pass::Positional(_)))
    }
}

impl Pass {
    fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Shape(shape) => shape.apply(doc, out),
            Self::Slice(path, slice) => slice.apply(path, doc, out),
            Self::Positional(positional) => positional.apply(doc, position, out)?,
        }
        Ok(())
    }
}

/// The included paths, if the projection only includes whole paths.
fn paths(root: &Branch) -> Result<Option<Box<[Path]>>> {
    fn collect(branch: &Branch, prefix: &str, paths: &mut Vec<Path>) -> Result<bool> {
        for (name, action) in &branch.fields {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match action {
                Action::Include => paths.push(Path::parse(&path)?),
                Action::Within(branch) if collect(branch, &path, paths)? => {}
                // Only `_id` can be excluded from an inclusion.
                Action::Exclude => {}
                Action::Within(_) | Action::Slice(_) | Action::ElemMatch(_) | Action::Positional | Action::Computed => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
    let mut paths = Vec::new();
    Ok(collect(root, "", &mut paths)?.then(|| paths.into()))
}

/// The changes to arrays, in the order of their paths.
fn collect_changes(branch: &Branch, prefix: &mut Vec<Box<str>>, changes: &mut Vec<Pass>) {
    for (name, action) in &branch.fields {
        prefix.push(name.clone());
        match action {
            Action::Within(branch) => collect_changes(branch, prefix, changes),
            Action::Slice(slice) => changes.push(Pass::Slice(prefix.as_slice().into(), *slice)),
            Action::Positional => changes.push(Pass::Positional(Positional::new(prefix))),
            Action::Include | Action::Exclude | Action::ElemMatch(_) | Action::Computed => {}
        }
        prefix.pop();
    }
}
