//! Creates the document that an upsert inserts.

use super::{
    Context, Phase,
    parse::{Update, UpdateForm},
    replace::without_first_id,
    storage,
};
use crate::{
    Code, Error, Result,
    filter::Filter,
    named_list::NamedList,
    path::{Part, Path},
    raw::{Doc, OwnedValue, Value, Writer},
    work,
};

impl Update {
    /// Returns the document to insert if `filter` matches nothing: the filter's equalities, changed by the update, with `_id` first. Without an
    /// `_id` in either, the database adds one. A replacement copies only `_id` from the filter.
    ///
    /// # Errors
    /// MongoDB's codes: those of [`Update::apply`] and of [`Filter::equalities`], and those of an invalid `_id`.
    pub fn upsert(&self, filter: &Filter, context: &Context) -> Result<Vec<u8>> {
        let context = Context { phase: Phase::Insert, position: None, ..*context };
        let equalities = filter.equalities(|path| self.starts_from(path))?;
        let mut start = Branch::default();
        for (path, value) in &equalities {
            work::take(work::PARSED)?;
            start.put(path.parts(), value);
        }
        let mut out = Writer::new();
        start.write(&mut out);
        let start = out.finish();
        let updated = self.apply(Doc::new(&start), &context)?.unwrap_or(start);
        let document = Doc::new(&updated);
        let Some(id) = document.get("_id") else { return Ok(updated) };
        storage::check_id(id)?;
        if document.elements().next().is_some_and(|first| first.name == b"_id") {
            return Ok(updated);
        }
        let mut out = Writer::into_buffer(Vec::with_capacity(updated.len()));
        out.append(b"_id", id);
        without_first_id(document).for_each(|field| out.append(field.name, field.value));
        Ok(out.finish())
    }

    /// Returns whether an upsert copies the value at this path from an equality of the filter. A replacement copies only `_id`, and fails for a path
    /// within `_id`.
    fn starts_from(&self, path: &Path) -> Result<bool> {
        match (&self.0, path.parts()) {
            (UpdateForm::Replacement(_), [first, _, ..]) if first.name() == "_id" => {
                let message = "the filter says what '_id' holds, but not all of it";
                Err(Error::new(Code::NOT_EXACT_VALUE_FIELD, message).at(path.as_str()))
            }
            (UpdateForm::Replacement(_), _) => Ok(path.as_str() == "_id"),
            (UpdateForm::Operators(_) | UpdateForm::Pipeline(_), _) => Ok(true),
        }
    }
}

/// A document being built; the fields are in the order of their first mention.
#[derive(Default)]
struct Branch<'a>(NamedList<&'a str, Twig<'a>>);

enum Twig<'a> {
    Value(Value<'a>),
    Document(Branch<'a>),
}

impl<'a> Branch<'a> {
    /// Sets the value at a path. The filter ensures that no path is a prefix of another.
    fn put(&mut self, parts: &'a [Part], value: &'a OwnedValue) {
        let Some((first, rest)) = parts.split_first() else { return };
        if rest.is_empty() {
            self.0.push(first.name(), Twig::Value(value.as_value()));
            return;
        }
        let place = self.0.place(first.name().as_bytes());
        let place = place.unwrap_or_else(|| self.0.push(first.name(), Twig::Document(Branch::default())));
        if let Some(Twig::Document(branch)) = self.0.at_mut(place) {
            branch.put(rest, value);
        }
    }

    fn write(&self, out: &mut Writer) {
        for (name, twig) in self.0.iter() {
            if !work::spend(work::PARSED) {
                return;
            }
            match twig {
                Twig::Value(value) => out.append(name.as_bytes(), *value),
                Twig::Document(branch) => {
                    out.open_document(name.as_bytes());
                    branch.write(out);
                    out.close();
                }
            }
        }
    }
}
