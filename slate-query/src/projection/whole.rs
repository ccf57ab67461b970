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

/// What makes a document of another one.
#[derive(Clone, Debug)]
enum Pass {
    Shape(Shape),
    Slice(Box<[Box<str>]>, Slice),
    Positional(Positional),
}

impl Projection {
    /// Parses a projection document; an empty one hands documents out as they are.
    ///
    /// # Errors
    /// MongoDB's codes for what it refuses too; computed fields are refused as unsupported, by name.
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

    /// Writes what the projection leaves of `doc` over `out`, which holds the finished document afterwards. Where fields
    /// share a name, an inclusion shows the first.
    ///
    /// `position` is the array position that the filter matched at, for the positional `$`; see
    /// [`crate::filter::Filter::positional`].
    ///
    /// # Errors
    /// 51246 or 51247 where the positional `$` has no element to show; `out` holds no document then.
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

    /// Whether every document is handed out as it is.
    pub fn is_identity(&self) -> bool {
        self.passes.is_empty()
    }

    /// The paths shown, `_id` among them where it is shown, of a projection that only includes paths whole; for others
    /// `None`.
    pub fn included(&self) -> Option<&[Path]> {
        self.included.as_deref()
    }

    /// Whether [`Projection::apply`] needs the array position that the filter matched at.
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

/// The included paths, where nothing but whole paths is included.
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

/// The changes to single arrays, in the order of the paths in the tree.
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
