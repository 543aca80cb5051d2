//! The end of a command: success, or a message and an exit code.
//!
//! Every command returns `Result<(), Failure>`; `main` prints it and leaves. The three codes:
//!
//! ```text
//! 0  done; also when the reader of our output closed it, as in `forerun read big | head`
//! 1  it was tried and failed: an I/O error, wrong bytes, a journal that replays differently
//! 2  it cannot be tried: a bad argument, a missing file, a file of the wrong kind
//! ```

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use forerun_core::settings::SettingsError;

use crate::files::plain;

/// The reason of a failed command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It cannot be tried. The message names the value and the accepted ones.
    #[error("{0}")]
    Usage(String),
    /// This machine lacks something; each line names one thing and its remedy.
    #[error("cannot run here:{}", .0.iter().map(|m| format!("\n  {m}")).collect::<String>())]
    Missing(Vec<String>),
    /// It was tried and failed.
    #[error("{0}")]
    Run(String),
    /// The reader of our output went away: not an error.
    #[error("output closed")]
    OutputClosed,
}

impl Failure {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::OutputClosed => 0,
            Self::Run(_) => 1,
            Self::Usage(_) | Self::Missing(_) => 2,
        })
    }

    /// A file that cannot be used at all.
    #[must_use]
    pub fn unusable(path: &Path, why: impl Display) -> Self {
        Self::Usage(format!("{}: {why}", path.display()))
    }

    /// A file that failed while it was used.
    #[must_use]
    pub fn broken(path: &Path, why: impl Display) -> Self {
        Self::Run(format!("{}: {why}", path.display()))
    }

    /// Output that could not be written.
    #[must_use]
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Run(format!("cannot write the output: {}", plain(error)))
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Adds the path to an error of the system.
///
/// # Examples
/// ```
/// use std::path::Path;
///
/// use forerun_surface::failure::At;
///
/// let path = Path::new("/data/a");
/// let refused = Err::<(), _>("is on fire").at(path);
/// assert_eq!(refused.unwrap_err().to_string(), "/data/a: is on fire");
/// ```
pub trait At<T> {
    /// The value, or a [`Failure::Run`] that names the path.
    ///
    /// # Errors
    /// The error there was.
    fn at(self, path: &Path) -> Result<T, Failure>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|e| Failure::broken(path, e))
    }
}
