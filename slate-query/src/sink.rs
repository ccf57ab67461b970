//! `$out` and `$merge`: the last stage of a pipeline, which writes its documents into a collection.

use crate::{
    Code, Error, Result,
    expression::{Bindings, Expression},
    filter::Filter,
    path::{Path, field_path, order_of_siblings},
    pipeline::check_collection,
    raw::{Doc, Element, Kind, OwnedValue, Value, Writer},
    update::Update,
};

/// Where the documents of a pipeline are written.
#[derive(Clone, Debug)]
pub enum Sink {
    /// `$out`: the rows replace the documents of this collection.
    Out(Box<str>),
    /// `$merge`: the rows are combined with the documents of a collection.
    Merge(Merge),
}

/// A parsed `$merge`.
#[derive(Clone, Debug)]
pub struct Merge {
    into: Box<str>,
    on: Vec<Path>,
    matched: WhenMatched,
    not_matched: WhenNotMatched,
    /// The variables of the pipeline of [`WhenMatched::Pipeline`].
    variables: Vec<(Box<str>, Expression)>,
    bindings: Bindings,
}

/// The treatment of an existing document.
#[derive(Clone, Debug)]
pub enum WhenMatched {
    /// The new document replaces the existing one.
    Replace,
    /// The existing document remains unchanged.
    KeepExisting,
    /// The fields of the new document are set in the existing one.
    Merge,
    /// The aggregation fails.
    Fail,
    /// These stages, as written, compute the replacement of the existing document.
    Pipeline(OwnedValue),
}

/// The treatment of a document that matches no existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// The document is inserted.
    Insert,
    /// The document is discarded.
    Discard,
    /// The aggregation fails.
    Fail,
}

impl Sink {
    /// Returns whether a stage is a `$out` or `$merge`, by its name alone.
    pub fn is(stage: Doc<'_>) -> bool {
        stage.elements().next().is_some_and(|first| matches!(first.name, b"$out" | b"$merge"))
    }

    /// Parses a stage if it is a `$out` or `$merge`.
    ///
    /// # Errors
    /// MongoDB's codes for an invalid argument; `NotImplemented` (238) for a collection of another database.
    pub fn parse(stage: Doc<'_>, bindings: &Bindings) -> Result<Option<Self>> {
        let mut elements = stage.elements();
        let (Some(only), None) = (elements.next(), elements.next()) else { return Ok(None) };
        let parsed = match only.name {
            b"$out" => out(only.value),
            b"$merge" => merge(only.value, bindings),
            _ => return Ok(None),
        };
        parsed.map(Some).map_err(|error| error.at(only.display_name()))
    }

    /// Returns the collection that the stage writes to.
    pub fn into(&self) -> &str {
        match self {
            Self::Out(into) => into,
            Self::Merge(merge) => &merge.into,
        }
    }
}

fn out(argument: Value<'_>) -> Result<Sink> {
    let wrong = || Error::new(Code(16_990), "$out takes the name of a collection, or a document with it");
    if argument.as_document().is_some_and(|namespace| namespace.get("db").is_none()) {
        return Err(Error::new(Code::IDL_FAILED_TO_PARSE, "BSON field '$out.db' is missing but a required field"));
    }
    collection(argument, Code(17_385)).ok_or_else(wrong)?.map(Sink::Out)
}

/// Returns the collection that a string or `{db, coll}` names; `None` for another value. `reserved` is the code for a reserved name.
fn collection(value: Value<'_>, reserved: Code) -> Option<Result<Box<str>>> {
    let name = match value.as_document() {
        None => value.as_str()?,
        Some(namespace) if namespace.get("db").is_some() => {
            return Some(Err(Error::unsupported("writing into another database").at("db")));
        }
        Some(namespace) => namespace.get("coll")?.as_str()?,
    };
    Some(match name {
        _ if name.starts_with("system.") => Err(Error::new(reserved, format!("cannot write into {name}"))),
        _ => check_collection(name).map(|()| name.into()),
    })
}

