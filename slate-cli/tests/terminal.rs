//! The shell as a person uses it: in a terminal, key by key.

#![cfg(all(unix, feature = "redb"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{path::Path, process::Command};

use rexpect::{
    process::WaitStatus,
    reader::Options,
    session::{PtySession, spawn_with_options},
};

const TAB: &str = "\t";
const UP: &str = "\x1b[A";

/// How long an answer may take on a busy machine.
const PATIENCE_MS: u64 = 60_000;

/// A shell on `redb:shop.slate` in a folder, in a terminal of this width.
struct Shell {
    session: PtySession,
}

impl Shell {
    fn open(folder: &Path, width: u16) -> Self {
        let slate = format!(
            "echo $$ >.process; stty rows 40 cols {width}; exec {} redb:shop.slate",
            env!("CARGO_BIN_EXE_slate")
        );
        let mut command = Command::new("sh");
        command.args(["-c", &slate]).current_dir(folder).env("SLATE_HISTORY", folder.join("history"));
        command.env("TERM", "xterm").env_remove("SLATE_URL");
        let options = Options::new().timeout_ms(Some(PATIENCE_MS)).strip_ansi_escape_codes(true);
        Self { session: spawn_with_options(command, options).unwrap() }
    }

    /// Waits for the prompt and enters keys.
    fn enter(&mut self, keys: &str) {
        self.expect("shop.slate> ");
        self.type_keys(keys);
    }

    fn type_keys(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
        self.session.flush().unwrap();
    }

    fn expect(&mut self, text: &str) {
        // `rexpect` makes a character of each byte.
        let bytes: String = text.bytes().map(char::from).collect();
        self.session.exp_string(&bytes).unwrap_or_else(|error| panic!("{text:?} is not shown: {error}"));
    }

    fn leave(mut self) {
        self.enter("exit\r");
        self.ended(0);
    }

    fn ended(mut self, code: i32) {
        self.session.exp_eof().unwrap();
        assert!(matches!(self.session.process().wait().unwrap(), WaitStatus::Exited(_, ended) if ended == code));
    }
}

#[test]
fn a_signal_ends_a_shell_at_its_prompt() {
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Shell::open(folder.path(), 100);
        shell.enter("insert t { _id: 1 }\r");
        shell.expect("1\r\n");
        shell.expect("shop.slate> ");
        let process = std::fs::read_to_string(folder.path().join(".process")).unwrap();
        assert!(Command::new("kill").args([signal, process.trim()]).status().unwrap().success());
        shell.ended(code);
    }
}

#[test]
fn a_first_session_creates_a_database_and_shows_tables() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.expect("redb:shop.slate: does not exist yet; insert or import creates it");
    shell.enter("collections\r");
    shell.expect("there is no database at redb:shop.slate");
    assert!(!folder.path().join("shop.slate").exists());
    shell.enter("insert users { _id: 1, name: 'Ada Lovelace' } {_id: 2, name: \"Alan\", tags: ['x']}\r");
    shell.expect("1\r\n2\r\n");
    // A command ends when its brackets are closed.
    shell.enter("find users { name:\r/^A/ }\r");
    shell.expect("_id  name          tags\r\n───  ────────────  ─────\r\n");
    shell.expect("  1  Ada Lovelace\r\n  2  Alan          [\"x\"]\r\n");
    // Within a regular expression or a comment a quote opens nothing.
    shell.enter("count users { name: /^[/]?O'\\{/ }\r");
    shell.expect("\r\n0\r\n");
    shell.enter("count users { // it's {\rname: /^A/ }\r");
    shell.expect("\r\n2\r\n");
    shell.enter("find users {} --project { name: $ }\r");
    shell.expect("slate: invalid value");
    shell.enter("fnd users\r");
    shell.expect("hint: a similar subcommand exists: 'find'");
    shell.enter("help\r");
    shell.expect("Leave the shell");
    shell.leave();
    assert!(folder.path().join("shop.slate").exists());
}

