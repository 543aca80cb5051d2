//! The end of a command: success, or one line and an exit code.
//!
//! Every command returns `Result<(), Failure>`; `main` prints it. As in `forerun`: 0 done, 1 it was
//! tried and failed, 2 it cannot be tried (a bad argument, a bad bed, a machine without a need).

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// The reason of a failed command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It cannot be tried. The message names the value and the accepted ones.
    #[error("{0}")]
    Usage(String),
    /// This machine lacks something; each line names one lack and its remedy.
    #[error("cannot run here:{}", .0.iter().map(|m| format!("\n  {m}")).collect::<String>())]
    Missing(Vec<String>),
    /// It was tried and failed.
    #[error("{0}")]
    Run(String),
}

impl Failure {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Run(_) => 1,
            Self::Usage(_) | Self::Missing(_) => 2,
        })
    }

    /// A path with which something went wrong while running.
    #[must_use]
    pub fn at(path: &Path, why: impl Display) -> Self {
        Self::Run(format!("{}: {why}", path.display()))
    }
}

/// Adds the path to an error of the system.
pub trait At<T> {
    /// The value, or a [`Failure::Run`] that names the path.
    ///
    /// # Errors
    /// The error there was.
    fn at(self, path: &Path) -> Result<T, Failure>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|e| Failure::at(path, e))
    }
}
