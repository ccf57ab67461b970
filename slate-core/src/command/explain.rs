use bson::{Bson, Document, RawDocumentBuf};
use slate_query::{Code, raw::OwnedValue};

use super::{
    aggregate,
    call::Call,
    concern::Concerns,
    count,
    databases::{StoredNames, shown_plan},
    distinct, find,
    reply::Reply,
};
use crate::{Error, ExplainVerbosity, Result};

/// `{explain: {find | aggregate | count | distinct: …}, verbosity: "queryPlanner" | "executionStats"}`: the plan, and what its nodes
/// did during execution.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let command = call.target.as_document().ok_or_else(|| {
        Error::invalid(Code::TYPE_MISMATCH, "what is to be explained is not a command's document").at("explain")
    })?;
    let verbosity = call.fields.string("verbosity")?;
    let outer = call.database()?;
    call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let verbosity = match verbosity {
        None | Some("queryPlanner") => ExplainVerbosity::QueryPlanner,
        Some("executionStats") => ExplainVerbosity::ExecutionStats,
        Some(verbosity @ "allPlansExecution") => {
            return Err(Error::unsupported_by_name(verbosity).at("verbosity"));
        }
        Some(verbosity) => {
            let message =
                format!("Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value.");
            return Err(Error::invalid(Code::BAD_VALUE, message).at("verbosity"));
        }
    };
    let mut inner = Call::read(call.at, command)?;
    let stored = StoredNames::of(&inner, inner.database()?.or(outer))?;
    stored.apply(&mut inner);
    let (name, collection) = (inner.name, inner.target.as_str().unwrap_or_default().to_owned());
    let (common, explain) = match name {
        "aggregate" => aggregate::explain(inner, verbosity)?,
        "find" => find::explain(inner, verbosity)?,
        "count" => count::explain(inner, verbosity)?,
        "distinct" => distinct::explain(inner, verbosity)?,
        other if super::known(other).is_none() => return Err(super::unknown(other)),
        other => return Err(Error::unsupported_by_name(&format!("explain of {other}")).at("explain")),
    };
    let mut reply = Reply::default();
    reply.nest("queryPlanner", |planner| {
        planner.text("namespace", &common.full_name(&collection));
        planner.value("winningPlan", drawn(explain.plan().clone()).as_value());
        planner.count("candidates", explain.candidates());
    });
    if let Some(stats) = explain.execution_stats() {
        reply.nest("executionStats", |execution| {
            execution.boolean("executionSuccess", true);
            execution.count("nReturned", stats.rows);
            execution.count("executionTimeMillis", stats.time.as_millis());
            execution.count("totalKeysExamined", stats.keys_examined);
            execution.count("totalDocsExamined", stats.documents_examined);
            execution.count("totalBytesRead", stats.bytes_read);
            execution.count("spills", stats.spills);
            execution.count("spilledBytes", stats.spilled_bytes);
            if let Some(bytes) = stats.storage_bytes {
                execution.count("storageBytesRead", bytes);
            }
            execution.value("executionStages", drawn(explain.to_document()).as_value());
        });
    }
    reply.document("command", command);
    reply.finish()
}

/// Returns a plan with the names that clients use.
fn drawn(mut plan: Document) -> OwnedValue {
    shown_plan(&mut plan);
    OwnedValue::from(Bson::Document(plan))
}
