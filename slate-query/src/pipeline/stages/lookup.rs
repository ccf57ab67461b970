//! `$lookup`: adds the matching documents of another collection as an array.

use std::{fmt, ops::ControlFlow};

use super::{documents_first, own_documents, parse_within};
use crate::{
    Code, Error, Result,
    collation::Collation,
    expression::{Bindings, Expression, Needs},
    filter::Filter,
    held, key,
    path::{Found, Path, Step, field_path},
    pipeline::{Kept, Stage, check_collection, nested::set, parse as parse_pipeline},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

/// The content of the BSON string "undefined": its length, its text and a terminating 0.
const UNDEFINED: &[u8] = b"\x0a\0\0\0undefined\0";

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub struct Lookup {
    from: Box<str>,
    join: Option<Join>,
    variables: Box<[(Box<str>, Expression)]>,
    /// The stages as written: they are parsed for each document, because each document gives the variables other
    /// values.
    pipeline: Option<Box<[OwnedValue]>>,
    target: Path,
    bindings: Bindings,
    collections: Box<[Box<str>]>,
    is_refused_in_facet: bool,
    /// The fields of the input documents that later stages need; the others are not copied.
    kept: Kept,
    /// Whether the stage returns a document for each match instead of one with an array of them: a `$unwind` that
    /// followed was merged into it.
    is_unwound: bool,
    argument: OwnedValue,
}

/// The condition that a local and a foreign field are equal.
#[derive(Clone, Debug)]
pub struct Join {
    local: Path,
    foreign: Path,
}

/// The most bytes that the matches of one document may have together: the limit of a document, whose array they become.
const MAX_JOINED: usize = 16 << 20;

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let refused = |message: &str| Error::new(Code::FAILED_TO_PARSE, message);
    let Some(options) = argument.as_document() else {
        return Err(refused("the $lookup stage specification must be an object"));
    };
    // MongoDB reads the name of the collection before all other fields.
    let from = options.get("from").map(collection).transpose()?;
    if from.is_none() && options.get("pipeline").is_none() {
        return Err(refused("missing 'from' option to $lookup stage specification"));
    }
    let [mut local, mut foreign, mut target] = [None, None, None];
    let (mut variables, mut stages) = (None, None);
    for (place, element) in options.elements().enumerate() {
        let (name, value) = (element.display_name(), element.value);
        if options.elements().take(place).any(|before| before.name == element.name) {
            return Err(Error::new(Code(40_413), "a field of $lookup is given twice").at(&*name));
        }
        let mistyped = |kind: &str| {
            let message = format!("'{name}' of $lookup must be {kind}, not {}", value.kind().alias());
            Error::new(Code::TYPE_MISMATCH, message).at(&*name)
        };
        let path = || {
            let text = value.as_str().ok_or_else(|| mistyped("a string"))?;
            field_path::parse(text).map_err(|error| error.at(&*name))
        };
        match &*name {
            "from" => {}
            "pipeline" => stages = Some(value.as_array().ok_or_else(|| mistyped("an array"))?),
            "localField" | "foreignField" | "as" | "let" if value.is_nullish() => {}
            "localField" => local = Some(path()?),
            "foreignField" => foreign = Some(path()?),
            "as" => target = Some(path()?),
            "let" => {
                let document = value.as_document();
                variables = Some(document.ok_or_else(|| mistyped("an object"))?);
            }
            _ => {
                let message = format!("'$lookup.{name}' is an unknown field");
                return Err(Error::new(Code(40_415), message).at(&*name));
            }
        }
    }
    let missing = || Error::new(Code(40_414), "'$lookup.as' is missing but a required field").at("as");
    let target = target.ok_or_else(missing)?;
    let join = match (local, foreign) {
        (Some(local), Some(foreign)) => Some(Join { local, foreign }),
        (None, None) => None,
        _ => return Err(refused("$lookup requires both or neither of 'localField' and 'foreignField'")),
    };
    if stages.is_none() && join.is_none() {
        return Err(refused("$lookup requires either 'pipeline' or both 'localField' and 'foreignField'"));
    }
    if stages.is_none() && variables.is_some() {
        return Err(refused("$lookup with a 'let' argument must also specify 'pipeline'"));
    }
    variables.map_or(Ok(()), Bindings::check_names)?;
    // Expressions that fail for constant operands are refused when the pipeline is executed.
    let inner = bindings.below()?.lenient();
    let inner = variables.into_iter().flat_map(Doc::elements).try_fold(inner, |inner, element| {
        inner.with_unknown(&element.display_name()).map_err(|error| error.at("let"))
    })?;
    let variables = variables.into_iter().flat_map(Doc::elements).map(|element| {
        let name = element.display_name();
        let value =
            Expression::parse(element.value, bindings.names()).map_err(|error| error.at(format!("let.{name}")))?;
        Ok((Box::from(&*name), value))
    });
    let variables = variables.collect::<Result<_>>()?;
    // Parsed now for its errors, and for the collections that it reads.
    let parsed = stages.map(|stages| parse_within("$lookup", 51_047, stages, &inner)).transpose();
    let parsed = parsed.map_err(|error| error.at("pipeline"))?;
    // Without a collection, the pipeline has its own documents.
    let from: Box<str> = match (from, parsed.as_deref().is_some_and(documents_first)) {
        (Some(from), false) => from.into(),
        (None, true) => "".into(),
        (Some(_), true) => return Err(own_documents("$lookup")),
        (None, false) => {
            return Err(refused("$lookup without a collection needs a pipeline that begins with $documents"));
        }
    };
    let nested = parsed.iter().flatten();
    let collections = std::iter::once(from.clone())
        .chain(nested.clone().flat_map(|stage| stage.collections().into_iter().map(Box::from)))
        .collect();
    Ok(Stage::Lookup(Lookup {
        from,
        join,
        variables,
        pipeline: stages.map(|stages| stages.values().map(|stage| stage.to_owned()).collect()),
        target,
        bindings: bindings.below()?,
        collections,
        is_refused_in_facet: nested.clone().any(Stage::is_refused_in_facet),
        kept: Kept::default(),
        is_unwound: false,
        argument: argument.to_owned(),
    }))
}

