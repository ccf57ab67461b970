use super::{
    call::WindowCall,
    frame::Frame,
    function::{Function, refused},
};
use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    expression::{Bindings, Expression, Needs},
    key,
    key::Direction,
    path::{Part, Path, field_path},
    pipeline::{Kept, Stage},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    sort::Sort,
    value_set::AsValue as _,
};

/// A parsed `$setWindowFields`. The documents of a partition must follow each other in its input, unless it [sorts them](Self::needs_key).
#[derive(Clone, Debug)]
pub struct Windows {
    partition: Option<Expression>,
    sort: Option<Sort>,
    outputs: Vec<WindowOutput>,
    bindings: Bindings,
    /// Whether an output depends on which documents are equal under the sort.
    compares_peers: bool,
    /// Whether an output computes with the values of the sort field, not only with their order.
    reads_places: bool,
    /// The fields of the input documents that later stages need; the others are not copied.
    kept: Kept,
    /// The fields of the input documents that this stage or later ones need; the others are not read.
    read: Kept,
    argument: OwnedValue,
}

/// A computed field.
#[derive(Clone, Debug)]
pub(super) struct WindowOutput {
    pub(super) path: Path,
    pub(super) function: Function,
    pub(super) frame: Frame,
}

/// Parses the stage: a `$sort` by partition and order, unless an expression computes the partition, and the computation
/// of the fields.
pub(in crate::pipeline) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let refuse = |message: &str| Error::new(Code::FAILED_TO_PARSE, message);
    let options = argument.as_document();
    let options = options.ok_or_else(|| refuse("the $setWindowFields stage specification must be an object"))?;
    let (mut partition, mut sort, mut fields) = (None, None, None);
    for element in options.elements() {
        let value = element.value;
        let document = || {
            let message = format!("'{}' of $setWindowFields must be an object", element.display_name());
            let document = value.as_document();
            document.ok_or_else(|| Error::new(Code::TYPE_MISMATCH, message))
        };
        match element.name {
            b"partitionBy" => {
                let expression = Expression::parse(value, bindings.names()).map_err(|error| error.at("partitionBy"))?;
                partition = Some(expression);
            }
            b"sortBy" | b"output" if value.is_nullish() => {}
            b"sortBy" => {
                let parsed = Sort::parse(document()?).map_err(|error| error.at("sortBy"))?;
                let parsed = parsed.with_collation(bindings.collation().cloned());
                sort = Some(parsed);
            }
            b"output" => fields = Some(document()?),
            _ => {
                let message = format!("'$setWindowFields.{}' is an unknown field", element.display_name());
                return Err(Error::new(Code(40_415), message));
            }
        }
    }
    let fields = fields.ok_or_else(|| Error::new(Code(40_414), "$setWindowFields needs an 'output'"))?;
    let outputs = fields.elements().map(|field| {
        let name = field.display_name();
        output(&name, field.value, sort.as_ref(), bindings).map_err(|error| error.at(&*name))
    });
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    refuse_conflicts(&outputs)?;
    // A constant puts all documents into one partition.
    if let Some(constant) = partition.as_ref().and_then(Expression::as_constant) {
        encode_partition(None, constant.as_value().unwrap_or(Value::NULL), &mut Vec::new())?;
        partition = None;
    }
    let windows = Windows {
        partition,
        // `sortBy: {}` satisfies functions and windows that require an order, but orders nothing.
        sort: sort.filter(|sort| !sort.fields().is_empty()),
        compares_peers: outputs.iter().any(|output| output.function.compares_peers()),
        reads_places: outputs.iter().any(WindowOutput::reads_places),
        outputs,
        bindings: bindings.clone(),
        kept: Kept::default(),
        read: Kept::default(),
        argument: argument.to_owned(),
    };
    Ok(windows.order()?.map(Stage::Sort).into_iter().chain([Stage::SetWindowFields(windows)]).collect())
}

/// Fails with 6307900 if the path of an output equals or begins another's.
fn refuse_conflicts(outputs: &[WindowOutput]) -> Result<()> {
    let mut paths: Vec<_> = outputs.iter().map(|output| &output.path).collect();
    paths.sort_by(|a, b| a.parts().iter().map(Part::name).cmp(b.parts().iter().map(Part::name)));
    match paths.windows(2).find(|pair| matches!(pair, [a, b] if b.parts().starts_with(a.parts()))) {
        Some(_) => Err(Error::new(Code(6_307_900), "'output' of $setWindowFields contains two conflicting paths")),
        None => Ok(()),
    }
}

fn output(name: &str, value: Value<'_>, sort: Option<&Sort>, bindings: &Bindings) -> Result<WindowOutput> {
    let path = field_path::parse(name)?;
    let refuse = |message: &str| Error::new(Code::FAILED_TO_PARSE, message);
    let spec = value.as_document();
    let spec = spec.ok_or_else(|| refuse("the window function of a field must be an object"))?;
    let (mut window, mut function) = (None, None);
    for element in spec.elements() {
        let operator = element.display_name().into_owned();
        if operator == "window" {
            window = Some(element.value);
        } else if !operator.starts_with('$') {
            return Err(refuse(&format!("a window function has no field '{operator}'")));
        } else if function.replace((operator, element.value)).is_some() {
            return Err(refuse("a field must have one window function"));
        }
    }
    let (operator, operand) = function.ok_or_else(|| refuse("a field must have a window function"))?;
    let (has_window, variables) = (window.is_some(), bindings.names());
    let function = WindowCall { name: &operator, operand, has_window, sort, variables }.parse()?;
    let frame = window.map_or(Ok(Frame::All), |window| Frame::parse(window, sort, variables))?;
    if matches!(function, Function::Scale(_)) && !frame.contains_current() {
        return Err(refused(&operator, "needs a window that contains the current document"));
    }
    if let (Function::Rate { .. }, Frame::Range(_, _, None)) = (&function, &frame)
        && sort.is_none()
    {
        return Err(refused(&operator, "needs a sortBy"));
    }
    Ok(WindowOutput { path, function, frame })
}

