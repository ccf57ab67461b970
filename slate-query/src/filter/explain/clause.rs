use crate::{
    filter::clause::{is_operators, truth},
    raw::{Doc, Element, Kind, Value, Writer},
};

/// A part of a filter as written.
#[derive(Debug)]
pub(super) struct Clause<'f> {
    /// The clause as a filter of its own.
    pub(super) filter: Vec<u8>,
    pub(super) form: ClauseForm<'f>,
}

#[derive(Debug)]
pub(super) enum ClauseForm<'f> {
    /// `$and`, or several conditions in one document.
    All(Vec<Clause<'f>>),
    Any(Vec<Clause<'f>>),
    None(Vec<Clause<'f>>),
    Not(Box<Clause<'f>>),
    Leaf(Leaf<'f>),
}

/// An operator on a path or on the document.
#[derive(Debug)]
pub(super) struct Leaf<'f> {
    pub(super) name: &'f str,
    /// Empty for operators on the document.
    pub(super) path: &'f str,
    pub(super) operand: Value<'f>,
    /// For `$regex` in a document of operators: all operators on the path as written, which are shown in place of the
    /// clause's filter.
    pub(super) written: Option<Vec<u8>>,
    /// Whether the operator is a negation. The reasons are those of the condition that it negates.
    pub(super) is_negated: bool,
}

impl<'f> Clause<'f> {
    /// Returns the conjunction of the conditions of a document. If there is a single condition, returns that condition.
    pub(super) fn of_document(filter: Doc<'f>) -> Self {
        let clauses = filter.elements().flat_map(Self::of_element).collect();
        Self::all(filter.bytes().to_vec(), clauses)
    }

    fn all(filter: Vec<u8>, mut clauses: Vec<Self>) -> Self {
        match clauses.pop() {
            Some(only) if clauses.is_empty() => only,
            last => {
                clauses.extend(last);
                Self { filter, form: ClauseForm::All(clauses) }
            }
        }
    }

    fn of_element(element: Element<'f>) -> Vec<Self> {
        let name = text(element.name);
        let list = |form: fn(Vec<Self>) -> ClauseForm<'f>| {
            let documents = element.value.as_array().into_iter().flat_map(Doc::values).filter_map(Value::as_document);
            vec![Self { filter: document([element]), form: form(documents.map(Self::of_document).collect()) }]
        };
        match name {
            "$and" => list(ClauseForm::All),
            "$or" => list(ClauseForm::Any),
            "$nor" => list(ClauseForm::None),
            "$comment" => Vec::new(),
            _ if name.starts_with('$') => {
                vec![Self::leaf(document([element]), Leaf::new(name, "", element.value))]
            }
            _ => match element.value.as_document().filter(|_| is_operators(element.value)) {
                Some(operators) => Self::of_operators(name, operators),
                None => vec![Self::literal(name, element.value)],
            },
        }
    }

    /// Returns the conditions of the operators on a path.
    fn of_operators(path: &'f str, operators: Doc<'f>) -> Vec<Self> {
        let clause = |operator: Element<'f>| {
            let name = text(operator.name);
            let filter = below(
                path,
                operators.elements().filter(|other| {
                    // The options of a regular expression are a field of the same document.
                    other.name == operator.name || (name == "$regex" && other.name == b"$options")
                }),
            );
            match name {
                "$options" => None,
                "$not" => {
                    let negated = match operator.value.as_document() {
                        Some(inner) => Self::all(below(path, inner.elements()), Self::of_operators(path, inner)),
                        None => Self::literal(path, operator.value),
                    };
                    Some(Self { filter, form: ClauseForm::Not(Box::new(negated)) })
                }
                _ => {
                    let mut leaf = Leaf::new(name, path, operator.value);
                    leaf.written = (name == "$regex").then(|| below(path, operators.elements()));
                    Some(Self::leaf(filter, leaf))
                }
            }
        };
        operators.elements().filter_map(clause).collect()
    }

    /// Returns the condition of a value without an operator.
    fn literal(path: &'f str, value: Value<'f>) -> Self {
        let name = if value.kind() == Kind::Regex { "$regex" } else { "$eq" };
        Self::leaf(document([Element { name: path.as_bytes(), value }]), Leaf::new(name, path, value))
    }

    fn leaf(filter: Vec<u8>, leaf: Leaf<'f>) -> Self {
        Self { filter, form: ClauseForm::Leaf(leaf) }
    }

    /// Appends the title and the description of a `$jsonSchema`; nothing for other operators.
    pub(super) fn annotate(&self, out: &mut Writer) {
        let ClauseForm::Leaf(Leaf { name: "$jsonSchema", operand, .. }) = &self.form else { return };
        let Some(schema) = operand.as_document() else { return };
        for name in ["title", "description"] {
            schema.get(name).into_iter().for_each(|text| out.append(name.as_bytes(), text));
        }
    }
}

impl<'f> Leaf<'f> {
    fn new(name: &'f str, path: &'f str, operand: Value<'f>) -> Self {
        let is_negated = match name {
            "$ne" | "$nin" => true,
            "$exists" => !truth(operand),
            _ => false,
        };
        Self { name, path, operand, written: None, is_negated }
    }
}

fn text(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

fn document<'f>(elements: impl IntoIterator<Item = Element<'f>>) -> Vec<u8> {
    let mut out = Writer::new();
    elements.into_iter().for_each(|element| out.append(element.name, element.value));
    out.finish()
}

fn below<'f>(path: &str, operators: impl Iterator<Item = Element<'f>>) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_document(path.as_bytes());
    operators.for_each(|operator| out.append(operator.name, operator.value));
    out.close();
    out.finish()
}
