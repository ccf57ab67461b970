use super::{
    elem_match,
    slice::Slice,
    tree::{Action, Branch},
};
use crate::{
    Code, Error, Result,
    expression::{Expression, Variables},
    number::truth,
    path::field_path,
    raw::{Doc, Element, Kind, Value, Writer},
};

/// Whether a projection includes or excludes the fields that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Inclusion,
    Exclusion,
}

/// A parsed projection document: its kind and its explicit paths.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) sense: Sense,
    pub(super) root: Branch,
}

/// Parses a projection document.
pub(super) fn parse(spec: Doc<'_>, dialect: Dialect, variables: &Variables) -> Result<Parsed> {
    let mut parser = Parser::new(dialect, variables);
    for element in spec.elements() {
        let name = text(element)?;
        parser.id_named |= name == "_id" || name.starts_with("_id.");
        parser.element(&[], element)?;
    }
    parser.finish()
}

/// Where a projection occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// In a `find`, which also projects elements of arrays.
    Find,
    /// In a pipeline.
    Stage,
}

#[derive(Debug)]
struct Parser<'p> {
    dialect: Dialect,
    variables: &'p Variables,
    root: Branch,
    /// The kind according to fields other than `_id`, which must agree.
    sense: Option<Sense>,
    /// Whether the projection includes or excludes `_id` as a whole.
    id: Option<Sense>,
    /// Whether the projection contains `_id` or a path within it.
    id_named: bool,
    positional: bool,
    elem_match: bool,
    slice: bool,
    /// The error for the first computed field. Errors in the document's form take precedence.
    computed: Option<Error>,
}

impl<'p> Parser<'p> {
    fn new(dialect: Dialect, variables: &'p Variables) -> Self {
        Self {
            dialect,
            variables,
            root: Branch::default(),
            sense: None,
            id: None,
            id_named: false,
            positional: false,
            elem_match: false,
            slice: false,
            computed: None,
        }
    }

    /// Parses one field of the projection document, or of a document nested in it at the path `parents`.
    fn element(&mut self, parents: &[&str], element: Element<'_>) -> Result<()> {
        let name = text(element)?;
        let positional = name.strip_suffix(".$");
        if positional.is_none() && name.contains(".$.") {
            let message = "the positional operator '$' is only allowed at the end of a path";
            return Err(Error::new(Code(31394), message).at(name));
        }
        if positional.is_some() && self.dialect == Dialect::Stage {
            return Err(refused(31324, "in the projection of an aggregation", name));
        }
        let value = element.value;
        if let Some(nested) = value.as_document() {
            return match positional {
                Some(_) => Err(refused(31271, "with an expression or a nested document", name)),
                None => self.nested(parents, name, nested),
            };
        }
        match (truth(value), positional) {
            (Some(true), None) => self.include(parents, name),
            (Some(true), Some(path)) => self.include_matched(parents, name, path),
            (Some(false), None) => self.exclude(parents, name),
            (Some(false), Some(_)) => Err(refused(31395, "with exclusion", name)),
            (None, Some(_)) => Err(refused(31308, "with a literal", name)),
            (None, None) => self.literal(parents, name, value),
        }
    }

    fn include(&mut self, parents: &[&str], name: &str) -> Result<()> {
        self.add(parents, name, Action::Include)?;
        if parents.is_empty() && name == "_id" {
            self.id = Some(Sense::Inclusion);
            return Ok(());
        }
        self.settle(Sense::Inclusion, Code(31253), name)
    }

    fn exclude(&mut self, parents: &[&str], name: &str) -> Result<()> {
        self.add(parents, name, Action::Exclude)?;
        if parents.is_empty() && name == "_id" {
            self.id = Some(Sense::Exclusion);
            return Ok(());
        }
        self.settle(Sense::Exclusion, Code(31254), name)
    }

    /// Parses `{"path.$": 1}`. `name` is the whole name, `path.$`.
    fn include_matched(&mut self, parents: &[&str], name: &str, path: &str) -> Result<()> {
        if self.positional {
            return Err(Error::new(Code(31276), "a projection may hold only one positional operator").at(name));
        }
        if self.elem_match {
            return Err(refused(31256, "beside $elemMatch", name));
        }
        if path.is_empty() {
            return Err(Error::new(Code(5_392_900), "a positional operator needs a path").at(name));
        }
        self.add(parents, path, Action::Positional)?;
        self.positional = true;
        self.settle(Sense::Inclusion, Code(31253), name)
    }

    fn literal(&mut self, parents: &[&str], name: &str, value: Value<'_>) -> Result<()> {
        self.compute(parents, name, value)?;
        self.settle(Sense::Inclusion, Code(31310), name)
    }

    /// Parses a nested document: an operator, or a projection of the fields within.
    fn nested(&mut self, parents: &[&str], name: &str, nested: Doc<'_>) -> Result<()> {
        if nested.is_empty() {
            return Err(Error::new(Code(51270), "a nested projection may not be empty").at(path(parents, name)));
        }
        let names = field_path::names(name)?;
        let mut elements = nested.elements();
        if let (Some(only), None) = (elements.next(), elements.next())
            && only.name.starts_with(b"$")
            && self.operator(parents, name, only)?
        {
            return Ok(());
        }
        let parents: Vec<&str> = parents.iter().chain(&names).copied().collect();
        self.root.branch(&parents).map_err(|error| error.at(parents.join(".")))?;
        nested.elements().try_for_each(|element| self.element(&parents, element))
    }

