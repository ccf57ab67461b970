//! Runs one case.

use bson::{Bson, Document};

use super::{
    bench::{self, Bench, Refused},
    case::{Case, Expected, Index},
    command, compare, indexed,
    report::Used,
};

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Failed as expected, with the code if it differs from MongoDB's.
    Refused {
        other_code: Option<i32>,
    },
    /// Failed because of an unsupported feature.
    Unsupported(String),
    Failed(String),
}

type Run<T> = Result<T, Outcome>;

/// Runs a case with additional indexes over these keys.
pub(crate) fn run(bench: &Bench, case: &Case, more_indexes: &[Document]) -> Outcome {
    lay_out(bench, case, more_indexes).and_then(|()| command(bench, case, None)).unwrap_or_else(|outcome| outcome)
}

/// Runs a case whose command must use the index with these keys, and returns what its plan reads. Returns `None` if the
/// documents cannot be indexed by these keys (parallel arrays), or a wildcard index does not serve the query.
pub(crate) fn run_hinted(
    bench: &Bench,
    case: &Case,
    candidates: &[Document],
    keys: &Document,
) -> Option<(Outcome, Used)> {
    if let Err(outcome) = lay_out(bench, case, candidates) {
        return Some((outcome, Used::Collection));
    }
    let index = plain_index(case, keys);
    if !command::is_default(keys) && bench.command(&command::create_index(&index)).is_err() {
        return None;
    }
    let hint = command::hint(&index);
    let plan = bench.command(&command::explain(case, &hint)?).map(Bson::Document);
    if plan.is_err() && indexed::is_wildcard(keys) {
        return None;
    }
    let used = if plan.is_ok_and(|plan| reads_index(&plan)) { Used::Index } else { Used::Collection };
    Some((command(bench, case, Some(&hint)).unwrap_or_else(|outcome| outcome), used))
}

/// Returns whether a stage of the plan is an index scan.
fn reads_index(plan: &Bson) -> bool {
    match plan {
        Bson::Document(plan) => {
            plan.get_str("stage").is_ok_and(|stage| stage == "IXSCAN")
                || plan.iter().any(|(_, value)| reads_index(value))
        }
        Bson::Array(stages) => stages.iter().any(reads_index),
        _ => false,
    }
}

/// Creates the case's collections and indexes.
fn lay_out(bench: &Bench, case: &Case, more_indexes: &[Document]) -> Run<()> {
    bench.empty().map_err(|refused| unexpected(&refused, "emptying the database"))?;
    for command in command::collections(case) {
        bench.command(&command).map_err(|refused| unexpected(&refused, "inserting the documents"))?;
    }
    for index in &case.indexes {
        match (bench.command(&command::create_index(index)), &case.expected) {
            (Ok(_), _) => {}
            (Err(refused), Expected::Refusal(code)) => return Err(refusal(&refused, *code)),
            (Err(refused), Expected::Answer { .. }) => return Err(unexpected(&refused, "creating an index")),
        }
    }
    for keys in more_indexes {
        // Runs the case without the index if the documents cannot be indexed by it.
        let _ = bench.command(&command::create_index(&plain_index(case, keys)));
    }
    Ok(())
}

fn plain_index(case: &Case, keys: &Document) -> Index {
    Index { collection: case.collection.clone(), keys: keys.clone(), options: Document::new() }
}

fn command(bench: &Bench, case: &Case, hint: Option<&Bson>) -> Run<Outcome> {
    let command = command::main(case, hint).ok_or_else(|| Outcome::Unsupported(case.operation.clone()))?;
    match &case.expected {
        Expected::Refusal(code) => refuse(bench, case, &command, *code),
        Expected::Answer { values, reply } => answer(bench, case, &command, values.as_deref(), reply.as_ref()),
    }
}

fn refuse(bench: &Bench, case: &Case, command: &Document, code: i32) -> Run<Outcome> {
    let everything = command::everything(case);
    let before = bench.rows(&case.collection, &everything);
    let refused = match bench.command(command) {
        Ok(reply) => {
            return Ok(Outcome::Failed(format!("did not fail (expected {code}): {}", text(Bson::Document(reply)))));
        }
        Err(refused) => refused,
    };
    if case.writes_one()
        && let (Ok(before), Ok(after)) = (before, bench.rows(&case.collection, &everything))
        && !compare::values(&after, &before, &case.rules)
    {
        return Ok(Outcome::Failed("the failed write changed the collection".into()));
    }
    Ok(refusal(&refused, code))
}

