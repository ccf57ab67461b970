//! Commands from their grammar, and messages of the wire protocol with them.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Database, OperatorKind};

use super::{
    Verdict,
    database::right,
    input::{Input, listed},
};

/// The kind of a command's field.
#[derive(Clone, Copy)]
enum Field {
    Filter,
    Update,
    Sort,
    Projection,
    Pipeline,
    Documents,
    Number,
    Flag,
    Path,
    Collation,
    /// The options of a cursor.
    Cursor,
    Updates,
    Deletes,
    Indexes,
    /// Operations of `bulkWrite`; `Collections` are the collections that they name.
    Operations,
    Collections,
    Namespace,
    /// Anything.
    Any,
}

use Field::{
    Any, Collation, Collections, Cursor, Deletes, Documents, Filter, Flag, Indexes, Namespace, Number, Operations,
    Path, Pipeline, Projection, Sort, Update, Updates,
};

/// The commands that `docs/operators.md` lists, with some of their fields.
const COMMANDS: &[(&str, &[(&str, Field)])] = &[
    ("aggregate", &[("pipeline", Pipeline), ("cursor", Cursor), ("let", Any), ("collation", Collation)]),
    ("bulkWrite", &[("ops", Operations), ("nsInfo", Collections), ("ordered", Flag), ("errorsOnly", Flag)]),
    ("collMod", &[("index", Any), ("validator", Filter), ("validationLevel", Any)]),
    ("collStats", &[]),
    ("compact", &[("dryRun", Flag)]),
    ("count", &[("query", Filter), ("limit", Number), ("skip", Number), ("collation", Collation)]),
    ("create", &[("validator", Filter), ("collation", Collation), ("viewOn", Path), ("pipeline", Pipeline)]),
    ("createIndexes", &[("indexes", Indexes)]),
    ("dbStats", &[("scale", Number)]),
    ("delete", &[("deletes", Deletes), ("ordered", Flag)]),
    ("distinct", &[("key", Path), ("query", Filter), ("collation", Collation)]),
    ("drop", &[]),
    ("dropDatabase", &[]),
    ("dropIndexes", &[("index", Any)]),
    ("explain", &[("verbosity", Any)]),
    (
        "find",
        &[
            ("filter", Filter),
            ("sort", Sort),
            ("projection", Projection),
            ("limit", Number),
            ("skip", Number),
            ("batchSize", Number),
            ("singleBatch", Flag),
            ("collation", Collation),
            ("hint", Sort),
            ("let", Any),
        ],
    ),
    (
        "findAndModify",
        &[
            ("query", Filter),
            ("update", Update),
            ("sort", Sort),
            ("new", Flag),
            ("upsert", Flag),
            ("fields", Projection),
            ("remove", Flag),
        ],
    ),
    ("getMore", &[("collection", Path), ("batchSize", Number)]),
    ("insert", &[("documents", Documents), ("ordered", Flag)]),
    ("killCursors", &[("cursors", Any)]),
    ("listCollections", &[("filter", Filter), ("nameOnly", Flag)]),
    ("listDatabases", &[("filter", Filter), ("nameOnly", Flag)]),
    ("listIndexes", &[("cursor", Cursor)]),
    ("ping", &[]),
    ("renameCollection", &[("to", Namespace), ("dropTarget", Flag)]),
    ("update", &[("updates", Updates), ("ordered", Flag)]),
    ("validate", &[("full", Flag)]),
];

/// Commands on the whole database, whose first value is a number.
const ON_DATABASES: [&str; 7] =
    ["bulkWrite", "dbStats", "dropDatabase", "getMore", "listCollections", "listDatabases", "ping"];

const NAMES: [&str; 4] = ["c", "d", "e", "c.d"];

