//! Wildcard indexes: `$**` indexes every field of a document, `path.$**` every field at and below a path. Other fields can stand
//! before and after the wildcard.
//!
//! Such an index consists of parts, whose entries begin with the path that the part is about:
//!
//! - For each path of the wildcard, an index on the fields before it, on that path and on the fields after it. A document has an
//!   entry for each value at the end of the path: for an array one per element; for an empty array that of undefined. For a nested
//!   document there are the entries of its fields; only an empty one has an entry of its own. A missing field has no entry.
//! - If there are fields before the wildcard, an index on all other fields. It has an entry for every document, with null in place
//!   of the path.
//!
//! The entries at one path are therefore the same as in an index on these fields, except that documents and missing fields have none
//! at the wildcard's path. An array at another field is combined with every value at the path.

mod definition;
mod keys;
mod selection;

pub use definition::{PATH_FIELD, WildcardPattern};
