//! The completions of fish and zsh in these shells. Those of bash are in `sessions/help.md`. A shell that is not installed is
//! skipped.

#![cfg(all(unix, feature = "redb"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it skips")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rexpect::{reader::Options, session::spawn_with_options};

/// How long an answer may take on a busy machine.
const PATIENCE_MS: u64 = 60_000;

/// A folder with a database and the completions of a shell.
struct Setting {
    folder: tempfile::TempDir,
    script: PathBuf,
}

impl Setting {
    /// `None` if the shell is not installed.
    fn new(shell: &str) -> Option<Self> {
        if Command::new(shell).arg("--version").output().is_err() {
            eprintln!("skipped: {shell} is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("completions");
        let setting = Self { folder, script };
        let printed = setting.slate(&["completions", shell]);
        assert!(printed.status.success());
        fs::write(&setting.script, printed.stdout).unwrap();
        assert!(setting.slate(&["redb:b.slate", "insert", "users", "{ _id: 1, name: 'Ada' }"]).status.success());
        let checked = setting.command(shell).arg("-n").arg(&setting.script).output().unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{shell}: {checked:?}");
        Some(setting)
    }

    fn slate(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_slate")).args(arguments).output().unwrap()
    }

    /// Returns a program in the folder that finds `slate` and no settings of the user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let slate = Path::new(env!("CARGO_BIN_EXE_slate")).parent().unwrap().to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([slate].into_iter().chain(env::split_paths(&others))).unwrap();
        command.current_dir(self.folder.path()).env("PATH", path).env("HOME", self.folder.path());
        command.env("TERM", "xterm").env_remove("SLATE_URL").env_remove("XDG_CONFIG_HOME");
        command
    }
}

#[test]
fn fish_offers_commands_collections_and_fields() {
    let Some(setting) = Setting::new("fish") else { return };
    for (line, offered) in [
        ("slate redb:b", "redb:b.slate\n"),
        ("slate redb:b.slate cou", "count\n"),
        ("slate redb:b.slate find u", "users\n"),
        ("slate redb:b.slate distinct users n", "name\n"),
        ("slate redb:b.slate find users --fo", "--format\n"),
    ] {
        let script = format!("source completions; complete -C '{line}'");
        let output = setting.command("fish").args(["--no-config", "-c", &script]).output().unwrap();
        let (printed, failed) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((&*printed, &*failed), (offered, ""), "{line}");
    }
}

#[test]
fn zsh_completes_commands_collections_and_fields() {
    let Some(setting) = Setting::new("zsh") else { return };
    let mut command = setting.command("zsh");
    // Without the files of the user and of the system.
    command.args(["-f", "-i"]);
    let options = Options::new().timeout_ms(Some(PATIENCE_MS)).strip_ansi_escape_codes(true);
    let mut zsh = spawn_with_options(command, options).unwrap();
    let mut enter = |keys: &str, shown: &str| {
        zsh.send(keys).unwrap();
        zsh.flush().unwrap();
        zsh.exp_string(shown).unwrap();
    };
    enter(
        "PS1='ready> '; autoload -Uz compinit; compinit -u -d dump; source ./completions; echo so''urced\r",
        "\r\nsourced",
    );
    // The lines are executed, so that what is completed is the command that ran.
    enter("slate redb:b.slate cou\tu\t\r", "\r\n1\r\n");
    enter("slate redb:b.slate dist\tu\tn\t\r", "\r\n\"Ada\"\r\n");
    enter("slate redb:b.sl\tcou\tu\t\r", "\r\n1\r\n");
    enter("exit\r", "exit");
}
