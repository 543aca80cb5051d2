//! External programs: losetup, ionice and the mkfs family, nothing else.
//!
//! Run to their end without a shell; their complaints become the message. `needs` checks beforehand
//! that they are there.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Runs a program and returns its output, without the last line break.
///
/// # Errors
/// It cannot be run, or failed; with its first lines of complaint.
pub fn run(
    program: &str,
    arguments: impl IntoIterator<Item: AsRef<OsStr>>,
) -> Result<String, Failure> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Failure::Run(format!("{program}: {e}")))?;
    if output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        return Ok(said.trim_end().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint: Vec<&str> = complaint.lines().take(3).collect();
    let status = output.status;
    Err(Failure::Run(format!(
        "{program}: {status}: {}",
        complaint.join("; ")
    )))
}

/// A command that runs a program at the I/O priority of ordinary programs. One at real-time
/// priority gets that of real-time programs otherwise, and bfq is another scheduler then: fair.
#[must_use]
pub fn at_ordinary_io_priority(program: &Path) -> Command {
    let mut command = Command::new("ionice");
    command.args(["-c", "2", "-n", "4"]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_program_said() {
        assert_eq!(run("echo", ["a b"]).unwrap(), "a b");
        let message = run("ls", ["/nowhere/at/all"]).unwrap_err().to_string();
        assert!(
            message.contains("ls: ") && message.contains("/nowhere/at/all"),
            "{message}"
        );
        assert!(run("/nowhere/program", [""]).is_err());
    }
}
