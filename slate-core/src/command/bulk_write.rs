use std::collections::BTreeMap;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, OwnedValue},
};

use super::{
    aggregate::take_cursor,
    call::Call,
    concern::Concerns,
    cursor::{CommandCursor, CursorOptions},
    delete,
    fields::{Fields, missing, owned},
    hint,
    reply::Reply,
    statements::{self, Order, WriteErrors, append_error},
    update,
};
use crate::{
    Error, Result, call::Scope, call_context::CallContext, document::borrowed, exec::Target, namespace,
    write::InsertMode,
};

const OPS: &str = "bulkWrite.ops";

/// One of the operations, and the position of its collection in `nsInfo`.
struct BulkOperation<'c> {
    collection: usize,
    write: Write<'c>,
}

enum Write<'c> {
    Insert(RawDocumentBuf),
    Update(Box<update::Statement<'c>>),
    Delete(delete::Statement<'c>),
}

/// The result of one operation.
enum Effect {
    Inserted,
    Updated { matched: u64, modified: u64, upserted: Option<OwnedValue> },
    Deleted(u64),
}

/// The counts of a reply, over all operations.
#[derive(Default)]
struct Sums {
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
}

/// `{bulkWrite: 1, ops: [{insert | update | delete: N, …}, …], nsInfo: [{ns}, …], ordered, errorsOnly}`: each operation is a
/// transaction of its own, on the collection at position `N` of `nsInfo`.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let operations = fields.parsed_objects("ops", BulkOperation::parse)?;
    let namespaces = fields.objects("nsInfo")?;
    let variables = fields.object("let")?;
    let order = Order::take(fields)?;
    let errors_only = fields.boolean("errorsOnly")?.unwrap_or_default();
    let batch = take_cursor(fields)?.flatten();
    let options = statements::take_common(fields, operations.as_ref().map_or(0, Vec::len))?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let context = common.within(options);
    let operations = statements::required(operations, "bulkWrite", "ops")?;
    let collections = collections(namespaces.ok_or_else(|| missing("bulkWrite", "nsInfo"))?)?;
    for (place, operation) in operations.iter().enumerate() {
        if operation.collection >= collections.len() {
            let message = format!("BulkWrite ops entry {place} has an invalid nsInfo index.");
            return Err(Error::invalid(Code::BAD_VALUE, message).at("nsInfo"));
        }
    }

    let scope = call.at.scope;
    // Before the writes, because this fails once the database is closed.
    let memory = scope.memory()?;
    let (mut sums, mut effects) = (Sums::default(), Vec::new());
    let errors = WriteErrors::run(scope, &operations, order, |place, operation| {
        let Some(collection) = collections.get(operation.collection) else { return Ok(()) };
        namespace::check(collection)?;
        statements::check_retryable(&common, operation.write.target(), "multi=true")?;
        let effect = operation.write.run(scope, collection, variables, &context)?;
        sums.add(&effect);
        if !errors_only {
            effects.push((place, effect));
        }
        Ok(())
    })?;
    let mut reply = Reply::default();
    let described = described(&operations, &effects, &errors)?;
    let cursor = CommandCursor::listing(described, "admin.$cmd.bulkWrite".into(), &common, &memory)?;
    call.at.first_batch(&mut reply, cursor, CursorOptions::in_batches(batch))?;
    reply.count("nErrors", errors.iter().len());
    reply.count("nInserted", sums.inserted);
    reply.count("nMatched", sums.matched);
    reply.count("nModified", sums.modified);
    reply.count("nUpserted", sums.upserted);
    reply.count("nDeleted", sums.deleted);
    reply.finish()
}