/// Returns the name of the other collection.
fn collection(value: Value<'_>) -> Result<&str> {
    if let Some(name) = value.as_str() {
        return check_collection(name).map(|()| name).map_err(|error| error.at("from"));
    }
    if let Some(namespace) = value.as_document()
        && let Some(unknown) = namespace.elements().find(|field| !matches!(field.name, b"db" | b"coll"))
    {
        let message = format!("'$lookup.from.{}' is an unknown field", unknown.display_name());
        return Err(Error::new(Code(40_415), message).at("from"));
    }
    Err(Error::new(Code::FAILED_TO_PARSE, "'from' must be the name of a collection of this database").at("from"))
}

impl Lookup {
    /// Returns the name of the other collection.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Returns the names of all collections that the stage reads.
    pub fn collections(&self) -> impl Iterator<Item = &str> {
        self.collections.iter().map(|name| &**name)
    }

    /// Returns how strings are compared, if not by their bytes.
    pub fn collation(&self) -> Option<&Collation> {
        self.bindings.collation()
    }

    /// Returns the variables of filters.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Returns the equality that matches must fulfil, if any.
    pub fn join(&self) -> Option<&Join> {
        self.join.as_ref()
    }

    /// Returns whether the stage has a pipeline, which its matches pass through.
    pub fn has_pipeline(&self) -> bool {
        self.pipeline.is_some()
    }

    /// Returns whether every document has the same matches, because nothing of the document selects them.
    pub fn is_constant(&self) -> bool {
        self.join.is_none() && self.variables.is_empty()
    }

    /// Parses the pipeline for a document.
    ///
    /// # Errors
    /// The errors of the variables' expressions, and of the stages, which may depend on the variables.
    pub fn stages(&self, document: Doc<'_>) -> Result<Vec<Stage>> {
        let inner = self.bindings.within(document, |env| {
            self.variables.iter().try_fold(self.bindings.clone(), |inner, (name, value)| {
                inner.with(name, value.visit(env, |value| value.map(Value::to_owned))?)
            })
        })?;
        // Computed constants are dropped with the stages, before the stages for the next document are parsed.
        held::within(None, || parse_pipeline(self.pipeline.iter().flatten().map(OwnedValue::as_value), &inner))
    }

    /// Writes into `out` (cleared first) a document with its matches.
    pub fn write(&self, document: Doc<'_>, matches: Value<'_>, copy: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.kept.copy(document, copy);
        set(Doc::new(copy), self.target.parts(), Some(matches), out);
    }

