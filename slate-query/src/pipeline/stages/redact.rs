//! `$redact`: keeps, removes or descends into each document and the documents inside it, as an expression decides.

use bson::Bson;

use crate::{
    Code, Error, Result,
    expression::{Bindings, Env, Expression},
    pipeline::Stage,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

/// A parsed `$redact`.
#[derive(Clone, Debug)]
pub struct Redact {
    decision: Expression,
    bindings: Bindings,
    argument: OwnedValue,
}

/// The decision of the expression about a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Keep,
    Prune,
    /// Keeps its plain values, and decides about each document inside it.
    Descend,
}

/// The variables that stand for the decisions, with their values, which are MongoDB's.
const DECISIONS: [(&str, &str, Decision); 3] =
    [("KEEP", "keep", Decision::Keep), ("PRUNE", "prune", Decision::Prune), ("DESCEND", "descend", Decision::Descend)];

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let bindings = DECISIONS.iter().fold(bindings.clone(), |bindings, (name, value, _)| {
        bindings.with_system(name, OwnedValue::from(Bson::from(*value)))
    });
    let names = bindings.names().with("CURRENT")?;
    let decision = Expression::parse(argument, &names)?;
    Ok(Stage::Redact(Redact { decision, bindings, argument: argument.to_owned() }))
}

impl Redact {
    /// Writes into `out` (cleared first) the redacted document. Returns false, and leaves `out` as it is, if the document is pruned.
    ///
    /// # Errors
    /// 17053 for a value that is no decision; the errors of the expression.
    pub fn apply(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<bool> {
        self.bindings.within(document, |env| {
            let decision = self.decide(env, document)?;
            if decision == Decision::Prune {
                return Ok(false);
            }
            out.clear();
            let mut writer = Writer::into_buffer(std::mem::take(out));
            match decision {
                Decision::Descend => self.fields(env, document, &mut writer)?,
                Decision::Keep | Decision::Prune => {
                    document.elements().for_each(|element| writer.append(element.name, element.value));
                }
            }
            *out = writer.finish();
            Ok(true)
        })
    }

    fn decide(&self, env: &Env<'_>, document: Doc<'_>) -> Result<Decision> {
        let frame = env.frame(Some(Value::new(Kind::Document, document.bytes())));
        let env = env.within(&frame);
        let value = self.decision.evaluate(&env)?;
        let text = value.as_value().and_then(Value::as_str);
        let known = DECISIONS.iter().find(|(_, value, _)| text == Some(value)).map(|(_, _, decision)| *decision);
        known.ok_or_else(|| {
            let found = value.as_value().map_or_else(|| "nothing".into(), |value| format!("{value:?}"));
            let message = format!("the expression of $redact must return $$KEEP, $$PRUNE or $$DESCEND, not {found}");
            Error::new(Code(17_053), message)
        })
    }

    /// Writes the fields of a document whose decision is to descend. A stored document nests at most
    /// [`MAX_DEPTH`](crate::raw::MAX_DEPTH) deep.
    fn fields(&self, env: &Env<'_>, document: Doc<'_>, out: &mut Writer) -> Result<()> {
        document.elements().try_for_each(|element| self.value(env, element.name, element.value, out).map(drop))
    }

    /// Writes a value as redacted; returns false if it is pruned.
    fn value(&self, env: &Env<'_>, name: &[u8], value: Value<'_>, out: &mut Writer) -> Result<bool> {
        if let Some(document) = value.as_document() {
            match self.decide(env, document)? {
                Decision::Keep => out.append(name, value),
                Decision::Prune => return Ok(false),
                Decision::Descend => {
                    out.open_document(name);
                    self.fields(env, document, out)?;
                    out.close();
                }
            }
        } else if let Some(array) = value.as_array() {
            out.open_array(name);
            let mut left = 0_usize;
            for element in array.values() {
                left += usize::from(self.value(env, left.to_string().as_bytes(), element, out)?);
            }
            out.close();
        } else {
            out.append(name, value);
        }
        Ok(true)
    }
}

crate::pipeline::shown_argument!(Redact);
