//! Several processes and one redb database: readers beside a writer, and programs that migrate. The other processes are this
//! test program.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{Access, Config, Database, Durability, ErrorKind, Index, Migrations, Sharing, Transaction};

/// The URL of the database that the second process opens.
const URL: &str = "SLATE_TEST_SECOND_PROCESS";
/// What the second process does: `read`, `write` or `migrate`.
const ROLE: &str = "SLATE_TEST_ROLE";
/// The number of the last commit that the second process watches for.
const LAST_ROUND: i32 = 300;
/// What the second process writes before each of its answers.
const ANSWER: &str = "answer: ";

fn answer(text: &str) {
    println!("\n{ANSWER}{text}");
}

/// The second process.
#[test]
fn second_process() {
    let Ok(url) = std::env::var(URL) else { return };
    match &*std::env::var(ROLE).unwrap() {
        "read" => read(&url),
        "write" => write(&url),
        "migrate" => migrate(&url),
        "hold" => hold(&url),
        other => panic!("{other}"),
    }
}

/// Inserts a document for each line, and answers when it is committed.
fn write(url: &str) {
    let db = Database::builder(url).sharing(Sharing::WithReaders).open().unwrap();
    let c = db.collection::<Document>("c");
    answer("open");
    for (n, _) in std::io::stdin().lines().enumerate() {
        c.insert_one(&doc! { "n": i32::try_from(n).unwrap() }).unwrap();
        answer("written");
    }
}

/// Commits a document that is not prepared for a fast recovery, and keeps the database open until it is killed.
fn hold(url: &str) {
    let db = Database::builder(url).durability(Durability::Deferred).open().unwrap();
    db.collection::<Document>("c").insert_one(&doc! { "_id": 1, "n": 1 }).unwrap();
    db.flush().unwrap();
    db.collection::<Document>("c").insert_one(&doc! { "_id": 2, "n": 2 }).unwrap();
    answer("open");
    std::io::stdin().lines().for_each(drop);
}

/// Opens the database as soon as no other process has it open, and migrates it.
fn migrate(url: &str) {
    let db = loop {
        match Database::open(url) {
            Ok(db) => break db,
            Err(error) if error.kind() == ErrorKind::Locked => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    };
    let increment = |tx: &Transaction| {
        let counters = tx.collection::<Document>("counters");
        counters.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).upsert().run().map(drop)
    };
    let migrations = (0..20).fold(Migrations::new(), |steps, n| steps.step(&format!("step {n}"), increment));
    let migrated = db.migrate(&migrations).unwrap();
    assert_eq!(migrated.version, 20);
    answer(&migrated.applied.len().to_string());
}

/// Answers a line with what is in the database.
fn read(url: &str) {
    let db = match Database::builder(url).access(Access::ReadOnly).open() {
        Ok(db) => db,
        Err(error) => return answer(&format!("{:?}: {error}", error.kind())),
    };
    answer("open");
    let c = db.collection::<Document>("c");
    let mut snapshot = db.snapshot().unwrap();
    for line in std::io::stdin().lines() {
        match &*line.unwrap() {
            "latest" => {
                let count = c.count_documents(doc! {}).run().unwrap();
                let last = c.find_one(doc! {}).sort(doc! { "n": -1 }).run().unwrap();
                let last = last.map_or(-1, |last| last.get_i32("n").unwrap());
                let indexes = c.list_indexes().unwrap().len();
                let by_id = c.find_by_id(last).unwrap().is_some();
                answer(&format!("{count} documents, last {last}, {indexes} indexes, found {by_id}"));
            }
            "snapshot" => {
                let kept = snapshot.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap();
                snapshot = db.snapshot().unwrap();
                answer(&format!("{kept} documents"));
            }
            "write" => answer(&format!("{:?}", c.insert_one(&doc! { "_id": -1 }).unwrap_err().kind())),
            "watch" => {
                // Each commit gives all documents one number, higher than the last.
                let (mut last, mut seen) = (-1, 0);
                while last < LAST_ROUND {
                    let documents =
                        c.find(doc! { "n": { "$gte": 0 } }).projection(doc! { "round": 1 }).collect().unwrap();
                    let round = documents[0].get_i32("round").unwrap();
                    assert!(round >= last && documents.len() == 50, "{last} {documents:?}");
                    assert!(
                        documents.iter().all(|document| document.get_i32("round").unwrap() == round),
                        "{documents:?}"
                    );
                    seen += i32::from(round != last);
                    last = round;
                }
                answer(&format!("{}", seen > 1));
            }
            "verify" => answer(&format!("{}", db.verify().run().unwrap().is_sound())),
            other => panic!("{other}"),
        }
    }
}

struct SecondProcess {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl SecondProcess {
    fn start(role: &str, url: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["second_process::second_process", "--exact", "--nocapture"])
            .env(URL, url)
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix(ANSWER) {
                    let _ = sender.send(answer.to_owned());
                }
            }
        });
        Self { process, input, answers }
    }

    fn answer(&self) -> String {
        self.answers.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        self.answer()
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn end(self) {
        let Self { mut process, input, .. } = self;
        drop(input);
        assert!(process.wait().unwrap().success());
    }
}

