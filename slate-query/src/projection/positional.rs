use super::output;
use crate::{
    Code, Error, Result,
    raw::{Doc, Kind},
};

/// The positional `$`: shows only the element that the filter matched, of the first array on its path.
#[derive(Clone, Debug)]
pub(super) struct Positional {
    path: Box<[Box<str>]>,
}

impl Positional {
    pub(super) fn new(path: &[Box<str>]) -> Self {
        Self { path: path.into() }
    }

    /// Writes `doc` with that array reduced to the element at `position`. A path without an array changes nothing.
    ///
    /// # Errors
    /// 51246 if there is an array but no position; 51247 if the array is too short.
    pub(super) fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        along(&self.path, doc, position, out)
    }
}

fn along(path: &[Box<str>], doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
    let start = output::open(out);
    let mut path = path.split_first();
    for (element, bytes) in output::fields(doc) {
        // If the field is repeated, the path refers to the first one.
        let Some((_, rest)) = path.take_if(|(name, _)| name.as_bytes() == element.name) else {
            out.extend_from_slice(bytes);
            continue;
        };
        if let Some(array) = element.value.as_array() {
            let position = position.ok_or_else(|| {
                Error::new(Code(51246), "the positional operator '.$' found no matching element in the array")
            })?;
            let matched = array.values().nth(position).ok_or_else(|| {
                Error::new(Code(51247), "the positional operator '.$' matched in an array longer than this one")
            })?;
            output::array(out, element.name, std::iter::once(matched));
        } else if let (Some(document), [_, ..]) = (element.value.as_document(), rest) {
            output::head(out, Kind::Document, element.name);
            along(rest, document, position, out)?;
        } else {
            out.extend_from_slice(bytes);
        }
    }
    output::close(out, start);
    Ok(())
}