fn merge(argument: Value<'_>, bindings: &Bindings) -> Result<Sink> {
    let wrong = || Error::new(Code(51_182), "$merge only supports a string or object argument");
    let default = |into| Merge {
        into,
        on: Vec::new(),
        matched: WhenMatched::Merge,
        not_matched: WhenNotMatched::Insert,
        variables: Vec::new(),
        bindings: bindings.clone(),
    };
    let Some(options) = argument.as_document() else {
        let mut merge = default(collection(argument, Code(31_319)).ok_or_else(wrong)??);
        merge.on.push(Path::parse("_id")?);
        return Ok(Sink::Merge(merge));
    };
    let mut merge = default("".into());
    let (mut into, mut variables) = (None, None);
    for element in options.elements() {
        let name = element.display_name();
        match &*name {
            "into" => {
                let wrong = || Error::new(Code(51_178), "'into' of $merge must be a string or an object");
                into =
                    Some(collection(element.value, Code(31_319)).ok_or_else(wrong)?.map_err(|error| error.at("into"))?);
            }
            "on" => merge.on = on(element.value).map_err(|error| error.at("on"))?,
            // MongoDB reads null as a missing field here, but not in the other fields.
            "let" | "whenNotMatched" if element.value.is_nullish() => {}
            "let" => {
                let document = element.value.as_document();
                variables = Some(document.ok_or_else(|| mistyped(element, "an object"))?);
            }
            "whenMatched" => merge.matched = when_matched(element)?,
            "whenNotMatched" => merge.not_matched = when_not_matched(element)?,
            _ => {
                let message = format!("'$merge.{name}' is an unknown field");
                return Err(Error::new(Code(40_415), message).at(name));
            }
        }
    }
    merge.into = into.ok_or_else(|| Error::new(Code(40_414), "$merge needs the field 'into'"))?;
    if merge.on.is_empty() {
        merge.on.push(Path::parse("_id")?);
    }
    if matches!(merge.matched, WhenMatched::KeepExisting | WhenMatched::Fail)
        && merge.not_matched != WhenNotMatched::Insert
    {
        let message = "whenMatched 'keepExisting' or 'fail' is only supported with whenNotMatched 'insert'";
        return Err(Error::new(Code(51_181), message));
    }
    let is_pipeline = matches!(merge.matched, WhenMatched::Pipeline(_));
    if variables.is_some() && !is_pipeline {
        return Err(Error::new(Code(51_199), "'let' of $merge is only for a pipeline").at("let"));
    }
    if is_pipeline {
        merge.variables = pipeline_variables(variables, merge.not_matched, bindings)?;
        // Reports errors in the stages when the pipeline is parsed; the update itself is made for each document.
        merge.update(None)?;
    }
    Ok(Sink::Merge(merge))
}

/// Parses the variables of a pipeline in `whenMatched`. `$$new`, the new document, is defined if there is no `let`, and also with a
/// `let` if documents without a match are inserted.
fn pipeline_variables(
    variables: Option<Doc<'_>>,
    not_matched: WhenNotMatched,
    bindings: &Bindings,
) -> Result<Vec<(Box<str>, Expression)>> {
    let mut parsed = Vec::new();
    for element in variables.iter().flat_map(|variables| variables.elements()) {
        let name = element.display_name();
        let at = || format!("let.{name}");
        if name == "new" && element.value.as_str() != Some("$$ROOT") {
            return Err(Error::new(Code(51_273), "the variable 'new' of $merge is always $$ROOT").at(at()));
        }
        let value = Expression::parse(element.value, bindings.names()).map_err(|error| error.at(at()))?;
        parsed.push((Box::from(&*name), value));
    }
    let has_new = parsed.iter().any(|(name, _)| &**name == "new");
    if !has_new && (variables.is_none() || not_matched == WhenNotMatched::Insert) {
        let root = OwnedValue::from(bson::Bson::from("$$ROOT"));
        parsed.push(("new".into(), Expression::parse(root.as_value(), bindings.names())?));
    }
    Ok(parsed)
}

