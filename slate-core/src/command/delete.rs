use bson::RawDocumentBuf;
use slate_query::{
    Code,
    number::Number,
    raw::{Doc, Value},
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
    api::{delete::delete_request, update::target_query},
    call::{Request, Scope},
    call_context::CallContext,
    exec::Target,
};

/// One of the statements of a `delete`, or a delete of a `bulkWrite`.
pub(super) struct Statement<'c> {
    pub(super) filter: Doc<'c>,
    pub(super) target: Target,
    pub(super) hint: Option<Hint>,
    pub(super) collation: Option<Doc<'c>>,
}

/// `{delete: collection, deletes: [{q, limit, hint}, …], ordered}`: each statement is a transaction of its own.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let ParsedDelete { scope, collection, deletes, variables, order, common } = parse(call)?;
    let mut deleted = 0;
    let errors = WriteErrors::run(scope, &deletes, order, |_, statement| {
        statements::check_retryable(&common, statement.target, "limit=0")?;
        deleted += statement.run(scope, collection, variables, &common.call)?;
        Ok(())
    })?;
    let mut reply = Reply::default();
    reply.count("n", deleted);
    errors.append_to(&mut reply);
    reply.finish()
}

/// Returns the plan for the targets of a `delete` of one statement.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    let ParsedDelete { scope, collection, deletes, variables, common, .. } = parse(call)?;
    let statement = statements::only(&deletes, "deletes")?;
    let request = statement.request(variables, &common.call)?;
    let explain = request.explain(scope, collection, verbosity, |request, defined| {
        Ok(target_query(request.parse_targets(defined, statement.target)?, statement.target))
    })?;
    Ok(ExplainedCommand { common, explain, purpose: Purpose::Delete })
}

/// A parsed `delete`.
struct ParsedDelete<'c> {
    scope: &'c Scope,
    collection: &'c str,
    deletes: Vec<Statement<'c>>,
    variables: Option<Doc<'c>>,
    order: Order,
    common: Common,
}

fn parse(mut call: Call<'_>) -> Result<ParsedDelete<'_>> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let deletes = fields.parsed_objects("deletes", Statement::parse)?;
    let variables = fields.object("let")?;
    let order = Order::take(fields)?;
    statements::take_common(fields, deletes.as_ref().map_or(0, Vec::len))?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let deletes = statements::required(deletes, "delete", "deletes")?;
    Ok(ParsedDelete { scope: call.at.scope, collection, deletes, variables, order, common })
}

impl<'c> Statement<'c> {
    fn parse(statement: Doc<'c>) -> Result<Self> {
        let mut fields = Fields::read("delete.deletes", statement)?;
        let filter = fields.object("q")?;
        let target = fields.any("limit").map(target).transpose()?;
        let hint = hint::take(&mut fields)?;
        let collation = fields.object("collation")?;
        fields.refuse(&["sampleId"])?;
        fields.finish()?;
        Ok(Self {
            filter: filter.ok_or_else(|| missing("delete.deletes", "q"))?,
            target: target.ok_or_else(|| missing("delete.deletes", "limit"))?,
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
    ) -> Result<u64> {
        let request = self.request(variables, call)?;
        let outcome = scope.write(call, |writer| {
            let deletion = delete_request(&request, &request.bind(writer.catalog(), collection)?, self.target)?;
            writer.delete(collection, &deletion, call)
        })?;
        Ok(outcome.deleted)
    }

    fn request(&self, variables: Option<Doc<'_>>, call: &CallContext) -> Result<Request> {
        let mut request = Request::new(owned(self.filter)?);
        given(self.collation, |collation| request.collation(collation))?;
        request.hint = self.hint.clone();
        given(variables, |variables| request.let_variables(variables))?;
        request.call = call.clone();
        Ok(request)
    }
}

/// Converts a limit: 0 means all matching documents, 1 the first. A value that is not a number counts as 0, as in MongoDB.
fn target(limit: Value<'_>) -> Result<Target> {
    let Some(limit) = Number::of(limit) else { return Ok(Target::All) };
    match limit.to_i64() {
        Some(0) => Ok(Target::All),
        Some(1) => Ok(Target::One),
        _ => {
            let message = format!("The limit field in delete objects must be 0 or 1. Got {}", limit.to_f64());
            Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("limit"))
        }
    }
}
