//! What `distinct` sees of a document.

use std::ops::ControlFlow;

use crate::{
    path::{Found, Path},
    raw::{Doc, Value},
};

/// Hands `visit` every value that `distinct` on `path` counts in `doc`: arrays in the middle are descended into, an
/// array at the end gives its elements, and a missing field gives nothing. The same value may be handed over twice.
pub fn values<'a>(path: &Path, doc: Doc<'a>, visit: &mut impl FnMut(Value<'a>)) {
    let _ = path.walk(doc, &mut |end| {
        match end.found {
            Found::Value(value) => match value.as_array() {
                Some(array) => array.values().for_each(&mut *visit),
                None => visit(value),
            },
            Found::Missing | Found::Blocked => {}
        }
        ControlFlow::Continue(())
    });
}
