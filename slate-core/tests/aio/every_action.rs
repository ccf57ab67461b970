//! Every action of the async API is awaited on every store. The list of actions is read from the sources, so that the test fails
//! for an action that it does not know.

use std::{cell::RefCell, collections::BTreeSet, ops::ControlFlow};

use bson::{DateTime, Document};
use slate_core::{
    Activity, BulkWrite, CollectionOptions, Count, Delete, Distinct, ExistingCollections, Expire, FullDocument,
    FullDocumentBeforeChange, Migrations, Update, Validator, View, Watch,
    aio::{
        Call, ChangeStream, Commands, Cursor, Documents as Stream, ReadCollection, RunningCommand, Snapshot,
        Transaction,
    },
};

use super::*;

type Aggregate = slate_core::Aggregate<Document>;
type CopyTo = slate_core::CopyTo<'static>;
type CreateIndex = slate_core::CreateIndex<'static>;
type Find = slate_core::Find<RawDocumentBuf>;
type FindOne = slate_core::FindOne<RawDocumentBuf>;
type FindOneAndDelete = slate_core::FindOneAndDelete<RawDocumentBuf>;
type FindOneAndUpdate = slate_core::FindOneAndUpdate<RawDocumentBuf>;
type InsertMany = slate_core::InsertMany<'static>;
type Verify = slate_core::Verify<'static>;

/// The actions that were awaited, as `Type::method`.
#[derive(Default)]
struct Awaited(RefCell<BTreeSet<String>>);

impl Awaited {
    fn add(&self, of: &str, method: &str) {
        self.0.borrow_mut().insert(format!("{of}::{method}"));
    }
}

/// Awaits a method of a type and records its name.
macro_rules! act {
    ($awaited:ident, $of:ident :: $method:ident ($($argument:expr),*)) => {{
        let result = $of::$method($($argument),*).await;
        $awaited.add(stringify!($of), stringify!($method));
        result.unwrap()
    }};
}

/// Calls methods of a builder and records their names, and that of the method that made it. The result is still to be awaited.
macro_rules! build {
    ($awaited:ident, $of:ident :: $method:ident ($($argument:expr),*) -> $builder:ident: $($setter:ident ($($value:expr),*))*) => {{
        let call: Call<$builder> = $of::$method($($argument),*);
        $awaited.add(stringify!($of), stringify!($method));
        $(
            let call: Call<$builder> = call.$setter($($value),*);
            $awaited.add(stringify!($builder), stringify!($setter));
        )*
        call
    }};
}