fn answer(
    bench: &Bench,
    case: &Case,
    command: &Document,
    values: Option<&[Bson]>,
    reply: Option<&Document>,
) -> Run<Outcome> {
    let found = match perform(bench, case, command) {
        Ok(found) => found,
        Err(_) if case.may_be_refused && is_left_as_expected(bench, case, values) => return Ok(Outcome::Passed),
        Err(refused) => return Err(unexpected(&refused, "the command")),
    };
    if let Some(expected) = reply
        && !compare::reply(&found.reply, expected, &case.rules)
    {
        return Ok(differs("the reply", Bson::Document(found.reply), Bson::Document(expected.clone())));
    }
    let Some(expected) = values else { return Ok(Outcome::Passed) };
    let found = match found.values {
        Some(values) => values,
        None => after_write(bench, case).map_err(|refused| unexpected(&refused, "the find after the write"))?,
    };
    if compare::values(&found, expected, &case.rules) {
        return Ok(Outcome::Passed);
    }
    Ok(differs("the answer", Bson::Array(found), Bson::Array(expected.to_vec())))
}

struct Answer {
    reply: Document,
    /// The result of a read. The effect of a write is checked afterwards.
    values: Option<Vec<Bson>>,
}

fn perform(bench: &Bench, case: &Case, command: &Document) -> Result<Answer, Refused> {
    if matches!(case.operation.as_str(), "find" | "aggregate") {
        let rows = bench.rows(&case.collection, command)?;
        return Ok(Answer { reply: Document::new(), values: Some(rows) });
    }
    let reply = match &case.expected {
        // A command may succeed although some of its writes fail.
        Expected::Answer { reply: Some(reply), .. } if reply.contains_key("ok") => {
            let reply = bench.reply(command)?;
            match bench::write_error(&reply).filter(|refused| refused.unsupported.is_some()) {
                Some(refused) => return Err(refused),
                None => reply,
            }
        }
        _ => bench.command(command)?,
    };
    let values = match case.operation.as_str() {
        // The expectation has an int32 for any type of the count.
        "count" => Some(reply.get("n").and_then(compare::count).map(Bson::Int32).into_iter().collect()),
        "distinct" => Some(reply.get_array("values").cloned().unwrap_or_default()),
        _ => None,
    };
    Ok(Answer { reply, values })
}

/// Returns the result of the find after a write.
fn after_write(bench: &Bench, case: &Case) -> Result<Vec<Bson>, Refused> {
    let command = command::after(case).unwrap_or_else(|| command::everything(case));
    bench.rows(&case.collection, &command)
}

fn is_left_as_expected(bench: &Bench, case: &Case, expected: Option<&[Bson]>) -> bool {
    after_write(bench, case)
        .is_ok_and(|found| expected.is_none_or(|expected| compare::values(&found, expected, &case.rules)))
}

/// An unsupported feature fails for another reason than the expected one.
fn refusal(refused: &Refused, code: i32) -> Outcome {
    if let Some(name) = refused.unsupported.as_ref().filter(|_| refused.code != code) {
        return Outcome::Unsupported(name.clone());
    }
    Outcome::Refused { other_code: (refused.code != code).then_some(refused.code) }
}

fn unexpected(refused: &Refused, during: &str) -> Outcome {
    match &refused.unsupported {
        Some(name) => Outcome::Unsupported(name.clone()),
        None => Outcome::Failed(format!("{during} was refused: {} {}", refused.code, refused.message)),
    }
}

fn differs(what: &str, found: Bson, expected: Bson) -> Outcome {
    Outcome::Failed(format!("{what} differs\n    found    {}\n    expected {}", text(found), text(expected)))
}

fn text(value: Bson) -> String {
    let text = value.into_canonical_extjson().to_string();
    match text.char_indices().nth(1_000) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