fn mistyped(element: Element<'_>, kind: &str) -> Error {
    let (name, found) = (element.display_name(), element.value.kind().alias());
    Error::new(Code::TYPE_MISMATCH, format!("'{name}' of $merge must be {kind}, not {found}")).at(&*name)
}

fn on(value: Value<'_>) -> Result<Vec<Path>> {
    let wrong = |code, message: &'static str| Error::new(Code(code), message);
    let names: Vec<Value<'_>> = match value.as_array() {
        Some(array) if array.is_empty() => return Err(wrong(51_187, "'on' of $merge must not be empty")),
        Some(array) => array.values().collect(),
        None if value.as_str().is_some() => vec![value],
        None => return Err(wrong(51_186, "'on' of $merge must be a string or an array of strings")),
    };
    let mut paths = Vec::<Path>::new();
    for name in names {
        let name = name.as_str().ok_or_else(|| wrong(51_134, "the elements of 'on' of $merge must be strings"))?;
        let path = field_path::parse(name)?;
        if paths.contains(&path) {
            return Err(Error::new(Code(31_465), format!("'on' of $merge names {name} twice")));
        }
        paths.push(path);
    }
    Ok(paths)
}

fn when_matched(element: Element<'_>) -> Result<WhenMatched> {
    if element.value.as_array().is_some() {
        return Ok(WhenMatched::Pipeline(element.value.to_owned()));
    }
    let name = element.value.as_str().ok_or_else(|| {
        Error::new(Code(51_191), "'whenMatched' of $merge must be a string or an array").at("whenMatched")
    })?;
    Ok(match name {
        "replace" => WhenMatched::Replace,
        "keepExisting" => WhenMatched::KeepExisting,
        "merge" => WhenMatched::Merge,
        "fail" => WhenMatched::Fail,
        _ => return Err(unknown(element, name)),
    })
}

fn when_not_matched(element: Element<'_>) -> Result<WhenNotMatched> {
    let name = element.value.as_str().ok_or_else(|| mistyped(element, "a string"))?;
    Ok(match name {
        "insert" => WhenNotMatched::Insert,
        "discard" => WhenNotMatched::Discard,
        "fail" => WhenNotMatched::Fail,
        _ => return Err(unknown(element, name)),
    })
}

fn unknown(element: Element<'_>, found: &str) -> Error {
    let name = element.display_name();
    let message = format!("enumeration value '{found}' for the field '$merge.{name}' is not valid");
    Error::new(Code::BAD_VALUE, message).at(name)
}

/// The treatment of a document in which a field of `on` is null or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedNulls {
    /// The document is matched with the existing document in which the field is null or missing.
    Matched,
    /// The document is refused: several existing documents may be without the field.
    Refused,
}

impl Merge {
    /// Returns the paths at which a document is equal to the existing one that it is matched with.
    pub fn on(&self) -> &[Path] {
        &self.on
    }

    /// Returns the treatment of an existing document.
    pub fn matched(&self) -> &WhenMatched {
        &self.matched
    }

    /// Returns the treatment of a document that matches no existing one.
    pub fn not_matched(&self) -> WhenNotMatched {
        self.not_matched
    }

