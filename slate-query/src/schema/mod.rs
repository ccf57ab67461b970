//! JSON schemas (draft 4) in MongoDB's dialect: `$jsonSchema` in filters, and the validators of collections.
//!
//! A schema is a list of rules. A rule about one type of values is satisfied by all values of other types.

mod explain;
mod parse;
mod rule;

pub(crate) use explain::{append_fitting, append_values, list};
use rule::Rule;

use crate::{
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    work,
};

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The schema as written.
    source: OwnedValue,
    rules: Vec<Rule>,
}

impl Schema {
    /// Returns whether the document satisfies the schema.
    pub fn matches(&self, document: Doc<'_>) -> bool {
        self.accepts(Value::new(Kind::Document, document.bytes()))
    }

    /// Returns whether a pattern of the schema needs backtracking, so that a match can take too many steps.
    pub(crate) fn can_fail(&self) -> bool {
        self.rules.iter().any(Rule::can_fail)
    }

    fn accepts(&self, value: Value<'_>) -> bool {
        work::spend(1 + self.rules.len()) && self.rules.iter().all(|rule| rule.accepts(value))
    }

    /// Returns the schema as written.
    pub(crate) fn source(&self) -> Value<'_> {
        self.source.as_value()
    }

    /// Returns the field of that name in the schema as written, if there is one.
    fn part(&self, name: &str) -> Option<Value<'_>> {
        self.source.as_value().as_document()?.get(name)
    }
}

/// Returns the value with the fields of its documents in the order of their names, because schemas compare documents
/// without regard to the order of fields.
fn in_name_order(value: Value<'_>) -> OwnedValue {
    let mut out = Writer::new();
    write_in_name_order(b"", value, &mut out);
    let document = out.finish();
    Doc::new(&document).elements().next().map_or(Value::NULL, |element| element.value).to_owned()
}

fn write_in_name_order(name: &[u8], value: Value<'_>, out: &mut Writer) {
    if let Some(document) = value.as_document() {
        let mut fields: Vec<_> = document.elements().collect();
        fields.sort_by_key(|field| field.name);
        out.open_document(name);
        fields.iter().for_each(|field| write_in_name_order(field.name, field.value, out));
        out.close();
    } else if let Some(array) = value.as_array() {
        out.open_array(name);
        array.elements().for_each(|element| write_in_name_order(element.name, element.value, out));
        out.close();
    } else {
        out.append(name, value);
    }
}