impl WindowOutput {
    /// Returns whether the output is one value for the whole partition, which needs no operands of single documents.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.function, Function::Accumulate(_)) && self.frame.is_whole()
    }

    fn reads_places(&self) -> bool {
        matches!(self.frame, Frame::Range(..)) || self.function.reads_places()
    }
}

impl Windows {
    /// Returns the sort of the input by partition and order, after which the documents of a partition follow each
    /// other. `None` if the input needs no order, or if [`key`](Self::key) orders it.
    ///
    /// # Errors
    /// The errors of an invalid sort.
    fn order(&self) -> Result<Option<Sort>> {
        if self.needs_key() {
            return Ok(None);
        }
        let field = self.partition.as_ref().and_then(Expression::as_field);
        let mut writer = Writer::new();
        let (one, minus_one) = (1_i32.to_le_bytes(), (-1_i32).to_le_bytes());
        let mut add = |path: &str, direction| {
            let sign = if direction == Direction::Ascending { &one } else { &minus_one };
            writer.append(path.as_bytes(), Value::new(Kind::Int32, sign));
        };
        if let Some(field) = field {
            add(field.as_str(), Direction::Ascending);
        }
        let by = self.sort.iter().flat_map(|sort| sort.fields());
        by.filter(|(path, _)| field.is_none_or(|field| field.as_str() != path.as_str()))
            .for_each(|(path, direction)| add(path.as_str(), *direction));
        let sort = Sort::parse(Doc::new(&writer.finish()))?.with_collation(self.bindings.collation().cloned());
        Ok((!sort.is_empty()).then_some(sort))
    }

    /// Returns whether the stage sorts its input by [`key`](Self::key), because an expression computes the partition.
    pub fn needs_key(&self) -> bool {
        self.partition.as_ref().is_some_and(|partition| partition.as_field().is_none())
    }

    /// Writes into `out` (cleared first) the key of a document's partition, which is equal for the documents of one
    /// partition.
    ///
    /// # Errors
    /// The errors of the expression; `TypeMismatch` (14) if its value is an array.
    fn partition_key(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let Some(partition) = &self.partition else { return Ok(()) };
        self.bindings.within(document, |env| {
            partition.visit(env, |value| encode_partition(env.collation(), value.unwrap_or(Value::NULL), out))?
        })
    }

    /// Writes into `out` (cleared first) a key that orders documents by partition and sort.
    ///
    /// # Errors
    /// The errors of the expression and of the sort; `TypeMismatch` (14) if a partition is an array.
    pub fn key(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.partition_key(document, out)?;
        self.sort.as_ref().map_or(Ok(()), |sort| sort.key(document, out))
    }

    /// Makes the stage return only the fields that the following stages need.
    pub fn keep(&mut self, needs: &Needs) {
        self.kept = Kept::of(needs);
        self.read = Kept::of(&self.needs(needs.clone()));
    }

    /// Returns the fields that the stage and the stages after it read.
    pub(in crate::pipeline) fn needs(&self, mut after: Needs) -> Needs {
        for output in &self.outputs {
            if let [only] = output.path.parts() {
                after.remove(only.name());
            }
        }
        let mut add = |field: Option<&crate::raw::FieldName>| after.add(field);
        self.partition.iter().for_each(|partition| partition.visit_fields(&mut add));
        self.outputs.iter().for_each(|output| output.function.visit_fields(&mut add));
        self.sort.iter().flat_map(|sort| sort.fields()).for_each(|(path, _)| after.add_path(path));
        after
    }

    pub(super) fn sort(&self) -> Option<&Sort> {
        self.sort.as_ref()
    }

    /// Returns the path of the first sort field; `None` without a sort.
    pub(super) fn sort_field(&self) -> Option<&Path> {
        self.sort.as_ref()?.fields().first().map(|(path, _)| path)
    }

    pub(super) fn outputs(&self) -> &[WindowOutput] {
        &self.outputs
    }

    pub(super) fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Returns the fields that later stages need.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Returns the fields that this stage or later ones need.
    pub fn read(&self) -> &Kept {
        &self.read
    }

    pub(super) fn partition(&self) -> Option<&Expression> {
        self.partition.as_ref()
    }

    pub(super) fn compares_peers(&self) -> bool {
        self.compares_peers
    }

    pub(super) fn reads_places(&self) -> bool {
        self.reads_places
    }
}

crate::pipeline::shown_argument!(Windows);

/// Writes into `out` (cleared first) the key of a partition.
///
/// # Errors
/// `TypeMismatch` (14) if the value is an array.
pub(super) fn encode_partition(collation: Option<&Collation>, value: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.kind() == Kind::Array {
        let message = "an expression used to partition cannot evaluate to value of type array";
        return Err(Error::new(Code::TYPE_MISMATCH, message));
    }
    out.clear();
    key::encode(Compared::new(collation, value).as_value(), out);
    Ok(())
}