#[test]
fn a_table_fits_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 29);
    shell.enter("insert t {_id: 1, name: 'a name that is long', n: 5, x: 1}\r");
    shell.enter("find t\r");
    shell.expect("_id  name                 n\r\n");
    shell.expect("  1  a name that is long  5\r\nnot shown: x\r\n");
    shell.leave();
}

#[test]
fn tab_completes_commands_collections_fields_and_operators() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("insert users {_id: 1, name: 'Ada', address: {city: 'Oslo'}}\r");
    shell.enter(&format!("cou{TAB}us{TAB}{{ na{TAB}: {{ $exi{TAB}: true }} }}\r"));
    shell.expect("shop.slate> count users { name: { $exists");
    shell.expect("\r\n1\r\n");
    shell.enter(&format!("create-i{TAB}us{TAB}{{ \"address.{TAB}\": 1 }} --na{TAB}city\r"));
    shell.expect("shop.slate> create-index users { \"address.city\": 1 } --name");
    shell.expect("city\r\n");
    shell.enter(&format!("drop-index users {TAB}\r"));
    shell.expect("shop.slate> drop-index users city");
    shell.expect("\r\ncity dropped\r\n");
    // What several candidates begin with is inserted; they are listed.
    shell.enter(&format!("e{TAB}{TAB}"));
    shell.expect("explain");
    shell.expect("export");
    shell.expect("exit");
    shell.type_keys("it\r");
    shell.ended(0);
}

#[test]
fn history_is_recalled_in_a_later_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("insert users { _id: 1 }\r");
    shell.enter("count users { _id: {\r$gte: 0 } }\r");
    shell.expect("\r\n1\r\n");
    shell.leave();
    let mut shell = Shell::open(folder.path(), 100);
    shell.expect("redb:shop.slate: 1 collection.");
    shell.enter(&format!("{UP}{UP}\r"));
    shell.expect("\r\n1\r\n");
    // Ctrl-R searches.
    shell.enter("\x12insert\r");
    shell.expect("E11000 duplicate key");
    shell.leave();
}

#[test]
fn lines_are_edited() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    // Ctrl-A, Ctrl-E, Ctrl-W, backspace.
    shell.enter("users { _id: 7 }\x01insert \x05 { _id: 8 }\x7f, n: 1 } wrong\x17\r");
    shell.expect("\r\n7\r\n8\r\n");
    // Ctrl-C drops the line.
    shell.enter("drop users\x03");
    shell.enter("count users\r");
    shell.expect("\r\n2\r\n");
    shell.leave();
}

#[test]
fn lines_that_are_typed_ahead_or_pasted_are_executed() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("insert t { _id: 41 }\rinsert t { _id: 42 }\rcount t\r");
    shell.expect("\r\n41\r\n");
    shell.expect("\r\n42\r\n");
    shell.expect("\r\n2\r\n");
    // A terminal marks what is pasted.
    shell.enter("\x1b[200~insert t {\n\t_id: 43\n}\ncount t\n\x1b[201~\r");
    shell.expect("\r\n43\r\n3\r\n");
    shell.leave();
}

#[test]
fn control_c_cancels_the_running_command_and_control_d_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("insert t { _id: 1 }\r");
    let times = |field: &str| format!("{{ $set: {{ {field}: {{ $range: [0, 10000] }} }} }}, {{ $unwind: '${field}' }}");
    shell.enter(&format!("aggregate t [{}, {}, {}, {{ $count: 'n' }}]\r", times("a"), times("b"), times("c")));
    shell.expect("'n' }]");
    std::thread::sleep(std::time::Duration::from_millis(500));
    shell.type_keys("\x03");
    shell.expect("slate: ");
    shell.enter("count t\r");
    shell.expect("\r\n1\r\n");
    shell.enter("\x04");
    shell.ended(0);
}

