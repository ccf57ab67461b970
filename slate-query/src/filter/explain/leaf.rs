//! Explains single operators.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{
    Blame, Explanation,
    clause::{Clause, Leaf},
};
use crate::{
    Result,
    expression::Expression,
    filter::node::Tree,
    path::{Found, Path, Step},
    raw::{Doc, Kind, Value, Writer},
    schema::{append_fitting, append_values},
};

/// MongoDB's limit on the number of values that an explanation shows.
const MAX_CONSIDERED: usize = 10;

/// How an operator on a path is explained.
struct Reasons {
    /// The reason for a mismatch, and the reason for a match.
    texts: [&'static str; 2],
    /// The types of values that the operator applies to, sorted; empty for all types.
    types: &'static [&'static str],
    considers: Considers,
}

/// Which values at a path are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Considers {
    Nothing,
    /// An array as a whole.
    Arrays,
    /// The elements of an array.
    Elements,
    /// The elements of an array, and their types.
    Types,
}

/// The reason for an expression that is false, and the reason for one that is true.
const EXPRESSION: [&str; 2] = ["expression did not match", "expression did match"];

const NUMBERS: &[&str] = &["decimal", "double", "int", "long"];
const BITS: &[&str] = &["binData", "decimal", "double", "int", "long"];
const STRINGS: &[&str] = &["regex", "string", "symbol"];
const ARRAYS: &[&str] = &["array"];

impl Reasons {
    const fn new(
        mismatch: &'static str,
        matched: &'static str,
        types: &'static [&'static str],
        considers: Considers,
    ) -> Self {
        Self { texts: [mismatch, matched], types, considers }
    }

    fn of(operator: &str) -> Self {
        use Considers::{Arrays, Elements, Nothing, Types};
        match operator {
            "$all" => Self::new(
                "array did not contain all specified values",
                "array did contain all specified values",
                &[],
                Arrays,
            ),
            "$bitsAllClear" | "$bitsAllSet" | "$bitsAnyClear" | "$bitsAnySet" => {
                Self::new("bitwise operator failed to match", "bitwise operator matched successfully", BITS, Elements)
            }
            "$elemMatch" => Self::new(
                "array did not satisfy the child predicate",
                "array did satisfy the child predicate",
                ARRAYS,
                Arrays,
            ),
            "$exists" => Self::new("path does not exist", "path does exist", &[], Nothing),
            "$in" | "$nin" => {
                Self::new("no matching value found in array", "matching value found in array", &[], Elements)
            }
            "$mod" => Self::new(
                "$mod did not evaluate to expected remainder",
                "$mod did evaluate to expected remainder",
                NUMBERS,
                Elements,
            ),
            "$regex" => {
                Self::new("regular expression did not match", "regular expression did match", STRINGS, Elements)
            }
            "$size" => Self::new(
                "array length was not equal to given size",
                "array length was equal to given size",
                ARRAYS,
                Arrays,
            ),
            "$type" => Self::new("type did not match", "type did match", &[], Types),
            _ => Self::new("comparison failed", "comparison succeeded", &[], Elements),
        }
    }
}

/// The values at a path.
struct Considered<'d> {
    values: Vec<Value<'d>>,
    is_truncated: bool,
}

impl<'d> Considered<'d> {
    /// Returns at most [`MAX_CONSIDERED`] values at the path, up to the first document that lacks the path. `None` if
    /// there are no such values.
    fn at(path: &Path, document: Doc<'d>, considers: Considers) -> Option<Self> {
        let mut found: Option<Self> = None;
        let _ = path.walk(document, &mut |end| {
            let value = match end.found {
                Found::Value(value) => value,
                Found::Missing => return ControlFlow::Break(()),
                Found::Blocked => return ControlFlow::Continue(()),
            };
            let found = found.get_or_insert(Self { values: Vec::new(), is_truncated: false });
            match value.as_array().filter(|_| considers != Considers::Arrays && end.step == Step::Name) {
                Some(array) => array.values().try_for_each(|element| found.push(element)),
                None => found.push(value),
            }
        });
        found
    }

    fn push(&mut self, value: Value<'d>) -> ControlFlow<()> {
        if self.values.len() == MAX_CONSIDERED {
            self.is_truncated = true;
            return ControlFlow::Break(());
        }
        self.values.push(value);
        ControlFlow::Continue(())
    }

