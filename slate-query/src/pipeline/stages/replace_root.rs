//! `$replaceRoot` and `$replaceWith`: replaces each document by the value of an expression, which must be a document.

use crate::{
    Code, Error, Result,
    expression::{Bindings, Expression, Needs},
    pipeline::Stage,
    raw::{Doc, Kind, OwnedValue, Value},
};

/// A parsed `$replaceRoot`.
#[derive(Clone, Debug)]
pub struct ReplaceRoot {
    root: Expression,
    bindings: Bindings,
    argument: OwnedValue,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let Some(options) = argument.as_document() else {
        let message = format!("expected an object as specification for $replaceRoot stage, not {argument:?}");
        return Err(Error::new(Code(40_229), message));
    };
    let mut root = None;
    for element in options.elements() {
        if element.name != b"newRoot" {
            let name = element.display_name();
            return Err(Error::new(Code(40_230), format!("unrecognized option to $replaceRoot stage: {name}")));
        }
        root = Some(element.value);
    }
    let root = root.ok_or_else(|| Error::new(Code(40_231), "no newRoot specified for the $replaceRoot stage"))?;
    parse_with(root, bindings)
}

pub(super) fn parse_with(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let root = Expression::parse(argument, bindings.names())?;
    Ok(Stage::ReplaceRoot(ReplaceRoot { root, bindings: bindings.clone(), argument: argument.to_owned() }))
}

impl ReplaceRoot {
    /// Returns the fields that the stage reads.
    pub(in crate::pipeline) fn needs(&self) -> Needs {
        let mut needs = Needs::NOTHING;
        self.root.visit_fields(&mut |field| needs.add(field));
        needs
    }

    /// Writes into `out` (cleared first) the document that replaces `document`.
    ///
    /// # Errors
    /// 40228 if the expression's value is not a document.
    pub fn apply(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.bindings.within(document, |env| {
            let root = self.root.evaluate(env)?;
            let found = root.as_value();
            let Some(root) = found.filter(|root| root.kind() == Kind::Document) else {
                let kind = found.map_or("missing", |found| found.kind().alias());
                let message = format!("'newRoot' expression must evaluate to an object, but its type is {kind}");
                return Err(Error::new(Code(40_228), message));
            };
            out.clear();
            out.extend_from_slice(root.bytes());
            Ok(())
        })
    }
}

crate::pipeline::shown_argument!(ReplaceRoot);
