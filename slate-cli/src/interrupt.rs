//! What ends a running command: Ctrl-C, and the signals SIGTERM and SIGHUP.

use std::{
    io, process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use slate_core::CancelToken;

use crate::{
    failure::{Exit, Failure, Result},
    message::message,
};

/// How long a command that Ctrl-C cancelled may take before a message says how to end it at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a command may take to end after SIGTERM or SIGHUP. Then the program ends as in a crash. Shorter than the ten seconds
/// after which containers are killed.
const GRACE: Duration = Duration::from_secs(5);

/// A signal that ends the running command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has all signals"))]
pub(crate) enum Signal {
    /// Ctrl-C, or SIGINT: ends the running command. A shell continues.
    #[default]
    Interrupt,
    /// SIGHUP: the terminal is gone.
    HangUp,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// Returns the exit code that shells report for a program that the signal ended.
    fn exit_code(self) -> u8 {
        128 + match self {
            Self::HangUp => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }

    /// Returns whether the signal ends a shell, too.
    fn ends_program(self) -> bool {
        self != Self::Interrupt
    }
}

/// Cancels the running command when a signal arrives; when a second one arrives, ends the program.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<InterruptState>>);

#[derive(Default)]
struct InterruptState {
    token: CancelToken,
    /// The signal that cancelled the command.
    signal: Signal,
    activity: Activity,
}

/// What the program is doing, which decides the effect of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Runs,
    /// A person is entering a command. The database is closed.
    Prompts,
}

impl Interrupt {
    /// Begins to react to signals.
    ///
    /// # Errors
    /// Fails if the system does not allow it.
    pub(crate) fn listen(&self) -> Result<()> {
        let interrupt = self.clone();
        signals::listen(move |signal| interrupt.receive(signal)).map_err(|error| Failure::new(error.to_string()))
    }

    fn receive(&self, signal: Signal) {
        let (is_second, is_idle) = {
            let mut state = self.state();
            let is_second = state.token.is_cancelled();
            // The exit code is that of the first signal, unless the first ended only the command and the second ends
            // the program.
            if !is_second || signal.ends_program() {
                state.signal = signal;
            }
            state.token.cancel();
            (is_second, state.activity == Activity::Prompts)
        };
        if is_second || is_idle && signal.ends_program() {
            process::exit(signal.exit_code().into());
        }
        let running = self.clone();
        thread::spawn(move || match signal.ends_program() {
            true => {
                thread::sleep(GRACE);
                process::exit(signal.exit_code().into());
            }
            false => {
                thread::sleep(PATIENCE);
                // If the command has ended in the meantime, the token is a new one.
                if running.token().is_cancelled() {
                    message!("slate: the command ends at the next safe point; Ctrl-C again ends it at once");
                }
            }
        });
    }

    /// Returns the token of the running command.
    pub(crate) fn token(&self) -> CancelToken {
        self.state().token.clone()
    }

    /// Returns whether a signal has arrived that ends a shell, too.
    pub(crate) fn ends_program(&self) -> bool {
        let state = self.state();
        state.token.is_cancelled() && state.signal.ends_program()
    }

    /// Returns the program's exit code: for an interrupted command, that of its signal.
    pub(crate) fn exit_code(&self, exit: Exit) -> u8 {
        match exit {
            Exit::Interrupted => self.state().signal.exit_code(),
            exit => exit.code(),
        }
    }

    /// Resets the state for the next command, unless a signal is to end the program.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        if !state.signal.ends_program() {
            *state = InterruptState { activity: state.activity, ..InterruptState::default() };
        }
    }

    /// Calls `read`, which waits for a person to enter a command. Meanwhile SIGTERM and SIGHUP end the program at once.
    pub(crate) fn while_prompting<R>(&self, read: impl FnOnce() -> R) -> R {
        self.state().activity = Activity::Prompts;
        let result = read();
        self.state().activity = Activity::Runs;
        result
    }

    fn state(&self) -> MutexGuard<'_, InterruptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a read that a signal ended. Its kind is not `Interrupted`, after which readers try again.
#[derive(Debug)]
pub(crate) struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Cancelled {}

impl From<Cancelled> for io::Error {
    fn from(cancelled: Cancelled) -> Self {
        Self::other(cancelled)
    }
}

#[cfg(unix)]
mod signals {
    use std::{fs, io, os::raw::c_int, thread};

    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
    };

    use super::Signal;

    /// Calls `receive` with each signal, on a thread of its own.
    pub(super) fn listen(receive: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        let mut signals = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            signals.push(SIGHUP);
        }
        let mut signals = Signals::new(signals)?;
        thread::spawn(move || {
            for signal in signals.forever() {
                receive(match signal {
                    SIGHUP => Signal::HangUp,
                    SIGTERM => Signal::Terminate,
                    _ => Signal::Interrupt,
                });
            }
        });
        Ok(())
    }

    /// Returns whether the program was started with the signal ignored, as `nohup` does. Listening to it would undo that.
    fn is_ignored(signal: c_int) -> bool {
        match fs::read_to_string("/proc/self/status") {
            Ok(status) => {
                let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
                let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
                mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
            }
            // Systems other than Linux. `nohup` redirects standard error.
            Err(_) => !io::IsTerminal::is_terminal(&io::stderr()),
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use super::Signal;

    /// Calls `receive` when Ctrl-C is pressed, on a thread of its own.
    pub(super) fn listen(receive: impl Fn(Signal) + Send + 'static) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(move || receive(Signal::Interrupt))
    }
}