/// Executes a command of the grammar, possibly with damaged bytes, on a database with a few documents.
pub(super) fn command(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let Ok(command) = RawDocumentBuf::try_from(&made(&mut input)) else { return Verdict::Refused };
    let bytes = input.perhaps_damaged(command.as_bytes());
    let Ok(command) = RawDocumentBuf::from_bytes(bytes) else { return Verdict::Refused };
    let db = right(Database::open("memory:"));
    right(db.collection("c").insert_many(&[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": [1, { "b": 2 }] }]).run());
    let verdict = Verdict::of(&db.command(&command));
    assert!(right(db.verify().run()).is_sound(), "a command leaves the database sound: {command:?}");
    verdict
}

/// Parses a message with a command: alone, with a separate section of documents, as `OP_QUERY`, or compressed; possibly with damaged
/// bytes.
pub(super) fn message(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let mut command = made(&mut input);
    command.insert("$db", "test");
    let document = |document: &Document| document.to_vec().unwrap_or_default();
    let kind = input.byte() % 4;
    let apart = [document(&doc! { "_id": 1 }), document(&doc! { "_id": 2, "a": "x" })].concat();
    let length = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX).to_le_bytes();
    let body = match kind {
        // Flags, and a section that is the command.
        0 | 1 => {
            let mut body = [vec![0; 5], document(&command)].concat();
            if kind == 1 {
                let name = b"documents\0";
                body.push(1);
                body.extend_from_slice(&length(4 + name.len() + apart.len()));
                body.extend_from_slice(name);
                body.extend_from_slice(&apart);
            }
            body
        }
        // A query: flags, the namespace, how many documents are skipped and returned.
        2 => [&[0; 4][..], b"admin.$cmd\0", &[0; 4], &(-1_i32).to_le_bytes(), &document(&command)].concat(),
        // Compressed with the compressor "noop": the op code, the length, the compressor.
        _ => {
            let inner = [vec![0; 5], document(&command)].concat();
            [&2013_i32.to_le_bytes()[..], &length(inner.len()), &[0], &inner].concat()
        }
    };
    // The numbers by which `slate_server::fuzz::message` selects the op code: query, compressed, message.
    let op_code = match kind {
        0 | 1 => 2,
        2 => 0,
        _ => 1,
    };
    let bytes = input.perhaps_damaged(&[vec![op_code], body].concat());
    if slate_server::fuzz::message(&bytes) { Verdict::Accepted } else { Verdict::Refused }
}

/// Returns the command that the input contains as a text, or one of the grammar.
fn made(input: &mut Input<'_>) -> Document {
    if let Some(Bson::Document(command)) = input.text_value() {
        return command;
    }
    let at = usize::from(input.byte()) % COMMANDS.len();
    let Some((name, fields)) = COMMANDS.get(at) else { return Document::new() };
    let first: Bson = match *name {
        "explain" => Bson::Document(doc! { "find": "c", "filter": field(Filter, input) }),
        "renameCollection" => "test.c".into(),
        name if ON_DATABASES.contains(&name) => 1.into(),
        _ => input.choice(&NAMES, "c").into(),
    };
    let mut command = doc! { *name: first };
    let chosen = input.byte();
    for (at, (name, kind)) in fields.iter().enumerate() {
        // The first field is the one that the command needs.
        if at == 0 || chosen & (1 << (at % 8)) != 0 {
            command.insert(*name, field(*kind, input));
        }
    }
    command
}

fn field(kind: Field, input: &mut Input<'_>) -> Bson {
    let filters = || listed(OperatorKind::Filter.names());
    match kind {
        Filter => input.document(&filters(), 2).into(),
        Update => input.document(&listed(OperatorKind::Update.names()), 1).into(),
        Sort => doc! { input.choice(&["a", "a.b", "_id", "$natural"], "a"): input.choice(&[1, -1], 1) }.into(),
        Projection => input.document(&[], 3).into(),
        Pipeline => {
            let stages = listed(OperatorKind::Stage.names());
            let count = input.byte() % 3;
            let stage = |_| {
                let name = input.choice(&stages, "$match");
                Bson::Document(doc! { name: input.document(&filters(), 1) })
            };
            Bson::Array((0..count).map(stage).collect())
        }
        Documents => {
            let count = 1 + input.byte() % 3;
            Bson::Array((0..count).map(|_| Bson::Document(input.document(&[], 1))).collect())
        }
        Number => i32::from(input.byte() % 8).into(),
        Flag => input.byte().is_multiple_of(2).into(),
        Path => input.choice(&["a", "a.b", "_id", "c", "$a", ""], "a").into(),
        Collation => doc! { "locale": input.choice(&["en", "de", "simple", "xx"], "en"), "strength": 2 }.into(),
        Cursor => doc! { "batchSize": i32::from(input.byte() % 4) }.into(),
        Updates => {
            let (q, u) = (field(Filter, input), field(Update, input));
            Bson::Array(vec![doc! { "q": q, "u": u, "multi": field(Flag, input), "upsert": field(Flag, input) }.into()])
        }
        Deletes => Bson::Array(vec![doc! { "q": field(Filter, input), "limit": i32::from(input.byte() % 2) }.into()]),
        Indexes => {
            let mut index = doc! { "key": field(Sort, input), "name": input.choice(&["a_1", "b", ""], "b") };
            if input.byte().is_multiple_of(4) {
                index.insert("partialFilterExpression", field(Filter, input));
            }
            if input.byte().is_multiple_of(4) {
                index.insert("unique", field(Flag, input));
            }
            Bson::Array(vec![index.into()])
        }
        Operations => {
            let operation = match input.byte() % 3 {
                0 => doc! { "insert": 0, "document": input.document(&[], 1) },
                1 => doc! { "update": 0, "filter": field(Filter, input), "updateMods": field(Update, input) },
                _ => doc! { "delete": 0, "filter": field(Filter, input), "multi": field(Flag, input) },
            };
            Bson::Array(vec![operation.into()])
        }
        Collections => Bson::Array(vec![doc! { "ns": field(Namespace, input) }.into()]),
        Namespace => input.choice(&["test.c", "test.d", "other.c", "c", "."], "test.c").into(),
        Any => input.value(&[], 1),
    }
}