    /// Returns a document with its fields in the order in which `$merge` inserts them: `_id` and the fields of `on`, then the
    /// others as an update would append them. `None`: the document is written unchanged.
    pub fn arranged(&self, document: Doc<'_>) -> Option<Vec<u8>> {
        if !matches!(self.matched, WhenMatched::Merge | WhenMatched::KeepExisting) {
            return None;
        }
        let first = |element: &Element<'_>| {
            let is_on = |path: &Path| path.parts().first().is_some_and(|part| part.name_bytes() == element.name);
            (element.name != b"_id", !self.on.iter().any(is_on))
        };
        let order = |one: &Element<'_>, other: &Element<'_>| {
            first(one).cmp(&first(other)).then_with(|| order_of_siblings(one.name, other.name))
        };
        let mut elements = document.elements().collect::<Vec<_>>();
        if elements.is_sorted_by(|one, other| order(one, other).is_le()) {
            return None;
        }
        elements.sort_by(order);
        let mut arranged = Writer::into_buffer(Vec::with_capacity(document.bytes().len()));
        elements.iter().for_each(|element| arranged.append(element.name, element.value));
        Some(arranged.finish())
    }

    /// Returns the filter that finds the existing document. `None`: the document has no `_id` yet, by which it would be
    /// found.
    ///
    /// # Errors
    /// 51132 for an array on the way to a field of `on`, and for a missing field or null if they are refused; 51185 for
    /// a field of `on` that is an array.
    pub fn filter(&self, document: Doc<'_>, nulls: MergedNulls) -> Result<Option<Filter>> {
        let mut filter = Writer::new();
        for path in &self.on {
            let mut value = Some(Value::new(Kind::Document, document.bytes()));
            let mut crosses_array = false;
            for part in path.parts() {
                crosses_array |= value.is_some_and(|value| value.kind() == Kind::Array);
                value = value.and_then(Value::as_document).and_then(|document| document.get(part.name()));
            }
            if path.as_str() == "_id" && value.is_none() {
                return Ok(None);
            }
            let value = value.filter(|value| !value.is_nullish());
            if value.is_some_and(|value| value.kind() == Kind::Array) {
                let message = "$merge write error: 'on' field cannot be an array";
                return Err(Error::new(Code(51_185), message).at(path.as_str()));
            }
            if crosses_array || value.is_none() && nulls == MergedNulls::Refused {
                let message = "$merge write error: 'on' field cannot be missing, null or undefined";
                return Err(Error::new(Code(51_132), message).at(path.as_str()));
            }
            filter.open_document(path.as_str().as_bytes());
            filter.append(b"$eq", value.unwrap_or(Value::NULL));
            filter.close();
        }
        Filter::parse(Doc::new(&filter.finish())).map(Some)
    }

    /// Returns the update of an existing document by a new one. `None` is for finding errors before there is a document; the result
    /// is then not meant to be applied.
    ///
    /// # Errors
    /// The errors of the stages and of the variables.
    pub fn update(&self, document: Option<Doc<'_>>) -> Result<Update> {
        let stages = match (&self.matched, document) {
            (WhenMatched::Replace, Some(document)) => {
                return Update::parse(Value::new(Kind::Document, document.bytes()), &[], &self.bindings);
            }
            (WhenMatched::Merge, _) => merging(),
            (WhenMatched::Pipeline(stages), _) => stages.clone(),
            (WhenMatched::Replace | WhenMatched::KeepExisting | WhenMatched::Fail, _) => {
                OwnedValue::from(bson::Bson::Array(Vec::new()))
            }
        };
        let document = document.unwrap_or(Doc::EMPTY);
        let bindings = match self.matched {
            WhenMatched::Merge => {
                self.bindings.with("new", Some(Value::new(Kind::Document, document.bytes()).to_owned()))?
            }
            _ => self.bindings.within(document, |env| {
                self.variables.iter().try_fold(self.bindings.clone(), |bindings, (name, value)| {
                    bindings.with(name, value.visit(env, |value| value.map(Value::to_owned))?)
                })
            })?,
        };
        Update::parse(stages.as_value(), &[], &bindings)
    }
}

/// Returns the stages that write the fields of `$$new` into a document.
fn merging() -> OwnedValue {
    OwnedValue::from(bson::bson!([{ "$replaceWith": { "$mergeObjects": ["$$ROOT", "$$new"] } }]))
}
