//! How a command ends: the exit codes that scripts branch on, and the error that carries one.
//!
//! `anyhow` says what went wrong; [`Failure`] adds what a script should do about it. Everything without a
//! better code of its own is [`Exit::Failed`].

use std::fmt;
use std::process::ExitCode;

/// The exit codes. Their numbers are a promise to scripts; never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// It could not be done, or what was waited for has failed for good.
    Failed = 1,
    /// The command line or a file named on it makes no sense.
    Usage = 2,
    /// Time ran out before the wish came true; it may still.
    NotConverged = 3,
    /// Somebody else holds what was asked for.
    Conflict = 4,
    /// There is no such thing.
    NotFound = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not end with 0.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    error: anyhow::Error,
    /// Standard output was closed by its reader (`| head`): not an error, nobody is left to tell.
    silent: bool,
}

/// What every command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// A failure with the code `exit` that tells the user `message`.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}"), silent: false }
    }

    /// The user asked for something that makes no sense.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Tells the user on stderr, and yields the process's exit code.
    pub fn report(&self) -> ExitCode {
        if self.silent {
            return ExitCode::SUCCESS;
        }
        crate::console::note(format_args!("error: {self}"));
        self.exit.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { exit: Exit::Failed, error, silent: false }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let silent = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { exit: Exit::Failed, error: error.into(), silent }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(anyhow::Error::from(error))
    }
}
