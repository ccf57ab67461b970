//! `explain`, in MongoDB's shape, so that tools can draw the stages, together with Slate's own drawing of the plan.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_query::{Code, raw::Doc};

use super::{
    aggregate,
    call::{Call, CommandScope, Running},
    common::Common,
    concern::Concerns,
    count,
    databases::{StoredNames, shown_plan},
    delete, distinct, find, find_and_modify,
    reply::Reply,
    update,
};
use crate::{Error, ExecutionStats, Explain, ExplainVerbosity, Result, document::number, explain::PlanShape, plan};

/// The verbosity of an `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    Planner,
    Execution,
    /// The same as [`Execution`](Self::Execution), because no other plan is executed.
    AllPlans,
}

impl Verbosity {
    fn read(verbosity: Option<&str>) -> Result<Self> {
        match verbosity {
            Some("queryPlanner") => Ok(Self::Planner),
            Some("executionStats") => Ok(Self::Execution),
            None | Some("allPlansExecution") => Ok(Self::AllPlans),
            Some(verbosity) => {
                let message =
                    format!("Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value.");
                Err(Error::invalid(Code::BAD_VALUE, message).at("verbosity"))
            }
        }
    }
}

impl From<Verbosity> for ExplainVerbosity {
    fn from(verbosity: Verbosity) -> Self {
        match verbosity {
            Verbosity::Planner => Self::QueryPlanner,
            Verbosity::Execution | Verbosity::AllPlans => Self::ExecutionStats,
        }
    }
}

/// The plan of a command.
pub(super) struct ExplainedCommand {
    pub(super) common: Common,
    pub(super) explain: Explain,
    pub(super) purpose: Purpose,
}

/// What a command does with the rows of its plan: the top stage of MongoDB's drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Return,
    Count,
    Update { upsert: bool },
    Delete,
}

/// `{explain: command, verbosity}`: the plan of a read or of the targets of a write, and the counts of its stages. Nothing is written.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let command = call.target.as_document().ok_or_else(|| {
        Error::invalid(Code::TYPE_MISMATCH, "what is to be explained is not a command's document").at("explain")
    })?;
    let verbosity = call.fields.string("verbosity")?;
    let outer = call.database()?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let verbosity = Verbosity::read(verbosity)?;
    let end = common.max_time.and_then(|within| common.began.checked_add(within));
    let running = Running { end, ..call.at.running };
    let mut inner = Call::read(CommandScope { command, database: outer, running, ..call.at })?;
    let database = inner.database()?;
    if outer.is_some_and(|outer| database != Some(outer)) {
        return Err(Error::invalid(Code::INVALID_NAMESPACE, "Mismatched $db in explain command").at("explain"));
    }
    let stored = StoredNames::of(&inner, database)?;
    stored.apply(&mut inner);
    let collection = inner.target.as_str().unwrap_or_default().to_owned();
    let explained = match inner.name {
        "aggregate" => return aggregate::explain(inner, verbosity),
        "count" => count::explain(inner, verbosity.into())?,
        "delete" => delete::explain(inner, verbosity.into())?,
        "distinct" => distinct::explain(inner, verbosity.into())?,
        "find" => find::explain(inner, verbosity.into())?,
        "findAndModify" | "findandmodify" => find_and_modify::explain(inner, verbosity.into())?,
        "update" => update::explain(inner, verbosity.into())?,
        other if !super::is_known(other) => return Err(super::unknown(other)),
        other => {
            return Err(Error::invalid(Code::ILLEGAL_OPERATION, format!("Cannot explain cmd: {other}")).at("explain"));
        }
    };
    report(command, &collection, &explained, verbosity)
}

/// Returns the reply for a command that has a plan.
pub(super) fn report(
    command: Doc<'_>,
    collection: &str,
    explained: &ExplainedCommand,
    verbosity: Verbosity,
) -> Result<RawDocumentBuf> {
    let ExplainedCommand { common, explain, purpose } = explained;
    let planned = explain.shape();
    let planner = doc! {
        "namespace": common.full_name(collection),
        "parsedQuery": plan::with_operators(filter_of(command)),
        "indexFilterSet": false,
        "maxIndexedOrSolutionsReached": false,
        "maxIndexedAndSolutionsReached": false,
        "maxScansToExplodeReached": false,
        "winningPlan": purpose.over(planned, None),
        "rejectedPlans": [],
    };
    let mut parts = doc! { "queryPlanner": planner };
    let executed = explain.execution_stats().zip(explain.executed_shape());
    if let Some((stats, shape)) = executed {
        parts.insert("executionStats", purpose.execution(stats, shape, verbosity));
    }
    let mut reply = doc! { "explainVersion": "1" };
    let stages = executed.map_or(&planned.stages, |(_, shape)| &shape.stages);
    match stages.first() {
        None => reply.extend(parts),
        Some(first) => {
            // These stages produce documents without a collection.
            let reads_nothing = ["$documents", "$collStats", "$indexStats"].iter().any(|name| first.contains_key(name));
            let cursor = doc! { "$cursor": parts };
            let cursor = if reads_nothing { None } else { Some(cursor) };
            reply.insert("stages", cursor.into_iter().chain(stages.iter().cloned()).collect::<Vec<_>>());
        }
    }
    reply.insert("slate", own(explain));
    finish(reply, command)
}