/// Awaits a builder by the method that ends it, `run` or another one, and by itself (`IntoFuture`), and records both.
macro_rules! end {
    ($awaited:ident, $builder:ident: $call:expr $(, $end:ident($($argument:expr),*))*) => {{
        let call = $call;
        $(
            call.clone().$end($($argument),*).await.unwrap();
            $awaited.add(stringify!($builder), stringify!($end));
        )*
        $awaited.add(stringify!($builder), "await");
        call.await.unwrap()
    }};
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn every_action_is_awaited() {
    on_one_thread(|db, _| async move {
        let awaited = Awaited::default();
        let all = async {
            collections(&awaited, &db).await;
            reads(&awaited, &db).await;
            writes(&awaited, &db).await;
            transactions(&awaited, &db).await;
            databases(&awaited, &db).await;
        };
        tokio::time::timeout(MINUTE, all).await.expect("no action waits for ever");
        let (awaited, listed) = (awaited.0.take(), actions());
        assert_eq!(listed.difference(&awaited).collect::<Vec<_>>(), [""; 0], "actions that are never awaited");
        assert_eq!(awaited.difference(&listed).collect::<Vec<_>>(), [""; 0], "actions that do not exist");
    });
}

async fn collections(awaited: &Awaited, db: &Database) {
    let users: Documents = db.collection("users");
    act!(awaited, Collection::create(&users));
    let others: Documents = db.collection("others");
    act!(awaited, Collection::create_with(&others, &CollectionOptions::default()));
    act!(awaited, Collection::set_validator(&users, Some(Validator::new(doc! { "_id": { "$gte": 0 } }))));
    let index = || Index::on(doc! { "n": 1 });
    let create = build!(awaited, Collection::create_index(&users, index()) -> CreateIndex: deadline(MINUTE) cancel(CancelToken::new()) progress(|_| {}));
    assert_eq!(end!(awaited, CreateIndex: create), "n_1");
    assert_eq!(act!(awaited, Collection::create_indexes(&users, [Index::on(doc! { "a": 1 })])), ["a_1"]);
    assert!(!act!(awaited, Collection::hide_index(&users, "n_1")), "it was not hidden");
    assert!(act!(awaited, Collection::show_index(&users, "n_1")));
    assert!(act!(awaited, Collection::drop_index(&users, "a_1")));
    act!(awaited, Collection::analyze(&users));
    let expire = build!(awaited, Database::expire(db) -> Expire: at(DateTime::now()) limit(1) deadline(MINUTE) cancel(CancelToken::new()));
    assert_eq!(end!(awaited, Expire: expire).documents, 0);
    act!(awaited, Database::enable_changes(db, slate_core::ChangeLog::new()));
    assert!(act!(awaited, Database::logs_changes(db)));
    act!(awaited, Collection::keep_images(&users, true));
    let watch = build!(awaited, Database::watch(db, [] as [Document; 0]) -> Watch:);
    let token = watch.await.unwrap().resume_token();
    let watch = build!(awaited, Collection::watch(&users, [] as [Document; 0]) -> Watch:
        full_document(FullDocument::WhenAvailable)
        full_document_before_change(FullDocumentBeforeChange::WhenAvailable) expanded_events()
        start_at(bson::Timestamp { time: 1, increment: 1 }) start_after(&token) resume_after(&token)
        collation(doc! { "locale": "en" }) let_variables(doc! { "x": 1 }) deadline(MINUTE)
        cancel(CancelToken::new()));
    let mut stream: ChangeStream = end!(awaited, Watch: watch);
    users.insert_one(&rawdoc! { "_id": 100 }).await.unwrap();
    assert_eq!(ChangeStream::next(&mut stream).await.unwrap().unwrap().operation_type(), "insert");
    awaited.add("ChangeStream", "next");
    let mut live = users.find(doc! {}).live().await.unwrap();
    assert!(matches!(live.next().await, Some(Ok(slate_core::LiveChange::Added { position: 0, .. }))));
    awaited.add("Find", "live");
    awaited.add("LiveQuery", "next");
    drop((stream, live));
    users.delete_one(doc! { "_id": 100 }).await.unwrap();
    act!(awaited, Database::disable_changes(db));
    let view: Documents = db.collection("view");
    let of = |name| View::new(name, [doc! { "$match": { "n": 1 } }]);
    view.create_with(&CollectionOptions::new().view(&of("others"))).await.unwrap();
    act!(awaited, Collection::set_view(&view, &of("users")));
    assert!(act!(awaited, Collection::drop(&view)));
    let moved = act!(awaited, Collection::rename(&users, "moved", RenameTarget::MustNotExist));
    moved.rename("users", RenameTarget::MustNotExist).await.unwrap();
    assert_eq!(act!(awaited, ReadCollection::list_indexes(&users)).len(), 1);
    assert!(act!(awaited, ReadCollection::exists(&users)));
}

async fn reads(awaited: &Awaited, db: &Database) {
    let users: Documents = db.collection("users");
    users.insert_many(&[rawdoc! { "_id": 1, "n": 1 }, rawdoc! { "_id": 2, "n": 2 }]).await.unwrap();
    assert!(act!(awaited, ReadCollection::find_by_id(&users, 1)).is_some());
    assert_eq!(act!(awaited, ReadCollection::estimated_document_count(&users)), 2);
    assert_eq!(act!(awaited, ReadCollection::stats(&users)).documents, 2);
    let (plan, token) = (ExplainVerbosity::QueryPlanner, CancelToken::new);
    let verify =
        build!(awaited, ReadCollection::verify(&users) -> Verify: deadline(MINUTE) cancel(token()) progress(|_| {}));
    assert!(end!(awaited, Verify: verify).is_sound());

    let find = build!(awaited, ReadCollection::find(&users, doc! { "n": { "$gte": 1 } }) -> Find:
        sort(doc! { "n": 1 }) projection(doc! { "n": 1 }) skip(0) limit(5) hint(Hint::Name("n_1".into())) deadline(MINUTE)
        cancel(token()) memory_limit(1 << 20) allow_disk_use(true) let_variables(doc! {}) collation(doc! { "locale": "simple" }));
    assert_eq!(find.clone().count().await.unwrap(), 2);
    awaited.add("Find", "count");
    assert_eq!(users.find(doc! {}).distinct("n").await.unwrap().len(), 2);
    awaited.add("Find", "distinct");
    let mut rows = end!(awaited, Find: find, explain(plan), cursor(), collect(), first());
    assert!(Stream::next(&mut rows).await.is_some());
    awaited.add("Documents", "next");
    let mut cursor = users.find(doc! {}).cursor().await.unwrap();
    assert!(act!(awaited, Cursor::advance(&mut cursor)));

    let one = build!(awaited, ReadCollection::find_one(&users, doc! { "n": 1 }) -> FindOne:
        sort(doc! { "n": 1 }) projection(doc! { "n": 1 }) skip(0) hint(Hint::Name("n_1".into())) deadline(MINUTE)
        cancel(token()) memory_limit(1 << 20) allow_disk_use(true) let_variables(doc! {}) collation(doc! { "locale": "simple" }));
    assert!(end!(awaited, FindOne: one, explain(plan)).is_some());

    let pipeline = [doc! { "$match": { "n": 1 } }];
    let aggregate = build!(awaited, ReadCollection::aggregate(&users, pipeline) -> Aggregate:
        hint(Hint::Name("n_1".into())) deadline(MINUTE) cancel(token()) memory_limit(1 << 20) allow_disk_use(true)
        let_variables(doc! {}) collation(doc! { "locale": "simple" }) bypass_document_validation(true));
    let numbers = aggregate.clone().with_type::<RawDocumentBuf>().collect().await.unwrap();
    awaited.add("Aggregate", "with_type");
    assert_eq!(numbers, [rawdoc! { "_id": 1, "n": 1 }]);
    let mut rows = end!(awaited, Aggregate: aggregate, explain(plan), cursor(), collect(), first());
    assert!(rows.next().await.is_some());
    let own = build!(awaited, Database::aggregate(db, [doc! { "$documents": [{ "n": 1 }] }]) -> Aggregate:);
    assert_eq!(own.collect().await.unwrap(), [doc! { "n": 1 }]);

    let count = build!(awaited, ReadCollection::count_documents(&users, doc! { "n": 1 }) -> Count:
        skip(0) limit(5) collation(doc! { "locale": "simple" }) hint(Hint::Name("n_1".into())) deadline(MINUTE) cancel(token())
        memory_limit(1 << 20));
    assert_eq!(end!(awaited, Count: count, explain(plan)), 1);

    let distinct = build!(awaited, ReadCollection::distinct(&users, "n", doc! {}) -> Distinct:
        sort(doc! { "n": -1 }) skip(0) limit(5) collation(doc! { "locale": "simple" }) hint(Hint::Name("n_1".into()))
        deadline(MINUTE) cancel(token()) memory_limit(1 << 20));
    assert_eq!(distinct.clone().run_as::<i32>().await.unwrap(), [2, 1]);
    awaited.add("Distinct", "run_as");
    assert_eq!(end!(awaited, Distinct: distinct, explain(plan)), [2.into(), 1.into()]);
}

async fn writes(awaited: &Awaited, db: &Database) {
    let (users, token) = (db.collection::<RawDocumentBuf>("users"), CancelToken::new);
    let (plan, simple) = (ExplainVerbosity::QueryPlanner, || doc! { "locale": "simple" });
    assert_eq!(act!(awaited, Collection::insert_one(&users, &rawdoc! { "_id": 3, "a": [1] })), bson::Bson::Int32(3));
    let four = [rawdoc! { "_id": 4 }];
    let insert = build!(awaited, Collection::insert_many(&users, &four) -> InsertMany:
        ordered(false) all_or_nothing() bypass_document_validation(true) bypass_empty_ts_replacement(true) deadline(MINUTE) cancel(token()));
    assert_eq!(end!(awaited, InsertMany: insert).inserted_ids.len(), 1);
    let three = || doc! { "_id": 3 };
    let mark = || doc! { "$set": { "a.$[low]": 5 } };
    let update = build!(awaited, Collection::update_one(&users, three(), mark()) -> Update:
        upsert() array_filters([doc! { "low": { "$lt": 5 } }]) sort(doc! { "_id": 1 }) hint(Hint::Name("_id_".into()))
        deadline(MINUTE) cancel(token()) memory_limit(1 << 20) let_variables(doc! {}) collation(simple())
        bypass_document_validation(true) bypass_empty_ts_replacement(true));
    assert_eq!(end!(awaited, Update: update, explain(plan)).modified, 1);
    let update = build!(awaited, Collection::update_many(&users, three(), doc! { "$inc": { "n": 1 } }) -> Update:);
    assert_eq!(update.await.unwrap().modified, 1);
    let replace = build!(awaited, Collection::replace_one(&users, three(), &rawdoc! { "n": 9 }) -> Update:);
    assert_eq!(replace.await.unwrap().modified, 1);
    let delete = build!(awaited, Collection::delete_one(&users, doc! { "_id": 4 }) -> Delete:
        hint(Hint::Name("_id_".into())) deadline(MINUTE) cancel(token()) memory_limit(1 << 20) let_variables(doc! {})
        collation(simple()));
    assert_eq!(end!(awaited, Delete: delete, explain(plan)), 1);
    let delete = build!(awaited, Collection::delete_many(&users, doc! { "_id": 4 }) -> Delete:);
    assert_eq!(delete.await.unwrap(), 0);

    let change = build!(awaited, Collection::find_one_and_update(&users, three(), doc! { "$set": { "a": [1] } }) -> FindOneAndUpdate:
        upsert() return_document(ReturnDocument::After) sort(doc! { "_id": 1 }) projection(doc! { "n": 1 })
        hint(Hint::Name("_id_".into())) deadline(MINUTE) cancel(token()) memory_limit(1 << 20) let_variables(doc! {})
        collation(simple()) bypass_document_validation(true) bypass_empty_ts_replacement(true));
    assert_eq!(end!(awaited, FindOneAndUpdate: change), Some(rawdoc! { "_id": 3, "n": 9 }));
    let elements = users.find_one_and_update(three(), mark());
    assert!(elements.array_filters([doc! { "low": 1 }]).await.unwrap().is_some());
    awaited.add("FindOneAndUpdate", "array_filters");
    let replace =
        build!(awaited, Collection::find_one_and_replace(&users, three(), &rawdoc! { "n": 8 }) -> FindOneAndUpdate:);
    assert!(replace.await.unwrap().is_some());
    let delete = build!(awaited, Collection::find_one_and_delete(&users, three()) -> FindOneAndDelete:
        sort(doc! { "_id": 1 }) projection(doc! { "n": 1 }) hint(Hint::Name("_id_".into())) deadline(MINUTE)
        cancel(token()) memory_limit(1 << 20) let_variables(doc! {}) collation(simple()));
    assert_eq!(end!(awaited, FindOneAndDelete: delete), Some(rawdoc! { "_id": 3, "n": 8 }));

    assert_eq!(act!(awaited, Collection::upsert_many(&users, &[rawdoc! { "_id": 5 }])).inserted, 1);
    assert_eq!(act!(awaited, Collection::merge_many(&users, [doc! { "_id": 5, "n": 5 }])).modified, 1);
    let bulk = build!(awaited, Collection::bulk_write(&users, [WriteOperation::delete_many(doc! { "n": 5 })]) -> BulkWrite:
        ordered(false) bypass_document_validation(true) bypass_empty_ts_replacement(true) deadline(MINUTE) cancel(token()));
    assert_eq!(end!(awaited, BulkWrite: bulk).deleted, 1);
    let operations = [("users", WriteOperation::insert_one(doc! { "_id": 6 }))];
    let bulk = build!(awaited, Database::bulk_write(db, operations) -> BulkWrite:);
    assert_eq!(bulk.await.unwrap().inserted_ids.len(), 1);
}

async fn transactions(awaited: &Awaited, db: &Database) {
    let options = TransactionOptions::default();
    let tx = act!(awaited, Database::begin(db));
    act!(awaited, Transaction::commit(tx));
    let tx = act!(awaited, Database::begin_with(db, &options));
    act!(awaited, Transaction::commit_with(tx, Durability::Deferred));
    act!(awaited, Transaction::rollback(db.begin().await.unwrap()));
    let count = |tx: &slate_core::Transaction| tx.collection::<RawDocumentBuf>("users").count_documents(doc! {}).run();
    assert_eq!(act!(awaited, Database::transact(db, count)), 3);
    assert_eq!(act!(awaited, Database::transact_with(db, &options, count)), 3);
    let count = async |tx: Arc<Transaction>| tx.collection::<RawDocumentBuf>("users").count_documents(doc! {}).await;
    assert_eq!(act!(awaited, Database::transact_async(db, count)), 3);
    assert_eq!(act!(awaited, Database::transact_async_with(db, &options, count)), 3);
}

async fn databases(awaited: &Awaited, db: &Database) {
    assert_eq!(act!(awaited, Database::list_collection_names(db)), ["others", "users"]);
    assert_eq!(act!(awaited, Database::list_database_names(db)), ["test"]);
    assert_eq!(act!(awaited, Database::list_collections(db)).len(), 2);
    let step = Migrations::new().step("nothing", |_| Ok(()));
    act!(awaited, Database::migrate(db, &step));
    assert_eq!(act!(awaited, Database::schema_version(db)), 1);
    act!(awaited, Database::size(db));
    assert!(act!(awaited, Database::stats(db)).collections.len() >= 2);
    act!(awaited, Database::flush(db));
    act!(awaited, Database::compact(db));
    assert!(act!(awaited, Database::compact_while(db, |_, _| ControlFlow::Continue(()))).is_continue());
    let refused = Database::collect_garbage(db, Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    awaited.add("Database", "collect_garbage");
    assert_eq!(act!(awaited, Database::resume_index_builds(db)), 0);
    act!(awaited, Database::command(db, &rawdoc! { "ping": 1 }));
    act!(awaited, Commands::run(&db.commands(), &rawdoc! { "ping": 1 }));
    act!(
        awaited,
        Commands::run_shared(
            &db.commands(),
            &Arc::new(rawdoc! { "ping": 1 }),
            RunningCommand::new(&CancelToken::new(), &Activity::default())
        )
    );
    let reply = |_: &slate_core::Commands, reply: RawDocumentBuf| Ok::<_, slate_core::Error>(reply);
    let (token, activity) = (CancelToken::new(), Activity::default());
    let running = RunningCommand::new(&token, &activity);
    act!(
        awaited,
        Commands::run_then(
            &db.commands(),
            &Arc::new(rawdoc! { "ping": 1 }),
            running,
            reply,
            slate_core::Error::is_retryable
        )
    );
    assert_eq!(act!(awaited, Database::run_blocking(db, |db| Ok(db.store()))), db.store());
    let verify = build!(awaited, Database::verify(db) -> Verify:);
    assert!(verify.await.unwrap().is_sound());
    let snapshot: Snapshot = act!(awaited, Database::snapshot(db));
    assert_eq!(snapshot.collection::<RawDocumentBuf>("users").count_documents(doc! {}).await.unwrap(), 3);
    drop(snapshot);

    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    act!(awaited, Database::backup(db, &copy));
    let again = folder.path().join("again");
    act!(awaited, Database::backup_while(db, &again, |_, _| ControlFlow::Continue(())));
    let restored = act!(awaited, Database::open(&format!("{}:{}", db.store(), copy.display())));
    assert_eq!(restored.list_collection_names().await.unwrap(), db.list_collection_names().await.unwrap());
    let target = act!(awaited, Database::open_config(&Config::new("memory:")));
    let copy = build!(awaited, Database::copy_to(db, target.as_blocking()) -> CopyTo:
        deadline(MINUTE) cancel(CancelToken::new()) existing(ExistingCollections::Replace) progress(|_| {}));
    // The documents of `users`, and the version that `migrate` recorded.
    assert_eq!(end!(awaited, CopyTo: copy).documents, 4);
    act!(awaited, Database::open_with(slate_core::Database::builder("memory:")));
    act!(awaited, Database::drop_database(&target));
    act!(awaited, Database::close(target));
}

/// A blocking method is missing in the async API only where another one takes its place.
#[test]
fn every_blocking_method_has_an_async_one() {
    let blocking = [
        include_str!("../../src/api/collection.rs"),
        include_str!("../../src/api/collection_definition.rs"),
        include_str!("../../src/api/database.rs"),
        include_str!("../../src/api/database_changes.rs"),
        include_str!("../../src/api/database_files.rs"),
        include_str!("../../src/api/migrations.rs"),
        include_str!("../../src/api/snapshot.rs"),
        include_str!("../../src/api/transaction.rs"),
    ];
    let names = |sources: &[&str]| -> BTreeSet<String> {
        let items = sources.iter().flat_map(|source| items(source));
        items.flat_map(|item| methods(&item)).map(|method| method.name).collect()
    };
    let (blocking, awaited) = (names(&blocking), names(&SOURCES));
    assert!(blocking.contains("Collection::insert_one") && blocking.len() > 70, "{blocking:?}");
    let missing: Vec<_> =
        blocking.iter().filter(|name| !name.starts_with("Migrations::") && !awaited.contains(*name)).collect();
    assert_eq!(missing, ["Database::builder", "Database::with_store"], "`open_with` and `From` take their place");
}

/// The files of `aio` with public methods.
const SOURCES: [&str; 8] = [
    include_str!("../../src/aio/call.rs"),
    include_str!("../../src/aio/change_stream.rs"),
    include_str!("../../src/aio/collection.rs"),
    include_str!("../../src/aio/commands.rs"),
    include_str!("../../src/aio/database.rs"),
    include_str!("../../src/aio/documents.rs"),
    include_str!("../../src/aio/transact_async.rs"),
    include_str!("../../src/aio/transaction.rs"),
];

/// Reads the actions from the sources of `aio`: the public methods that return something to await, as `Type::method`.
fn actions() -> BTreeSet<String> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/aio")).unwrap();
    let public = files.filter(|file| {
        let source = std::fs::read_to_string(file.as_ref().unwrap().path()).unwrap();
        source
            .lines()
            .map(str::trim_start)
            .any(|line| line.starts_with("pub async fn") || (line.starts_with("pub fn") && !line.contains('$')))
    });
    assert_eq!(public.count(), SOURCES.len(), "each file with public methods is read");
    let methods = SOURCES.iter().flat_map(|source| items(source)).flat_map(|item| methods(&item));
    methods.filter(|method| method.is_awaited).map(|method| method.name).collect()
}

/// A public method.
struct Method {
    /// `Type::method`
    name: String,
    is_awaited: bool,
}

/// Returns the items of a source file that is formatted: they begin and end without indentation.
fn items(source: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let item = items.last_mut().unwrap();
        item.push_str(line);
        item.push('\n');
        if !line.starts_with(' ') && line.ends_with(['}', ';']) {
            items.push(String::new());
        }
    }
    items
}