    fn types(&self) -> BTreeSet<&'static str> {
        self.values.iter().map(|value| value.kind().alias()).collect()
    }

    fn append_types(&self, out: &mut Writer) {
        let types: Vec<&str> = self.types().into_iter().collect();
        if !types.is_empty() {
            append_strings(["consideredType", "consideredTypes"], &types, out);
        }
    }

    fn append_values(&self, out: &mut Writer) {
        let mut all = !self.is_truncated;
        if let [only] = self.values.as_slice() {
            append_fitting(b"consideredValue", *only, out);
        } else {
            all &= append_values("consideredValues", self.values.iter().copied(), out);
        }
        if !all {
            append_bool(b"consideredValuesTruncated", true, out);
        }
    }
}

impl Explanation<'_> {
    pub(super) fn append_leaf(&self, clause: &Clause<'_>, leaf: &Leaf<'_>, blame: Blame, out: &mut Writer) {
        let blame = if leaf.is_negated { blame.negated() } else { blame };
        if leaf.name == "$jsonSchema" {
            return self.append_schema(clause, blame, out);
        }
        out.append_str("operatorName", leaf.name);
        let specified = leaf.written.as_ref().unwrap_or(&clause.filter);
        append_fitting(b"specifiedAs", Value::new(Kind::Document, specified), out);
        let is_empty = |operand: Value<'_>| operand.as_array().is_some_and(Doc::is_empty);
        match leaf.name {
            "$expr" => self.append_expression(leaf.operand, blame, out),
            "$sampleRate" => {
                append_reason(blame, EXPRESSION, out);
                append_bool(b"expressionResult", blame == Blame::Match, out);
            }
            "$alwaysFalse" | "$alwaysTrue" => append_constant(blame, out),
            "$all" if is_empty(leaf.operand) => append_constant(blame, out),
            name => self.append_values(&Reasons::of(name), leaf.path, blame, out),
        }
    }

    fn append_values(&self, reasons: &Reasons, path: &str, blame: Blame, out: &mut Writer) {
        let considered =
            Path::parse(path).ok().and_then(|path| Considered::at(&path, self.document, reasons.considers));
        if reasons.considers == Considers::Nothing {
            return append_reason(blame, reasons.texts, out);
        }
        let Some(considered) = considered else { return out.append_str("reason", "field was missing") };
        if reasons.types.is_empty() || considered.types().iter().any(|found| reasons.types.contains(found)) {
            append_reason(blame, reasons.texts, out);
        } else {
            out.append_str("reason", "type did not match");
            considered.append_types(out);
            append_strings(["expectedType", "expectedTypes"], reasons.types, out);
        }
        considered.append_values(out);
        if reasons.considers == Considers::Types {
            considered.append_types(out);
        }
    }

    fn append_expression(&self, operand: Value<'_>, blame: Blame, out: &mut Writer) {
        let evaluated: Result<()> = Expression::parse(operand, self.bindings.names()).and_then(|expression| {
            self.bindings.within(self.document, |env| {
                let value = expression.evaluate(env)?;
                append_reason(blame, EXPRESSION, out);
                value.as_value().into_iter().for_each(|value| append_fitting(b"expressionResult", value, out));
                Ok(())
            })
        });
        if let Err(error) = evaluated {
            out.append_str("reason", "failed to evaluate aggregation expression");
            out.open_document(b"details");
            out.append(b"code", Value::new(Kind::Int32, &error.code().0.to_le_bytes()));
            out.append_str("codeName", &error.code().name());
            out.append_str("errmsg", error.message());
            out.close();
        }
    }

    fn append_schema(&self, clause: &Clause<'_>, blame: Blame, out: &mut Writer) {
        if blame == Blame::Match {
            out.append_str("operatorName", "$jsonSchema");
            return out.append_str("reason", "schema matched");
        }
        let Ok(filter) = self.parse(clause) else { return };
        if let Tree::Schema(schema) = &filter.root().tree {
            schema.explain(self.document, out);
        }
    }
}

fn append_reason(blame: Blame, [mismatch, matched]: [&str; 2], out: &mut Writer) {
    out.append_str("reason", if blame == Blame::Mismatch { mismatch } else { matched });
}

fn append_constant(blame: Blame, out: &mut Writer) {
    append_reason(blame, ["expression always evaluates to false", "expression always evaluates to true"], out);
}

fn append_bool(name: &[u8], value: bool, out: &mut Writer) {
    out.append(name, Value::new(Kind::Boolean, &[u8::from(value)]));
}

/// Appends one string under the first name, several as an array under the second.
fn append_strings([one, several]: [&str; 2], strings: &[&str], out: &mut Writer) {
    if let [only] = strings {
        return out.append_str(one, only);
    }
    out.open_array(several.as_bytes());
    for (place, text) in strings.iter().enumerate() {
        out.append_str(&place.to_string(), text);
    }
    out.close();
}