#[test]
fn progress_is_shown_with_rate_and_time_left() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..20_000).map(|id| format!("{{_id: {id}, text: 'some text'}}\n")).collect();
    std::fs::write(folder.path().join("many.json"), lines).unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("import many.json\r");
    shell.expect("B/s, ");
    shell.expect("s left");
    shell.expect("many.json: 20000 inserted, collection many\r\n");
    shell.enter("export many --output many.csv\r");
    shell.expect("/20,000 ");
    shell.expect("s left");
    shell.expect("20000 documents written to many.csv\r\n");
    shell.enter("verify\r");
    shell.expect("many ");
    shell.expect("/20,000 ");
    shell.expect("s left");
    shell.expect("20000 documents, 0 index entries, 0 faults\r\n");
    shell.leave();
    assert!(!folder.path().join("many.csv.incomplete").exists());
}

#[test]
fn find_shows_the_first_documents() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(folder.path(), 100);
    let documents: Vec<String> = (1..=60).map(|id| format!("{{_id: {id}}}")).collect();
    shell.enter(&format!("insert t {}\r", documents.join(" ")));
    shell.enter("find t\r");
    shell.expect("\r\n 50\r\nThese are the first 50: --limit N prints more, --limit 0 all.");
    shell.enter("find t {} --format bson\r");
    shell.expect("BSON is not text");
    shell.enter("export t --format bson\r");
    shell.expect("BSON is not text");
    shell.enter("find t {} --limit 0\r");
    shell.expect("\r\n 60\r\n");
    shell.enter("find t { _id: 61 }\r");
    shell.expect("no document matches\r\n");
    shell.leave();
}

#[test]
fn a_shell_leaves_the_database_to_other_programs_between_commands() {
    let folder = tempfile::tempdir().unwrap();
    let slate = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slate"));
        command.arg("redb:shop.slate").current_dir(folder.path()).env_remove("SLATE_URL");
        command
    };
    let mut shell = Shell::open(folder.path(), 100);
    shell.enter("insert t { _id: 1 }\r");
    shell.expect("\r\n1\r\n");
    shell.expect("shop.slate> ");
    assert!(slate().args(["insert", "t", "{ _id: 2 }"]).output().unwrap().status.success());
    shell.type_keys("count t\r");
    shell.expect("\r\n2\r\n");
    // While another program has the database open, it cannot be read.
    shell.expect("shop.slate> ");
    let url = format!("redb:{}", folder.path().join("shop.slate").display());
    let other = slate_core::Database::open(&url).unwrap();
    other.collection("t").insert_one(&slate_core::bson::doc! { "_id": 3 }).unwrap();
    shell.type_keys("count t\r");
    shell.expect("slate: the database is already open");
    shell.expect("hint: close the other program");
    let mut second = Shell::open(folder.path(), 100);
    second.expect("slate: the database is already open");
    second.ended(1);
    drop(other);
    shell.enter("count t\r");
    shell.expect("\r\n3\r\n");
    shell.leave();
}

#[test]
fn control_c_ends_a_single_command() {
    let folder = tempfile::tempdir().unwrap();
    let many: String = (0..100).map(|id| format!("{{ _id: {id} }}\n")).collect();
    std::fs::write(folder.path().join("many.json"), many).unwrap();
    let slate = env!("CARGO_BIN_EXE_slate");
    let import = format!("{slate} redb:shop.slate import many.json; exec {slate} redb:shop.slate");
    let times = |field: &str| {
        format!("{{ $lookup: {{ from: 'many', pipeline: [], as: '{field}' }} }}, {{ $unwind: '${field}' }}")
    };
    let pipeline = format!("[{}, {}, {}, {}, {{ $count: 'n' }}]", times("a"), times("b"), times("c"), times("d"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{import} aggregate many \"$PIPELINE\"")]).env("PIPELINE", pipeline);
    command.current_dir(folder.path()).env_remove("SLATE_URL");
    let options = Options::new().timeout_ms(Some(PATIENCE_MS)).strip_ansi_escape_codes(true);
    let mut shell = Shell { session: spawn_with_options(command, options).unwrap() };
    shell.expect("many.json: 100 inserted, collection many\r\n");
    std::thread::sleep(std::time::Duration::from_millis(1_000));
    shell.type_keys("\x03");
    shell.expect("slate: ");
    shell.ended(130);
}