fn methods(item: &str) -> Vec<Method> {
    let awaited = |name| Method { name, is_awaited: true };
    let item = item.trim_start().lines().skip_while(|line| line.starts_with("#[") || line.is_empty());
    let item = item.collect::<Vec<_>>().join("\n");
    if let Some(rows) = item.strip_prefix("builders! {") {
        return rows.split(';').flat_map(builder).map(awaited).collect();
    }
    if let Some(rows) = item.strip_prefix("own_setters! {") {
        return rows.split(';').flat_map(own_setters).map(awaited).collect();
    }
    if let Some(builders) = item.strip_prefix("streams! {") {
        let builders = builders.trim_end_matches('}').split_whitespace();
        let ends = ["cursor", "collect", "first"];
        return builders.flat_map(|of| ends.map(|end| awaited(format!("{of}::{end}")))).collect();
    }
    let header = item.lines().next().unwrap_or_default();
    if !header.starts_with("impl") || header.contains(" for ") {
        return Vec::new();
    }
    let of = header.trim_end_matches(" {").rsplit_once(' ').map_or("", |(_, of)| of);
    let of = of.strip_prefix("Call<").unwrap_or(of).split(['<', '>']).next().unwrap();
    if of == "B" {
        // `run` of every builder, which is recorded as "await".
        return Vec::new();
    }
    let mut methods = Vec::new();
    let mut list = None;
    let mut lines = item.lines();
    while let Some(line) = lines.next() {
        // How a list of methods is executed: `    methods! { write "Collection":`.
        let begins = line.strip_prefix("    methods! { ").and_then(|rest| rest.split(' ').next());
        list = begins.or(list).filter(|_| line != "    }");
        let listed = line.strip_prefix("        ").filter(|line| list.is_some() && !line.starts_with(' '));
        let written = line.strip_prefix("    pub fn ").or_else(|| line.strip_prefix("    pub async fn "));
        let Some(found) = listed.or(written) else { continue };
        let name = found.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        let mut signature = line.to_owned();
        while listed.is_none() && !signature.ends_with('{') {
            signature.push_str(lines.next().unwrap());
        }
        let is_executed = listed.is_some() && !matches!(list, Some("handles" | "values"));
        let is_setter = header.contains("Call<") && signature.contains("-> Self");
        let returns = ["async fn", "-> AsyncTransaction<", "-> Operation<", "-> Call<"]
            .iter()
            .any(|part| signature.contains(part));
        methods.push(Method { name: format!("{of}::{name}"), is_awaited: is_executed || is_setter || returns });
    }
    methods
}

/// `[T: …] Find<T>: stream -> Documents<T> [explain], sort projection`
fn builder(row: &str) -> Vec<String> {
    let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((head, setters)) = row.split_once(", ") else { return Vec::new() };
    let of = head.split_once("] ").unwrap().1.split(['<', ':']).next().unwrap();
    let explain = head.contains("[explain]").then_some("explain");
    setters.split(' ').chain(explain).chain(["await"]).map(|method| format!("{of}::{method}")).collect()
}

/// `Expire: at(now: DateTime) limit(documents: u64)`
fn own_setters(row: &str) -> Vec<String> {
    let Some((of, setters)) = row.split_once(':') else { return Vec::new() };
    let of = of.trim().split('<').next().unwrap();
    let mut depth = 0;
    let names: String = setters
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(') - i32::from(*c == ')');
            depth == 0
        })
        .map(|c| if c == ')' { ' ' } else { c })
        .collect();
    names.split_whitespace().map(|name| format!("{of}::{name}")).collect()
}
