use super::output;
use crate::{Code, Error, Result, raw::Doc};

/// The positional `$`: writes `doc` with the first array on `path` reduced to the element at `position`, which the filter matched. A
/// path without an array changes nothing.
///
/// # Errors
/// 51246 if there is an array but no position; 51247 if the array is too short.
pub(super) fn apply(doc: Doc<'_>, path: &[Box<str>], position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
    output::with_array(doc, path, out, &mut |_, name, array, out| {
        let position = position.ok_or_else(|| {
            Error::new(Code(51246), "the positional operator '.$' found no matching element in the array")
        })?;
        let matched = array.values().nth(position).ok_or_else(|| {
            Error::new(Code(51247), "the positional operator '.$' matched in an array longer than this one")
        })?;
        output::array(out, name, std::iter::once(matched));
        Ok(())
    })
}