    /// Fails if the documents that one document is joined with have more bytes than a document may have.
    ///
    /// # Errors
    /// 4568 (MongoDB's code).
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes <= MAX_JOINED {
            return Ok(());
        }
        let message = format!("the documents of {} for one document have more than {MAX_JOINED} bytes", self.from);
        Err(Error::new(Code(4568), message).at("$lookup"))
    }

    /// Makes the stage return only the fields that the following stages need.
    pub fn keep(&mut self, needs: Needs) {
        self.kept = Kept::of(&needs);
    }

    /// Makes the stage return a document for each match, with the match in place of the array, if the array is at `path`. Returns
    /// whether the stage was changed.
    pub fn unwind(&mut self, path: &Path) -> bool {
        let unwinds = !self.is_unwound && *path == self.target;
        self.is_unwound |= unwinds;
        unwinds
    }

    /// Returns whether the stage returns a document for each match; see [`unwind`](Self::unwind).
    pub fn is_unwound(&self) -> bool {
        self.is_unwound
    }

    pub(in crate::pipeline) fn is_refused_in_facet(&self) -> bool {
        self.is_refused_in_facet
    }

    /// Returns whether the stage changes nothing at `path`.
    pub(in crate::pipeline) fn preserves(&self, path: &Path) -> bool {
        // The array can replace a value on the way to it, so only the first name counts.
        path.parts().first() != self.target.parts().first()
    }

    /// Returns `true` only if a pipeline that needs `after` of this stage's documents has the same result without the stage.
    pub(in crate::pipeline) fn is_unused(&self, after: &Needs) -> bool {
        let (Some(names), Some(first)) = (after.fields(), self.target.parts().first()) else { return false };
        // A `$lookup` with a pipeline is executed even if its field is unused, because the pipeline can fail.
        self.pipeline.is_none() && !self.is_unwound && !names.contains(first.name())
    }

    /// Returns the fields that the stage and the stages after it read.
    pub(in crate::pipeline) fn needs(&self, mut after: Needs) -> Needs {
        if let [only] = self.target.parts() {
            after.remove(only.name());
        }
        if let Some(join) = &self.join {
            after.add_path(&join.local);
        }
        self.variables.iter().for_each(|(_, value)| value.visit_fields(&mut |field| after.add(field)));
        after
    }
}

impl Join {
    pub(super) fn new(local: Path, foreign: Path) -> Self {
        Self { local, foreign }
    }

    pub(super) fn local(&self) -> &Path {
        &self.local
    }

    /// Returns the field of the other collection.
    pub fn foreign(&self) -> &Path {
        &self.foreign
    }

    /// Calls `visit` with each value of the local field: of an array its elements. Calls it with null if there is none.
    pub fn visit_local<'d>(&self, document: Doc<'d>, visit: &mut impl FnMut(Value<'d>)) {
        let mut is_missing = true;
        let _ = self.local.walk(document, &mut |end| {
            if let Found::Value(value) = end.found {
                match value.as_array().filter(|_| matches!(end.step, Step::Name)) {
                    Some(array) => {
                        is_missing &= array.is_empty();
                        array.values().for_each(&mut *visit);
                    }
                    None => {
                        is_missing = false;
                        visit(value);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        if is_missing {
            visit(Value::NULL);
        }
    }

    /// Calls `visit` with the key of each value that a document of the other collection is equal to at the path. Equal values
    /// have equal keys.
    pub fn visit_foreign_keys(&self, document: Doc<'_>, key: &mut Vec<u8>, visit: &mut impl FnMut(&[u8])) {
        let _ = self.foreign.walk(document, &mut |end| {
            let mut add = |value| {
                key.clear();
                key::encode(value, key);
                visit(key);
            };
            match (end.found, end.step) {
                (Found::Value(value), step) => {
                    if let (Some(array), Step::Name) = (value.as_array(), step) {
                        array.values().for_each(&mut add);
                    }
                    add(value);
                }
                (Found::Missing, _) => add(Value::NULL),
                (Found::Blocked, _) => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// Returns the filter of the other collection for documents in which the foreign field exists.
    ///
    /// # Errors
    /// The errors of filters.
    pub(super) fn exists(&self, bindings: &Bindings) -> Result<Filter> {
        let mut writer = Writer::new();
        writer.open_document(self.foreign.as_str().as_bytes());
        writer.append(b"$exists", Value::new(Kind::Boolean, &[1]));
        writer.close();
        Filter::parse_with(Doc::new(&writer.finish()), bindings)
    }

    /// Returns the filter of the other collection for documents that are equal to one of the values.
    pub fn filter<'a>(&self, values: impl Iterator<Item = Value<'a>> + Clone) -> OwnedValue {
        let is_special = |value: Value<'_>| matches!(value.kind(), Kind::Regex | Kind::Undefined);
        let path = self.foreign.as_str().as_bytes();
        let mut writer = Writer::new();
        if values.clone().any(is_special) {
            // In an `$in` list, a regular expression would match strings, and undefined is refused.
            writer.open_array(b"$or");
            for (place, value) in values.enumerate() {
                writer.open_document(place.to_string().as_bytes());
                writer.open_document(path);
                match value.kind() {
                    Kind::Undefined => writer.append(b"$type", Value::new(Kind::String, UNDEFINED)),
                    _ => writer.append(b"$eq", value),
                }
                writer.close();
                writer.close();
            }
        } else {
            writer.open_document(path);
            writer.open_array(b"$in");
            for (place, value) in values.enumerate() {
                writer.append(place.to_string().as_bytes(), value);
            }
            writer.close();
        }
        writer.close();
        Value::new(Kind::Document, &writer.finish()).to_owned()
    }
}

impl Lookup {
    /// Returns the argument of the stage, as explain shows it.
    pub fn argument(&self) -> Value<'_> {
        self.argument.as_value()
    }
}

impl fmt::Display for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.argument)?;
        if self.is_unwound { f.write_str(", unwound") } else { Ok(()) }
    }
}
