//! Parses filter documents into trees.

use super::{
    Node,
    clause::{Clause, ClauseScope, is_operators},
    collate, operators,
};
use crate::{Code, Error, Result, path::Path, raw::Doc, work};

/// Parses a filter document.
pub(super) fn document(filter: Doc<'_>, scope: ClauseScope<'_>) -> Result<Node> {
    let scope = scope.inner()?;
    let mut parsed = Parsed::default();
    work::take(work::PARSED)?;
    for element in filter.elements() {
        if let Some(collation) = scope.collation
            && let Some(node) = collate::parse(element, scope, collation)?
        {
            parsed.push(node);
            continue;
        }
        let name = name_of(element.name)?;
        if name.starts_with('$') {
            let none = Path::parse("")?;
            let clause = Clause { path: &none, name, operand: element.value, siblings: filter, scope };
            let parse = operators::on_document(name).ok_or_else(|| clause.refuse(unknown(name)))?;
            parsed.extend(parse(clause)?);
            continue;
        }
        let path = path_of(name)?;
        if is_operators(element.value) {
            let operators = element.value.as_document().unwrap_or(filter);
            push_operators(&path, operators, scope, &mut parsed)?;
        } else {
            let clause = Clause { path: &path, name: "$eq", operand: element.value, siblings: filter, scope };
            parsed.push(operators::implicit(clause)?);
        }
    }
    Ok(parsed.conjunction())
}

/// The conditions of a document. A single condition, the usual case, needs no list.
#[derive(Default)]
enum Parsed {
    #[default]
    Nothing,
    One(Node),
    Several(Vec<Node>),
}

impl Parsed {
    fn extend(&mut self, node: Option<Node>) {
        node.into_iter().for_each(|node| self.push(node));
    }

    fn push(&mut self, next: Node) {
        match std::mem::take(self) {
            Self::Nothing => *self = Self::One(next),
            Self::One(first) => {
                let mut nodes = Vec::with_capacity(4);
                nodes.extend([first, next]);
                *self = Self::Several(nodes);
            }
            Self::Several(mut nodes) => {
                nodes.push(next);
                *self = Self::Several(nodes);
            }
        }
    }

    fn conjunction(self) -> Node {
        match self {
            Self::Nothing => Node::all(Vec::new()),
            Self::One(only) => only,
            Self::Several(nodes) => Node::all(nodes),
        }
    }
}

fn unknown(name: &str) -> String {
    let hint = match name {
        "$not" => "If you are trying to negate an entire expression, use $nor.",
        _ => "If you have a field name that starts with a '$' symbol, consider using $getField or $setField.",
    };
    format!("unknown top level operator: {name}. {hint}")
}

/// Parses the operators on a path: `{$gt: 5, $lt: 8}`.
pub(super) fn field_operators(path: &Path, operators: Doc<'_>, scope: ClauseScope<'_>) -> Result<Node> {
    let mut parsed = Parsed::default();
    push_operators(path, operators, scope, &mut parsed)?;
    Ok(parsed.conjunction())
}

fn push_operators(path: &Path, operators: Doc<'_>, scope: ClauseScope<'_>, parsed: &mut Parsed) -> Result<()> {
    let scope = scope.inner()?;
    for element in operators.elements() {
        work::take(work::PARSED)?;
        let name = name_of(element.name)?;
        let clause = Clause { path, name, operand: element.value, siblings: operators, scope };
        let parse = operators::on_field(name).ok_or_else(|| clause.refuse(format!("unknown operator: {name}")))?;
        parsed.extend(parse(clause)?);
    }
    Ok(())
}

fn name_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| Error::new(Code::BAD_VALUE, "a field name in a filter is not UTF-8"))
}

/// The most names that a path in a filter may have, as in MongoDB.
const MAX_NAMES: usize = 180;

fn path_of(name: &str) -> Result<Path> {
    // A shorter path cannot have that many names.
    if name.len() >= MAX_NAMES && name.bytes().filter(|&byte| byte == b'.').count() >= MAX_NAMES {
        return Err(Error::new(Code(5_729_100), "FieldPath is too long"));
    }
    Path::parse(name)
}