    /// Parses `{field: {$operator: argument}}`. Returns false if the nested document is not an operator.
    fn operator(&mut self, parents: &[&str], name: &str, operator: Element<'_>) -> Result<bool> {
        let argument = operator.value;
        let in_find = self.dialect != Dialect::Stage;
        match text(operator)? {
            "$elemMatch" if in_find => self.elem_match(parents, name, argument)?,
            "$slice" if in_find => match Slice::parse(argument) {
                Ok(slice) => {
                    self.add(parents, name, Action::Slice(slice))?;
                    self.slice = true;
                }
                // A `$slice` that is invalid in `find` may be an expression.
                Err(_) => self.expression(parents, name, "$slice", argument)?,
            },
            // As in MongoDB, `$elemMatch` in a pipeline is parsed as an expression, which fails.
            expression if Expression::is_operator(expression) || expression == "$elemMatch" => {
                self.expression(parents, name, expression, argument)?;
            }
            unknown => {
                let path = unknown.strip_suffix(".$").unwrap_or(unknown);
                if field_path::names(path).is_err() {
                    return Err(Error::new(Code(31325), format!("unknown expression {unknown}")).at(name));
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn elem_match(&mut self, parents: &[&str], name: &str, argument: Value<'_>) -> Result<()> {
        let Some(condition) = argument.as_document() else {
            return Err(Error::new(Code(31274), "$elemMatch takes a document").at(name));
        };
        if self.positional {
            return Err(refused(31255, "beside $elemMatch", name));
        }
        if !parents.is_empty() || name.contains('.') {
            return Err(Error::new(Code(31275), "$elemMatch projects fields at top level only").at(path(parents, name)));
        }
        self.elem_match = true;
        self.add(parents, name, Action::ElemMatch(elem_match::filter(name, condition, self.variables.collation())?))
    }

    fn expression(&mut self, parents: &[&str], name: &str, operator: &str, argument: Value<'_>) -> Result<()> {
        let is_meta = operator == "$meta";
        if is_meta && self.dialect == Dialect::Find && argument.as_str() == Some("recordId") {
            return self.add(parents, name, Action::Computed(Expression::record_key()));
        }
        if self.sense == Some(Sense::Exclusion) && !is_meta {
            return Err(Error::new(Code(31252), "an exclusion takes no expressions but $meta").at(name));
        }
        if !is_meta {
            self.sense = Some(Sense::Inclusion);
        }
        let mut document = Writer::new();
        document.append(operator.as_bytes(), argument);
        let document = document.finish();
        let expression = Value::new(Kind::Document, &document);
        self.compute(parents, name, expression)
    }

    /// Adds a computed field. An error of its expression is returned only by [`finish`](Self::finish).
    fn compute(&mut self, parents: &[&str], name: &str, value: Value<'_>) -> Result<()> {
        let expression = Expression::parse(value, self.variables).or_else(|error| {
            self.computed.get_or_insert(error.at(path(parents, name)));
            Expression::parse(Value::NULL, self.variables)
        })?;
        self.add(parents, name, Action::Computed(expression))
    }

    fn add(&mut self, parents: &[&str], name: &str, action: Action) -> Result<()> {
        let names: Vec<&str> = parents.iter().copied().chain(field_path::names(name)?).collect();
        self.root.add(&names, action).map_err(|error| error.at(path(parents, name)))
    }

    /// Records the kind of projection that a field implies; fails with `conflict` if an earlier field implied the
    /// other kind.
    fn settle(&mut self, sense: Sense, conflict: Code, name: &str) -> Result<()> {
        if *self.sense.get_or_insert(sense) == sense {
            return Ok(());
        }
        Err(Error::new(conflict, "a projection includes or excludes fields, it does not do both").at(name))
    }

    fn finish(mut self) -> Result<Parsed> {
        if let Some(error) = self.computed {
            return Err(error);
        }
        // Without a decisive field, `$slice` leaves the choice to `_id`, and `$elemMatch` includes.
        let sense = self.sense.unwrap_or(match (self.slice, self.elem_match, self.id) {
            (false, true, _) | (_, _, Some(Sense::Inclusion)) => Sense::Inclusion,
            (_, _, Some(Sense::Exclusion) | None) => Sense::Exclusion,
        });
        if sense == Sense::Inclusion && !self.id_named {
            self.root.add(&["_id"], Action::Include)?;
        }
        Ok(Parsed { sense, root: self.root })
    }
}

/// Returns the error for a positional operator in an invalid combination.
fn refused(code: i32, beside: &str, name: &str) -> Error {
    Error::new(Code(code), format!("the positional operator '$' cannot be used {beside}")).at(name)
}

fn path(parents: &[&str], name: &str) -> String {
    parents.iter().chain([&name]).copied().collect::<Vec<_>>().join(".")
}

fn text(element: Element<'_>) -> Result<&str> {
    std::str::from_utf8(element.name).map_err(|_| Error::new(Code::INVALID_BSON, "a field's name is not UTF-8"))
}
