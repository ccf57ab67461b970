use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Value},
};

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    explain::{ExplainedCommand, Purpose},
    fields::{Fields, given, owned},
    hint,
    reply::Reply,
    update::modification,
};
use crate::{
    Error, ExplainVerbosity, Result, ReturnDocument,
    api::find_one_and::{delete_one, update_one},
    api::update::{Change, target_query},
    call::{Request, Scope},
    exec::Target,
    write::UpdateKind,
};

/// The change of the found document.
enum Modification {
    Remove,
    Update(Change),
}

/// `{findAndModify: collection, query, sort, fields, remove | update, new, upsert, arrayFilters, hint}`: changes or deletes one document, and returns
/// it.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let ParsedFindAndModify { scope, collection, request, modification, .. } = parse(call)?;
    match modification {
        Modification::Remove => remove(scope, collection, &request),
        Modification::Update(change) => update(scope, collection, &request, &change),
    }
}

/// Returns the plan for the document that a `findAndModify` changes.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    let ParsedFindAndModify { scope, collection, request, modification, common } = parse(call)?;
    let purpose = match &modification {
        Modification::Remove => Purpose::Delete,
        Modification::Update(_) => Purpose::Update { upsert: request.update.upsert },
    };
    let explain = request.explain(scope, collection, verbosity, |request, defined| {
        let query = match &modification {
            Modification::Remove => request.parse_targets(defined, Target::One)?,
            Modification::Update(change) => change.parse(request, defined, Target::One)?.query,
        };
        Ok(target_query(query, Target::One))
    })?;
    Ok(ExplainedCommand { common, explain, purpose })
}

/// A parsed `findAndModify`.
struct ParsedFindAndModify<'c> {
    scope: &'c Scope,
    collection: &'c str,
    request: Request,
    modification: Modification,
    common: Common,
}

fn parse(mut call: Call<'_>) -> Result<ParsedFindAndModify<'_>> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let filter = fields.object("query")?;
    let projection = fields.object("fields")?;
    let sort = fields.object("sort")?;
    let hint = hint::take(fields)?;
    let collated = fields.object("collation")?;
    let variables = fields.object("let")?;
    let modification = take_modification(fields)?;
    let bypasses_validation = fields.truth("bypassDocumentValidation")?.unwrap_or_default();
    let keeps_timestamps = fields.boolean_not_null("bypassEmptyTsReplacement")?.unwrap_or_default();
    fields.integer("stmtId")?;
    fields.refuse(&["encryptionInformation", "sampleId", "isTimeseriesNamespace"])?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let mut request = Request::default();
    request.call.bypass_document_validation(bypasses_validation);
    request.call.bypass_empty_ts_replacement(keeps_timestamps);
    let modification = modification.check(&mut request)?;

    request.filter(filter.map(owned).transpose()?.unwrap_or_default());
    given(sort, |sort| request.sort(sort))?;
    given(projection.filter(|projection| !projection.is_empty()), |projection| request.projection(projection))?;
    given(variables, |variables| request.let_variables(variables))?;
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    request.call.interrupt = common.call.interrupt.clone();
    request.call.activity.clone_from(&common.call.activity);
    Ok(ParsedFindAndModify { scope: call.at.scope, collection, request, modification, common })
}

fn remove(scope: &Scope, collection: &str, request: &Request) -> Result<RawDocumentBuf> {
    let document = delete_one(scope, collection, request)?;
    let mut reply = Reply::default();
    reply.nest("lastErrorObject", |last| last.int("n", i32::from(document.is_some())));
    append_value(document.as_deref(), &mut reply);
    reply.finish()
}

fn update(scope: &Scope, collection: &str, request: &Request, change: &Change) -> Result<RawDocumentBuf> {
    let (outcome, document) = update_one(scope, collection, request, change)?;
    let mut reply = Reply::default();
    reply.nest("lastErrorObject", |last| {
        let existing = outcome.matched > 0;
        last.int("n", i32::from(existing || outcome.upserted.is_some()));
        last.boolean("updatedExisting", existing);
        if let Some(id) = &outcome.upserted {
            last.value("upserted", id.as_value());
        }
    });
    append_value(document.as_deref(), &mut reply);
    reply.finish()
}

fn append_value(document: Option<&[u8]>, reply: &mut Reply) {
    match document {
        Some(document) => reply.document("value", Doc::new(document)),
        None => reply.value("value", Value::NULL),
    }
}

/// The fields that define the modification. Their combination is checked later.
struct Wanted<'c> {
    remove: bool,
    update: Option<Value<'c>>,
    upsert: bool,
    new: bool,
    array_filters: Option<Vec<RawDocumentBuf>>,
}

fn take_modification<'c>(fields: &mut Fields<'c>) -> Result<Wanted<'c>> {
    Ok(Wanted {
        remove: fields.truth("remove")?.unwrap_or_default(),
        update: fields.any("update").map(modification).transpose()?,
        upsert: fields.truth("upsert")?.unwrap_or_default(),
        new: fields.truth("new")?.unwrap_or_default(),
        array_filters: fields.owned_objects("arrayFilters")?,
    })
}

impl Wanted<'_> {
    /// Checks the combination, and adds the options of an update to the request.
    fn check(self, request: &mut Request) -> Result<Modification> {
        let fault = match (&self.update, self.remove) {
            (None, false) => "Either an update or remove=true must be specified",
            (Some(_), true) => "Cannot specify both an update and remove=true",
            (None, true) if self.upsert => "Cannot specify both upsert=true and remove=true",
            (None, true) if self.new => {
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            }
            (None, true) if self.array_filters.is_some() => "Cannot specify arrayFilters and remove=true",
            (None, true) => return Ok(Modification::Remove),
            (Some(update), false) if update.as_array().is_some() && self.array_filters.is_some() => {
                "Cannot specify arrayFilters and a pipeline update"
            }
            (Some(update), false) => {
                request.update.array_filters = self.array_filters.unwrap_or_default();
                request.update.upsert = self.upsert;
                request.update.returns = if self.new { ReturnDocument::After } else { ReturnDocument::Before };
                let change = Change { update: Value::to_owned(*update), kind: UpdateKind::Either };
                return Ok(Modification::Update(change));
            }
        };
        Err(Error::invalid(Code::FAILED_TO_PARSE, fault))
    }
}
