use std::{
    process,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use slate_core::CancelToken;

use crate::{
    failure::{Exit, Failure, Result},
    message::message,
};

/// How long a cancelled command may take before a message says how to end it at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Cancels the running command when Ctrl-C is pressed; when it is pressed again, ends the program.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<CancelToken>>);

impl Interrupt {
    /// Begins to react to Ctrl-C.
    ///
    /// # Errors
    /// Fails if the system does not allow it.
    pub(crate) fn listen(&self) -> Result<()> {
        let interrupt = self.clone();
        ctrlc::set_handler(move || interrupt.press()).map_err(|error| Failure::new(error.to_string()))
    }

    fn press(&self) {
        let token = self.token();
        if token.is_cancelled() {
            process::exit(Exit::Interrupted.code().into());
        }
        token.cancel();
        let running = self.clone();
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            // If the command has ended in the meantime, the token is a new one.
            if running.token().is_cancelled() {
                message!("slate: the command ends at the next safe point; Ctrl-C again ends it at once");
            }
        });
    }

    /// Returns the token of the running command.
    pub(crate) fn token(&self) -> CancelToken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the command that has ended, and prepares for the next.
    pub(crate) fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CancelToken::new();
    }
}