fn redb_in(folder: &tempfile::TempDir) -> String {
    format!("redb:{}", folder.path().join("db.slate").display())
}

#[test]
fn a_second_process_reads_what_the_first_one_commits() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let db = Database::builder(&url).sharing(Sharing::WithReaders).durability(Durability::Deferred).open().unwrap();
    let c = db.collection::<Document>("c");
    let mut reader = SecondProcess::start("read", &url);
    assert_eq!(reader.answer(), "open");
    assert_eq!(reader.ask("latest"), "0 documents, last -1, 0 indexes, found false");
    for n in 0..50 {
        c.insert_one(&doc! { "_id": n, "n": n }).unwrap();
        assert_eq!(reader.ask("latest"), format!("{} documents, last {n}, 0 indexes, found true", n + 1));
    }
    c.create_index(Index::on(doc! { "n": -1 })).run().unwrap();
    assert_eq!(reader.ask("latest"), "50 documents, last 49, 1 indexes, found true");

    // A snapshot keeps its commit while pages are freed and written again.
    assert_eq!(reader.ask("snapshot"), "0 documents");
    for round in 0..20 {
        c.update_many(doc! {}, doc! { "$set": { "round": round, "text": "x".repeat(2_000) } }).run().unwrap();
    }
    c.delete_many(doc! { "_id": { "$gte": 10 } }).run().unwrap();
    assert_eq!(reader.ask("snapshot"), "50 documents");
    assert_eq!(reader.ask("snapshot"), "10 documents");
    assert_eq!(reader.ask("verify"), "true");
    assert_eq!(reader.ask("write"), "ReadOnly");
    c.drop().unwrap();
    assert_eq!(reader.ask("latest"), "0 documents, last -1, 0 indexes, found false");

    // There is one writer, in this process or another.
    let second = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked);

    // The reader stays while the writer is closed and opened again, with the same setting.
    c.insert_one(&doc! { "_id": 7, "n": 7 }).unwrap();
    db.close().unwrap();
    drop(c);
    assert_eq!(reader.ask("latest"), "1 documents, last 7, 0 indexes, found true");
    assert_eq!(Database::open(&url).unwrap_err().kind(), ErrorKind::Locked);
    let db = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap();
    db.collection("c").insert_one(&doc! { "_id": 8, "n": 8 }).unwrap();
    assert_eq!(reader.ask("latest"), "2 documents, last 8, 0 indexes, found true");
    reader.end();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Database::open(&url).unwrap();
    assert_eq!(db.collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 2);
    assert!(db.verify().run().unwrap().is_sound());
}

#[test]
fn a_second_process_never_sees_a_part_of_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let db = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap();
    let c = db.collection::<Document>("c");
    let documents: Vec<Document> =
        (0..50).map(|n| doc! { "_id": n, "n": n, "round": 0, "text": "x".repeat(500) }).collect();
    c.insert_many(&documents).run().unwrap();
    c.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    let mut reader = SecondProcess::start("read", &url);
    assert_eq!(reader.answer(), "open");
    writeln!(reader.input, "watch").unwrap();
    for round in 1..=LAST_ROUND {
        let text = "y".repeat(usize::try_from(round).unwrap());
        c.update_many(doc! {}, doc! { "$set": { "round": round, "text": text } }).run().unwrap();
    }
    assert_eq!(reader.answer(), "true");
    reader.end();
}

#[test]
fn a_reader_continues_after_the_writer_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let mut writer = SecondProcess::start("write", &url);
    assert_eq!(writer.answer(), "open");
    let reader = Database::builder(&url).access(Access::ReadOnly).open().unwrap();
    let count = |db: &Database| db.collection::<Document>("c").count_documents(doc! {}).run().unwrap();
    for n in 1..=20 {
        assert_eq!(writer.ask("insert"), "written");
        assert_eq!(count(&reader), n);
    }
    // Killed while it commits.
    writeln!(writer.input, "insert").unwrap();
    writer.process.kill().unwrap();
    writer.process.wait().unwrap();
    let after = count(&reader);
    assert!((20..=21).contains(&after), "{after}");

    let next = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap();
    assert_eq!(count(&next), after);
    next.collection("c").insert_one(&doc! { "n": -1 }).unwrap();
    assert_eq!(count(&reader), after + 1);
    assert!(next.verify().run().unwrap().is_sound() && reader.verify().run().unwrap().is_sound());
}

#[test]
fn processes_that_migrate_at_once_execute_each_step_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let processes: Vec<SecondProcess> = (0..3).map(|_| SecondProcess::start("migrate", &url)).collect();
    let mut applied = 0;
    for process in processes {
        applied += process.answer().parse::<u64>().unwrap();
        process.end();
    }
    assert_eq!(applied, 20);
    let db = Database::open(&url).unwrap();
    let counter = db.collection::<Document>("counters").find_by_id(1).unwrap().unwrap();
    assert_eq!((counter.get_i32("n").unwrap(), db.schema_version().unwrap()), (20, 20));
}

