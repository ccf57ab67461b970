use std::{cell::RefCell, io::Write};

use rustyline::{
    CompletionType, Config, Context, Editor, Helper,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};
use slate_core::Access;

use super::{
    complete,
    gather::commands,
    history,
    line::{self, Done},
    words,
};
use crate::{
    endpoint::is_server,
    failure::{Exit, Failure, Result},
    message::message,
    session::Session,
};

/// Maximum number of lines in the history.
const HISTORY: usize = 10_000;

/// Runs the commands that a person enters.
///
/// # Errors
/// Fails if the terminal fails.
pub(super) fn run(mut session: Session) -> Result<Exit> {
    session.enter_prompt();
    greet(&mut session)?;
    let prompt = format!("{}> ", name(&session.shown_url()?));
    let interrupt = session.interrupt();
    let mut editor = editor(session).map_err(failed)?;
    let file = history::file();
    if let Some(file) = &file {
        // Fails if there is no history yet.
        let _ = editor.load_history(file);
    }
    loop {
        if interrupt.ends_program() {
            break;
        }
        match interrupt.while_prompting(|| editor.readline(&prompt)) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let _ = editor.add_history_entry(text.trim());
                let Some(prompt) = editor.helper() else { break };
                if execute(&text, &mut prompt.session.borrow_mut())? == Done::Leave {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(file) = &file {
        save(&mut editor, file);
    }
    if let Some(prompt) = editor.helper() {
        prompt.session.borrow_mut().finish()?;
    }
    Ok(if interrupt.ends_program() { Exit::Interrupted } else { Exit::Success })
}

/// Executes what was entered: one command, or several that were pasted.
fn execute(text: &str, session: &mut Session) -> Result<Done> {
    let mut done = Done::Command(Exit::Success);
    for command in commands(text) {
        done = line::execute(&command, session)?;
        if done == Done::Leave {
            break;
        }
    }
    Ok(done)
}

fn editor(session: Session) -> rustyline::Result<Editor<Prompt, FileHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Prompt { session: RefCell::new(session) }));
    Ok(editor)
}

/// Stores the history. Only reports a failure, because history is a convenience.
fn save(editor: &mut Editor<Prompt, FileHistory>, file: &std::path::Path) {
    let folder = file.parent().is_none_or(|folder| std::fs::create_dir_all(folder).is_ok());
    if folder && let Err(error) = editor.append_history(file) {
        message!("slate: the history could not be stored in {}: {error}", file.display());
    }
}

fn failed(error: ReadlineError) -> Failure {
    Failure::new(format!("the terminal failed: {error}"))
}

/// Prints the version and the number of collections, or that the database does not exist yet.
fn greet(session: &mut Session) -> Result<()> {
    let url = session.shown_url()?;
    let what = match session.endpoint(Access::ReadOnly) {
        Ok(target) => match target.names()?.len() {
            1 => "1 collection".to_owned(),
            collections => format!("{collections} collections"),
        },
        Err(failure) if failure.is_missing_database() => "does not exist yet; insert or import creates it".to_owned(),
        Err(failure) => return Err(failure),
    };
    let version = env!("CARGO_PKG_VERSION");
    session.release()?;
    writeln!(session.out(), "slate {version}, {url}: {what}. Tab completes, help lists the commands.")?;
    session.flush()
}

/// Returns the name of a database in the prompt: the last part of its path, or the scheme without a path.
fn name(url: &str) -> &str {
    let url = if is_server(url) { url.split('?').next().unwrap_or(url) } else { url };
    let (scheme, path) = url.split_once(':').unwrap_or(("", url));
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(scheme)
}

/// Answers the editor's calls while a line is entered. It owns the session, because completion reads the database.
struct Prompt {
    session: RefCell<Session>,
}

impl Helper for Prompt {}

impl Hinter for Prompt {
    type Hint = String;
}

impl Highlighter for Prompt {}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let open = words::split(context.input()).is_err();
        Ok(if open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Prompt {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let line = line.get(..pos).unwrap_or_default();
        let mut session = self.session.borrow_mut();
        let completed = complete::complete(line, &mut session);
        // The candidates are complete; closing may fail.
        let _ = session.release();
        Ok(completed)
    }
}
