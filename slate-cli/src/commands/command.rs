use std::io::Write;

use bson::{Bson, Document, doc};
use clap::Args;
use slate_core::Access;

use super::{Run, documents};
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Failure, Result},
    message::message,
    output,
    session::{self, Session},
};

/// The commands that only read; `aggregate` only if its pipeline does not write.
const READING: [&str; 10] = [
    "aggregate",
    "collStats",
    "count",
    "dbStats",
    "distinct",
    "explain",
    "find",
    "listCollections",
    "listIndexes",
    "ping",
];

/// The commands that always create a missing database. [`creates`](Command::creates) checks the others.
const CREATING: [&str; 3] = ["create", "createIndexes", "insert"];

/// Run a command of MongoDB, given as a document
///
/// For what has no command of its own, such as collMod, which sets validators and hides indexes:
/// '{ collMod: "users", validator: { age: { $gte: 0 } } }'. Prints the reply. The exit code is 3 if the reply lists writeErrors.
#[derive(Clone, Debug, Args)]
pub(crate) struct Command {
    /// The command
    #[arg(value_parser = documents::query, value_name = "DOCUMENT")]
    command: Document,
    /// Write every type, as canonical extended JSON
    #[arg(long)]
    canonical: bool,
}

impl Command {
    fn only_reads(&self, name: &str) -> bool {
        let stages = self.command.get_array("pipeline").into_iter().flatten().filter_map(Bson::as_document);
        READING.contains(&name) && !documents::write(stages)
    }
}

impl Command {
    /// Returns whether the command creates a missing database: whether it may store new documents or definitions.
    fn creates(&self, name: &str) -> bool {
        let upserts = |document: &Document| matches!(document.get("upsert"), Some(Bson::Boolean(true)));
        let documents = |field| self.command.get_array(field).into_iter().flatten().filter_map(Bson::as_document);
        match name {
            "update" => documents("updates").any(upserts),
            "findAndModify" | "findandmodify" => upserts(&self.command),
            "bulkWrite" => documents("ops").any(|op| op.contains_key("insert") || upserts(op)),
            // `$documents` reads no collection, and a later stage may write one.
            "aggregate" => documents("pipeline").next().is_some_and(|stage| stage.contains_key("$documents")),
            _ => CREATING.contains(&name),
        }
    }
}

/// Closes the server's cursor of a reply, if more batches would follow, and reports that the reply is only the first.
fn end_cursor(target: &Endpoint, reply: &Document) -> Result<()> {
    let Ok(cursor) = reply.get_document("cursor") else { return Ok(()) };
    let (Ok(id), Ok(full_name)) = (cursor.get_i64("id"), cursor.get_str("ns")) else { return Ok(()) };
    if id == 0 || !matches!(target, Endpoint::Server(_)) {
        return Ok(());
    }
    let collection = full_name.split_once('.').map_or("", |(_, collection)| collection);
    target.run(&doc! { "killCursors": collection, "cursors": [id] })?;
    message!("this is the first batch: `find` and `aggregate` print all documents");
    Ok(())
}

impl Run for Command {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let Some(name) = self.command.keys().next() else {
            return Err(Failure::usage("the command is empty").hint("its first field names it: { listCollections: 1 }"));
        };
        let access = if self.only_reads(name) {
            Access::ReadOnly
        } else if self.creates(name) {
            Access::CreateOrOpen
        } else {
            Access::Open
        };
        let target = session.endpoint(access)?;
        let reply = target.run(&self.command)?;
        end_cursor(&target, &reply)?;
        let refused = reply.contains_key("writeErrors");
        let reply = Bson::Document(reply);
        let text = match self.canonical {
            true => output::canonical(reply),
            false if session::on_terminal() => output::indented(reply),
            false => output::relaxed(reply),
        };
        writeln!(session.out(), "{text}")?;
        Ok(if refused { Exit::Incomplete } else { Exit::Success })
    }
}