/// Returns the reply for an `aggregate` without a plan: its stages as they were sent.
pub(super) fn report_stages(command: Doc<'_>, stages: &[RawDocumentBuf]) -> Result<RawDocumentBuf> {
    let stages: Vec<Document> =
        stages.iter().map(Document::try_from).collect::<Result<_, _>>().map_err(Error::conversion)?;
    finish(doc! { "explainVersion": "1", "stages": stages }, command)
}

fn finish(mut reply: Document, command: Doc<'_>) -> Result<RawDocumentBuf> {
    shown_plan(&mut reply);
    let mut out = Reply::default();
    out.fields(&reply)?;
    out.document("command", command);
    out.finish()
}

impl Purpose {
    /// Returns the drawn plan; for a write below its stage `UPDATE` or `DELETE`.
    fn over(self, shape: &PlanShape, stats: Option<ExecutionStats>) -> Document {
        let mut stage = match self {
            Self::Return | Self::Count => return shape.plan.clone(),
            Self::Update { .. } => doc! { "stage": "UPDATE" },
            Self::Delete => doc! { "stage": "DELETE" },
        };
        if let Some(stats) = stats {
            stage.insert("nReturned", 0);
            let found = number(stats.rows);
            match self {
                Self::Update { upsert } => {
                    stage.insert("nMatched", found);
                    stage.insert("nWouldUpsert", i32::from(upsert && stats.rows == 0));
                }
                _ => drop(stage.insert("nWouldDelete", found)),
            }
        }
        // MongoDB's stage of a write of one document stops by itself: it has no `LIMIT` below.
        let input = match shape.plan.get_document("inputStage") {
            Ok(below) if shape.plan.get_str("stage").is_ok_and(|stage| stage == "LIMIT") => below,
            _ => &shape.plan,
        };
        stage.insert("inputStage", input.clone());
        stage
    }

    fn execution(self, stats: ExecutionStats, shape: &PlanShape, verbosity: Verbosity) -> Document {
        let returned = match self {
            Self::Return => shape.rows,
            // The top stage returns no document.
            Self::Count | Self::Update { .. } | Self::Delete => 0,
        };
        let mut execution = doc! {
            "executionSuccess": true,
            "nReturned": number(returned),
            "executionTimeMillis": number(stats.time.as_millis()),
            "totalKeysExamined": number(shape.keys),
            "totalDocsExamined": number(shape.documents),
            "executionStages": self.over(shape, Some(stats)),
        };
        if verbosity == Verbosity::AllPlans {
            execution.insert("allPlansExecution", Bson::Array(Vec::new()));
        }
        execution
    }
}

/// Returns Slate's drawing of the plan, with counts that MongoDB does not have.
fn own(explain: &Explain) -> Document {
    let mut own = doc! { "candidates": number(explain.candidates()), "plan": explain.to_document() };
    if let Some(stats) = explain.execution_stats() {
        own.insert("rows", number(stats.rows));
        own.insert("bytesRead", number(stats.bytes_read));
        own.insert("spills", number(stats.spills));
        own.insert("spilledBytes", number(stats.spilled_bytes));
        if let Some(bytes) = stats.storage_bytes {
            own.insert("storageBytesRead", number(bytes));
        }
        if let Some(round_trips) = stats.round_trips {
            own.insert("roundTrips", number(round_trips));
        }
        if let Some(requests) = stats.requests {
            own.insert("requests", number(requests));
        }
    }
    own
}

/// Returns the filter of a command as it was sent.
fn filter_of(command: Doc<'_>) -> Document {
    let first_of = |name: &str| {
        let list = command.get(name).and_then(|list| list.as_array())?;
        list.elements().next()?.value.as_document()
    };
    let filter = ["filter", "query"]
        .into_iter()
        .find_map(|name| command.get(name)?.as_document())
        .or_else(|| first_of("pipeline")?.get("$match")?.as_document())
        .or_else(|| first_of("updates").or_else(|| first_of("deletes"))?.get("q")?.as_document());
    filter.map(plan::bson).unwrap_or_default()
}