#[test]
fn a_database_that_is_not_shared_is_locked_and_the_error_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let db = Database::open(&url).unwrap();
    db.collection("c").insert_one(&doc! { "_id": 1, "n": 1 }).unwrap();
    let locked = SecondProcess::start("read", &url);
    let answer = locked.answer();
    assert!(answer.starts_with("Locked: "), "{answer}");
    assert!(answer.contains("open it there with sharing, or read a backup"), "{answer}");
    locked.end();
    db.close().unwrap();

    let mut reader = SecondProcess::start("read", &url);
    assert_eq!(reader.answer(), "open");
    assert_eq!(reader.ask("latest"), "1 documents, last 1, 0 indexes, found true");
    // This process can read, too, and not write.
    let read = Database::builder(&url).access(Access::ReadOnly).open().unwrap();
    assert_eq!(read.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap(), 1);
    assert_eq!(Database::open(&url).unwrap_err().kind(), ErrorKind::Locked);
    reader.end();
}

#[test]
fn a_reader_that_shares_lets_the_writer_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    Database::open(&url).unwrap().close().unwrap();
    let mut config = Config::new(&url);
    (config.access, config.sharing) = (Some(Access::ReadOnly), Some(Sharing::WithReaders));
    let reader = Database::open_config(&config).unwrap();
    let writer = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap();
    writer.collection("c").insert_one(&rawdoc! { "_id": 1 }).unwrap();
    assert_eq!(reader.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap(), 1);
    assert!(reader.collection::<RawDocumentBuf>("c").find_by_id(1).unwrap().is_some());
}

#[test]
fn a_reader_repairs_what_a_killed_process_left() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    for sharing in [Sharing::Exclusive, Sharing::WithReaders] {
        let killed = SecondProcess::start("hold", &url);
        assert_eq!(killed.answer(), "open");
        // Another process that holds the file is no reason to wait for a repair, and says what to do.
        let refused = Database::builder(&url).access(Access::ReadOnly).open().unwrap_err();
        assert!(refused.kind() == ErrorKind::Locked && refused.to_string().contains("read a backup"), "{refused}");
        killed.kill();
        // Several readers at once: one of them repairs, the others wait for it.
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let builder = Database::builder(&url).access(Access::ReadOnly).sharing(sharing);
                    let reader = builder.open_timeout(Duration::from_secs(60)).open().unwrap();
                    assert!(reader.collection::<Document>("c").find_by_id(1).unwrap().is_some());
                    assert!(reader.verify().run().unwrap().is_sound());
                });
            }
        });
        Database::open(&url).unwrap().drop_database().unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_may_not_repair_says_so() {
    use std::{fs, os::unix::fs::PermissionsExt};

    let folder = tempfile::tempdir().unwrap();
    let (url, path) = (redb_in(&folder), folder.path().join("db.slate"));
    let killed = SecondProcess::start("hold", &url);
    assert_eq!(killed.answer(), "open");
    killed.kill();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::File::options().write(true).open(&path).is_ok() {
        println!("skipped: this user may write to every file");
        return;
    }
    let refused = Database::builder(&url).access(Access::ReadOnly).open().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.to_string().contains("not closed properly"), "{refused}");
}

#[test]
fn opening_waits_until_another_process_has_closed_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let url = redb_in(&folder);
    let service = SecondProcess::start("hold", &url);
    assert_eq!(service.answer(), "open");
    // Without a timeout, and after one that is too short, the database is locked.
    assert_eq!(Database::open(&url).unwrap_err().kind(), ErrorKind::Locked);
    let start = Instant::now();
    let short = Database::builder(&url).open_timeout(Duration::from_millis(100)).open().unwrap_err();
    assert!(short.kind() == ErrorKind::Locked && start.elapsed() >= Duration::from_millis(100), "{short}");
    // Other errors are not waited for.
    let start = Instant::now();
    let missing = Database::builder(&format!("{url}.missing")).access(Access::Open);
    let missing = missing.open_timeout(Duration::from_secs(600)).open().unwrap_err();
    assert!(missing.kind() == ErrorKind::NotFound && start.elapsed() < Duration::from_secs(60), "{missing}");

    let mut config = Config::new(&url);
    config.open_timeout = Some(Duration::from_secs(60));
    let restarted = std::thread::spawn(move || Database::open_config(&config).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!restarted.is_finished());
    service.kill();
    let db = restarted.join().unwrap();
    assert!(db.collection::<Document>("c").find_by_id(1).unwrap().is_some());
}

#[test]
fn other_stores_cannot_share() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:".to_owned(), format!("rocksdb:{}", folder.path().display())] {
        let refused = Database::builder(&url).sharing(Sharing::WithReaders).open().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.message().contains("redb: can"), "{refused}");
    }
}
