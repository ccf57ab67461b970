use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Kind, OwnedValue, Value, validate},
};

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    explain::{ExplainedCommand, Purpose},
    fields::{Fields, given, missing, owned},
    hint,
    reply::Reply,
    statements::{self, Order, WriteErrors},
};
use crate::{
    Error, ExplainVerbosity, Hint, Result,
    api::update::{Change, target_query},
    call::{Request, Scope},
    call_context::CallContext,
    exec::Target,
    write::{UpdateKind, UpdateOutcome},
};

/// One of the statements of an `update`, or an update of a `bulkWrite`.
pub(super) struct Statement<'c> {
    filter: Doc<'c>,
    update: Value<'c>,
    constants: Option<Doc<'c>>,
    array_filters: Vec<RawDocumentBuf>,
    pub(super) target: Target,
    upsert: bool,
    sort: Option<Doc<'c>>,
    hint: Option<Hint>,
    collation: Option<Doc<'c>>,
}

/// `{update: collection, updates: [{q, u, multi, upsert, arrayFilters, hint, sort}, …], ordered}`: each statement is a
/// transaction of its own.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let ParsedUpdate { scope, collection, updates, variables, order, common, context } = parse(call)?;
    let (mut matched, mut modified, mut upserted) = (0_u64, 0_u64, Vec::new());
    let errors = WriteErrors::run(scope, &updates, order, |place, statement| {
        statements::check_retryable(&common, statement.target, "multi=true")?;
        let outcome = statement.run(scope, collection, variables, &context)?;
        matched += outcome.matched;
        modified += outcome.modified;
        if let Some(id) = outcome.upserted {
            matched += 1;
            upserted.push((place, id));
        }
        Ok(())
    })?;
    let mut reply = Reply::default();
    reply.count("n", matched);
    append_upserted(&upserted, &mut reply);
    reply.count("nModified", modified);
    errors.append_to(&mut reply);
    reply.finish()
}

/// Returns the plan for the targets of an `update` of one statement.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    let ParsedUpdate { scope, collection, updates, variables, common, context, .. } = parse(call)?;
    let statement = statements::only(&updates, "updates")?;
    let (request, change) = statement.request(variables, &context)?;
    let explain = request.explain(scope, collection, verbosity, |request, defined| {
        Ok(target_query(change.parse(request, defined, statement.target)?.query, statement.target))
    })?;
    Ok(ExplainedCommand { common, explain, purpose: Purpose::Update { upsert: statement.upsert } })
}

/// A parsed `update`.
struct ParsedUpdate<'c> {
    scope: &'c Scope,
    collection: &'c str,
    updates: Vec<Statement<'c>>,
    variables: Option<Doc<'c>>,
    order: Order,
    common: Common,
    context: CallContext,
}

fn parse(mut call: Call<'_>) -> Result<ParsedUpdate<'_>> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let updates = fields.parsed_objects("updates", parse_statement)?;
    let variables = fields.object("let")?;
    let order = Order::take(fields)?;
    let options = statements::take_common(fields, updates.as_ref().map_or(0, Vec::len))?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let context = common.within(options);
    let updates = statements::required(updates, "update", "updates")?;
    Ok(ParsedUpdate { scope: call.at.scope, collection, updates, variables, order, common, context })
}

fn parse_statement(statement: Doc<'_>) -> Result<Statement<'_>> {
    const OWNER: &str = "update.updates";
    let mut fields = Fields::read(OWNER, statement)?;
    let statement = Statement::take(&mut fields, OWNER, ["q", "u", "c"])?;
    fields.finish()?;
    Ok(statement)
}

fn append_upserted(upserted: &[(usize, OwnedValue)], reply: &mut Reply) {
    if upserted.is_empty() {
        return;
    }
    reply.array("upserted", |all| {
        for (nth, (place, id)) in upserted.iter().enumerate() {
            all.nest(&nth.to_string(), |one| {
                one.count("index", *place);
                one.value("_id", id.as_value());
            });
        }
    });
}

impl<'c> Statement<'c> {
    /// Reads the fields of a statement of `owner`. `q`, `u` and `c` are the names of its filter, update and variables.
    pub(super) fn take(fields: &mut Fields<'c>, owner: &str, [q, u, c]: [&str; 3]) -> Result<Self> {
        let filter = fields.object(q)?;
        let update = fields.any(u).map(modification).transpose()?;
        let constants = fields.object(c)?;
        let array_filters = fields.owned_objects("arrayFilters")?.unwrap_or_default();
        let hint = hint::take(fields)?;
        let multi = fields.boolean("multi")?.unwrap_or_default();
        let upsert = fields.boolean("upsert")?.unwrap_or_default();
        let collation = fields.object("collation")?;
        let sort = fields.object("sort")?;
        fields.refuse(&["upsertSupplied", "sampleId"])?;
        Ok(Self {
            filter: filter.ok_or_else(|| missing(owner, q))?,
            update: update.ok_or_else(|| missing(owner, u))?,
            constants,
            array_filters,
            target: if multi { Target::All } else { Target::One },
            upsert,
            sort,
            hint,
            collation,
        })
    }

    pub(super) fn run(
        &self,
        scope: &Scope,
        collection: &str,
        variables: Option<Doc<'_>>,
        call: &CallContext,
    ) -> Result<UpdateOutcome> {
        let (request, change) = self.request(variables, call)?;
        scope.write(call, |writer| {
            let update = change.parse(&request, &request.bind(writer.catalog(), collection)?, self.target)?;
            writer.update(collection, &update, call)
        })
    }

    fn request(&self, variables: Option<Doc<'_>>, call: &CallContext) -> Result<(Request, Change)> {
        if self.constants.is_some() && self.update.kind() != Kind::Array {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(Error::invalid(Code(51198), message).at("c"));
        }
        if self.sort.is_some_and(|sort| !sort.is_empty()) && self.target == Target::All {
            let message = "Cannot specify sort with multi=true";
            return Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("sort"));
        }
        let mut request = Request::new(owned(self.filter)?);
        given(self.sort, |sort| request.sort(sort))?;
        given(variables, |variables| request.let_variables(variables))?;
        request.update.constants = self.constants.map(owned).transpose()?;
        given(self.collation, |collation| request.collation(collation))?;
        request.hint = self.hint.clone();
        request.call = call.clone();
        request.update.array_filters.clone_from(&self.array_filters);
        request.update.upsert = self.upsert;
        Ok((request, Change { update: self.update.to_owned(), kind: UpdateKind::Either }))
    }
}

/// Checks that an update is a valid document or array, and returns it.
///
/// # Errors
/// Fails with `FailedToParse` (9) for another type.
pub(super) fn modification(update: Value<'_>) -> Result<Value<'_>> {
    match update.as_container() {
        Some(container) => {
            validate(container.bytes())?;
            Ok(update)
        }
        None => {
            let message = "Update argument must be either an object or an array";
            Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("u"))
        }
    }
}