/// Returns one document for each effect and each error, in the order of their operations.
fn described(
    operations: &[BulkOperation<'_>],
    effects: &[(usize, Effect)],
    errors: &WriteErrors,
) -> Result<Vec<RawDocumentBuf>> {
    let effects = effects.iter().map(|(place, effect)| {
        let mut entry = Reply::default();
        entry.double("ok", 1.0);
        entry.count("idx", *place);
        effect.append_to(&mut entry);
        (*place, entry)
    });
    let errors = errors.iter().map(|(place, error)| {
        let mut entry = Reply::default();
        entry.double("ok", 0.0);
        entry.count("idx", place);
        append_error(error, &mut entry);
        entry.count("n", 0);
        if operations.get(place).is_some_and(|operation| matches!(operation.write, Write::Update(_))) {
            entry.count("nModified", 0);
        }
        (place, entry)
    });
    let described: BTreeMap<usize, Reply> = effects.chain(errors).collect();
    described.into_values().map(Reply::into_document).collect()
}

/// Returns the stored names of the collections, which may be in several databases. The operations on one with a reserved name fail.
///
/// # Errors
/// Fails with `InvalidNamespace` (73) for a name without a database and for an invalid one.
fn collections(namespaces: Vec<Doc<'_>>) -> Result<Vec<String>> {
    const OWNER: &str = "bulkWrite.nsInfo";
    let mut collections = Vec::with_capacity(namespaces.len());
    for info in namespaces {
        let mut fields = Fields::read(OWNER, info)?;
        let full = fields.string("ns")?.ok_or_else(|| missing(OWNER, "ns"))?;
        fields.refuse(&["collectionUUID", "encryptionInformation", "isTimeseriesNamespace"])?;
        fields.finish()?;
        let invalid =
            || Error::invalid(Code::INVALID_NAMESPACE, format!("Invalid namespace specified: '{full}'")).at("ns");
        let (of, collection) = full.split_once('.').ok_or_else(invalid)?;
        namespace::check_database(of)?;
        if collection.contains('$') {
            return Err(invalid());
        }
        let stored = namespace::stored(of, collection);
        if !collection.starts_with("system.") {
            namespace::check(&stored)?;
        }
        collections.push(stored.into_owned());
    }
    Ok(collections)
}

impl<'c> BulkOperation<'c> {
    fn parse(operation: Doc<'c>) -> Result<Self> {
        let mut fields = Fields::read(OPS, operation)?;
        let kind = fields.names().next().unwrap_or_default();
        let write: fn(&mut Fields<'c>) -> Result<Write<'c>> = match kind {
            "insert" => |fields| {
                let document = fields.object("document")?.ok_or_else(|| missing(OPS, "document"))?;
                Ok(Write::Insert(owned(document)?))
            },
            "update" => |fields| {
                let statement = update::Statement::take(fields, OPS, ["filter", "updateMods", "constants"])?;
                Ok(Write::Update(Box::new(statement)))
            },
            "delete" => |fields| {
                let filter = fields.object("filter")?.ok_or_else(|| missing(OPS, "filter"))?;
                let multi = fields.boolean("multi")?.unwrap_or_default();
                let (hint, collation) = (hint::take(fields)?, fields.object("collation")?);
                let target = if multi { Target::All } else { Target::One };
                Ok(Write::Delete(delete::Statement { filter, target, hint, collation }))
            },
            _ => {
                let message = format!("BSON field '{OPS}.{kind}' is an unknown field.");
                return Err(Error::invalid(Code::IDL_UNKNOWN_FIELD, message).at("ops"));
            }
        };
        let collection = fields.size(kind)?.ok_or_else(|| missing(OPS, kind))?;
        let write = write(&mut fields)?;
        fields.finish()?;
        Ok(Self { collection: usize::try_from(collection).unwrap_or(usize::MAX), write })
    }
}

impl Write<'_> {
    fn target(&self) -> Target {
        match self {
            Self::Insert(_) => Target::One,
            Self::Update(statement) => statement.target,
            Self::Delete(statement) => statement.target,
        }
    }

    fn run(&self, scope: &Scope, collection: &str, variables: Option<Doc<'_>>, call: &CallContext) -> Result<Effect> {
        match self {
            Self::Insert(document) => {
                let inserted = scope.write(call, |writer| {
                    writer.insert(collection, &borrowed(std::slice::from_ref(document)), InsertMode::Ordered, call)
                })?;
                inserted.refused.into_iter().next().map_or(Ok(Effect::Inserted), |(_, error)| Err(error))
            }
            Self::Update(statement) => {
                let outcome = statement.run(scope, collection, variables, call)?;
                Ok(Effect::Updated { matched: outcome.matched, modified: outcome.modified, upserted: outcome.upserted })
            }
            Self::Delete(statement) => statement.run(scope, collection, variables, call).map(Effect::Deleted),
        }
    }
}

impl Effect {
    fn append_to(&self, entry: &mut Reply) {
        match self {
            Self::Inserted => entry.count("n", 1),
            Self::Updated { matched, modified, upserted } => {
                entry.count("n", matched + u64::from(upserted.is_some()));
                entry.count("nModified", *modified);
                if let Some(id) = upserted {
                    entry.nest("upserted", |entry| entry.value("_id", id.as_value()));
                }
            }
            Self::Deleted(deleted) => entry.count("n", *deleted),
        }
    }
}

impl Sums {
    fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::Inserted => self.inserted += 1,
            Effect::Updated { matched, modified, upserted } => {
                self.matched += matched;
                self.modified += modified;
                self.upserted += u64::from(upserted.is_some());
            }
            Effect::Deleted(deleted) => self.deleted += deleted,
        }
    }
}
