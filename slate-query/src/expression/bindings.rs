use std::collections::HashSet;

use super::{Env, Expression, Variables};
use crate::{
    Code, Error, Result,
    collation::Collation,
    held,
    raw::{Doc, OwnedValue, Value},
};

/// The variables of a pipeline with their values, which are the same for all its documents.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    names: Variables,
    /// The values in the order of the names; `None`: the value is missing.
    values: Vec<Option<OwnedValue>>,
    /// Whether a variable has another value for each document, so that a stage is only parsed for its errors.
    has_unknown: bool,
    now: i64,
    /// The number of pipelines of other collections that enclose this pipeline.
    depth: usize,
}

/// The most pipelines of other collections that can be nested in each other, MongoDB's limit.
const MAX_DEPTH: usize = 20;

/// MongoDB's variables that are set once for an operation.
const CONSTANTS: [&str; 4] = ["CLUSTER_TIME", "IS_MR", "JS_SCOPE", "NOW"];

impl Bindings {
    /// Creates the bindings of an operation without `let`. `now` is the value of `$$NOW`, in milliseconds since 1970.
    pub fn new(now: i64) -> Self {
        Self { now, ..Self::default() }
    }

    /// Returns the same variables, with strings compared by a collation.
    #[must_use]
    pub fn with_collation(self, collation: Option<Collation>) -> Self {
        Self { names: self.names.collated(collation), ..self }
    }

    /// Returns the same variables for stages and filters that are perhaps never evaluated: an expression that fails for
    /// every document then fails when it is evaluated, not when it is parsed.
    #[must_use]
    pub fn lenient(self) -> Self {
        Self { names: self.names.lenient(), ..self }
    }

    /// Returns how strings are compared, if not by their bytes.
    pub fn collation(&self) -> Option<&Collation> {
        self.names.collation()
    }

    /// Returns the same variables and one more, which may hide another of the same name.
    ///
    /// # Errors
    /// As [`Variables::with`].
    pub fn with(&self, name: &str, value: Option<OwnedValue>) -> Result<Self> {
        Ok(self.extended(self.names.with(name)?, value))
    }

    /// Checks that a `let` defines each of its variables once.
    ///
    /// # Errors
    /// `IDLDuplicateField` (40413) for a variable that is defined twice.
    pub fn check_names(variables: Doc<'_>) -> Result<()> {
        let mut names = HashSet::new();
        for variable in variables.elements() {
            if !names.insert(variable.name) {
                let name = variable.display_name();
                let message = format!("BSON field 'let.{name}' is a duplicate field");
                return Err(Error::new(Code::IDL_DUPLICATE_FIELD, message).at(format!("let.{name}")));
            }
        }
        Ok(())
    }

    /// Adds a variable that a command defines by an expression.
    ///
    /// # Errors
    /// As [`Variables::with`]; 4738901 for the name of a constant; 4890500 for an expression that reads a document; the
    /// errors of the expression.
    pub fn define(mut self, name: &str, expression: Value<'_>) -> Result<Self> {
        if CONSTANTS.contains(&name) {
            return Err(Error::new(Code(4_738_901), format!("'{name}' is a constant of the operation")));
        }
        let expression = Expression::parse(expression, &self.names)?;
        let mut reads_document = false;
        expression.visit_fields(&mut |_| reads_document = true);
        if reads_document {
            let message = "the variables of a command are computed before the first document, so they have no fields";
            return Err(Error::new(Code(4_890_500), message));
        }
        let value = self.evaluate(&expression)?;
        if let (false, Some(value)) = (expression.is_constant(), &value) {
            held::keep_constant(value.as_value().bytes().len())?;
        }
        self.names.add(name)?;
        self.push_value(value);
        Ok(self)
    }

    /// Like [`with`](Self::with), but for a variable that gets its value only when the pipeline is executed, such as
    /// one of the `let` of a `$lookup`.
    pub(crate) fn with_unknown(&self, name: &str) -> Result<Self> {
        Ok(Self { has_unknown: true, ..self.with(name, None)? })
    }

    /// Returns whether some variable gets its value only when the pipeline is executed.
    pub(crate) fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Like [`with`](Self::with), but for a variable that a stage defines, whose name a user's variable cannot have.
    pub(crate) fn with_system(&self, name: &str, value: OwnedValue) -> Self {
        self.extended(self.names.with_system(name), Some(value))
    }

    fn extended(&self, names: Variables, value: Option<OwnedValue>) -> Self {
        let mut extended = Self { names, ..self.clone() };
        extended.push_value(value);
        extended
    }

    /// Adds the value of the last variable.
    fn push_value(&mut self, value: Option<OwnedValue>) {
        if let Some(value) = &value {
            self.names.set_last(value);
        }
        self.values.push(value);
    }

    /// Returns the same variables in a pipeline of another collection.
    ///
    /// # Errors
    /// `MaxSubPipelineDepthExceeded` (232) if too many are nested.
    pub fn below(&self) -> Result<Self> {
        if self.depth == MAX_DEPTH {
            let message = format!("at most {MAX_DEPTH} pipelines of other collections can be nested");
            return Err(Error::new(Code::MAX_SUB_PIPELINE_DEPTH_EXCEEDED, message));
        }
        Ok(Self { depth: self.depth + 1, ..self.clone() })
    }

    /// Returns the value of an expression that reads no document. `None`: the value is missing.
    ///
    /// # Errors
    /// The errors of the expression. If the expression reads a field of a document, the field is missing.
    pub fn compute(&self, expression: Value<'_>) -> Result<Option<OwnedValue>> {
        self.evaluate(&Expression::parse(expression, &self.names)?)
    }

    fn evaluate(&self, expression: &Expression) -> Result<Option<OwnedValue>> {
        self.within(Doc::EMPTY, |env| expression.visit(env, |value| value.map(Value::to_owned)))
    }

    /// Returns the names, for parsing expressions.
    pub fn names(&self) -> &Variables {
        &self.names
    }

    /// Calls `visit` with the environment of a document.
    #[inline]
    pub fn within<R>(&self, document: Doc<'_>, visit: impl FnOnce(&Env<'_>) -> R) -> R {
        let env = Env::new(document, self.now).with_collation(self.names.collation());
        if self.values.is_empty() {
            return visit(&env);
        }
        let frame = env.frame_of_bound(&self.values);
        visit(&env.within(&frame))
    }
}
