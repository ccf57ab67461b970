//! Computed fields: sets fields of a document to the values of expressions.

use super::output;
use crate::{
    Result,
    expression::{Env, Expression, Needs, check_depth, check_row},
    held::{self, Held},
    named_list::NamedList,
    raw::{Doc, FieldName, Kind, Value},
    work,
};

/// Fields and their expressions, in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Additions {
    fields: NamedList<Box<[u8]>, Addition>,
}

#[derive(Clone, Debug)]
pub(crate) enum Addition {
    Computed(Expression),
    /// Sets fields of the document in this field, or of each document in its array. Other values are replaced by documents.
    Within(Additions),
}

impl Additions {
    /// Creates additions of these fields, whose names must be distinct.
    pub(crate) fn new(fields: impl IntoIterator<Item = (Box<[u8]>, Addition)>) -> Self {
        let mut list = NamedList::default();
        fields.into_iter().for_each(|(name, addition)| {
            list.push(name, addition);
        });
        Self { fields: list }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Adds the fields that the expressions read to `needs`, and removes those that are replaced.
    pub(crate) fn needs(&self, needs: &mut Needs) {
        for (name, addition) in self.fields.iter() {
            if let (Addition::Computed(_), Ok(name)) = (addition, std::str::from_utf8(name)) {
                needs.remove(name);
            }
        }
        self.visit_fields(&mut |field| needs.add(field));
    }

    /// Returns the fields of `self`, then those of `other`, which must have other names.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        other.fields.iter().for_each(|(name, addition)| {
            self.fields.push(name.clone(), addition.clone());
        });
        self
    }

    /// Returns whether a computed value reads one of these fields, which must be sorted, or the whole document.
    pub(crate) fn reads_any(&self, names: &[Box<str>]) -> bool {
        let mut reads = false;
        self.visit_fields(&mut |field| {
            reads |= field.is_none_or(|field| names.binary_search_by(|name| (**name).cmp(field.as_str())).is_ok());
        });
        reads
    }

    /// Returns `true` only if no document makes an expression fail.
    pub(crate) fn is_infallible(&self) -> bool {
        self.fields.iter().all(|(_, addition)| match addition {
            Addition::Computed(expression) => expression.is_infallible(),
            Addition::Within(additions) => additions.is_infallible(),
        })
    }

    fn visit_fields(&self, visit: &mut dyn FnMut(Option<&FieldName>)) {
        for (_, addition) in self.fields.iter() {
            match addition {
                Addition::Computed(expression) => expression.visit_fields(visit),
                Addition::Within(additions) => additions.visit_fields(visit),
            }
        }
    }

    /// Appends `base` with the fields. A field keeps its place, a new one is added at the end. A field whose value is missing
    /// is left out. `env` has the document that expressions read.
    pub(crate) fn apply(&self, base: Doc<'_>, env: &Env<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut growth = RowGrowth { start: out.len(), counted: 0, held: Held::default() };
        self.apply_counted(base, env, out, &mut growth)
    }

    fn apply_counted(&self, base: Doc<'_>, env: &Env<'_>, out: &mut Vec<u8>, growth: &mut RowGrowth) -> Result<()> {
        let start = output::open(out);
        work::take(self.fields.len() + work::of_bytes(base.bytes().len()))?;
        let mut written = vec![false; self.fields.len()];
        for (element, bytes) in output::fields(base) {
            let place = self.fields.place(element.name);
            match place.and_then(|place| Some((self.fields.as_slice().get(place)?, written.get_mut(place)?))) {
                Some(((name, addition), is_written)) if !*is_written => {
                    *is_written = true;
                    addition.write(name, Some(element.value), env, out, growth)?;
                }
                _ => out.extend_from_slice(bytes),
            }
        }
        for ((name, addition), _) in self.fields.iter().zip(&written).filter(|(_, is_written)| !**is_written) {
            addition.write(name, None, env, out, growth)?;
        }
        output::close(out, start);
        Ok(())
    }

    fn below(&self, value: Value<'_>, env: &Env<'_>, out: &mut Vec<u8>, growth: &mut RowGrowth) -> Result<()> {
        let Some(array) = value.as_array() else {
            return self.apply_counted(value.as_document().unwrap_or(Doc::EMPTY), env, out, growth);
        };
        let start = output::open(out);
        work::take(work::of_bytes(array.bytes().len()))?;
        for (position, element) in array.values().enumerate() {
            output::head_at(out, kind_below(element), position);
            self.below(element, env, out, growth)?;
        }
        output::close(out, start);
        Ok(())
    }
}

/// The memory that a row takes beyond the document that it is computed from. It is counted while further fields are computed.
struct RowGrowth {
    /// Where the row begins.
    start: usize,
    counted: usize,
    held: Held,
}

impl RowGrowth {
    /// Counts a row that is about to end at `end`.
    fn check(&mut self, end: usize, env: &Env<'_>) -> Result<()> {
        check_row(end - self.start)?;
        // The row's buffer can be twice as large as the row.
        let growth = 2 * (end - self.start).saturating_sub(env.root().bytes().len());
        self.held.add(growth.saturating_sub(self.counted))?;
        self.counted = self.counted.max(growth);
        Ok(())
    }
}

/// Returns the type of a value after fields were added to it.
fn kind_below(value: Value<'_>) -> Kind {
    if value.kind() == Kind::Array { Kind::Array } else { Kind::Document }
}

impl Addition {
    fn write(
        &self,
        name: &[u8],
        value: Option<Value<'_>>,
        env: &Env<'_>,
        out: &mut Vec<u8>,
        growth: &mut RowGrowth,
    ) -> Result<()> {
        match self {
            Self::Computed(expression) => {
                // Reading a field scans the document and cannot fail, so the end of the call is checked here.
                work::take(1)?;
                let value = expression.evaluate(env).map_err(|error| held::located(error, name))?;
                if let Some(value) = value.as_value() {
                    let end = out.len() + value.bytes().len();
                    growth.check(end, env).map_err(|error| held::located(error, name))?;
                    output::head(out, value.kind(), name);
                    out.extend_from_slice(value.bytes());
                }
            }
            Self::Within(additions) => {
                let value = value.unwrap_or(Value::new(Kind::Document, Doc::EMPTY.bytes()));
                let kind = kind_below(value);
                output::head(out, kind, name);
                let start = out.len();
                additions.below(value, env, out, growth)?;
                check_depth(Value::new(kind, out.get(start..).unwrap_or_default()))?;
            }
        }
        Ok(())
    }
}
