//! Keys of a program of the user, `credential_process`.
//!
//! It runs in a group of its own, which is ended with it where the program does not answer: a shell that waits for
//! another program would leave that one behind.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{Had, of_json};
use crate::service::json;

/// Longest output, in bytes.
const OUTPUT_MAX: u64 = 64 << 10;

pub(super) async fn keys(command: &str) -> Result<Had, String> {
    let answer = json(&run(command).await?)?;
    match answer["Version"].as_u64() {
        Some(1) => of_json(&answer),
        _ => Err("its output has no \"Version\": 1".to_owned()),
    }
}

/// Ends the group of a program that is not waited for any more.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The output of a program.
async fn run(command: &str) -> Result<String, String> {
    let mut program = Command::new("/bin/sh");
    program.args(["-c", command]).stdin(Stdio::null());
    program
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0);
    let mut program = program.spawn().map_err(|error| error.to_string())?;
    let process = program.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group(process.and_then(Pid::from_raw));
    let mut output = Vec::new();
    if let Some(stdout) = program.stdout.take() {
        let read = stdout.take(OUTPUT_MAX).read_to_end(&mut output).await;
        read.map_err(|error| error.to_string())?;
    }
    if output.len() as u64 == OUTPUT_MAX {
        return Err(format!("its output has more than {} KiB", OUTPUT_MAX >> 10));
    }
    let status = program.wait().await.map_err(|error| error.to_string())?;
    // Its number may be another's from here on.
    group.0 = None;
    if !status.success() {
        return Err(format!("it failed with {status}"));
    }
    String::from_utf8(output).map_err(|_| "its output is no text".to_owned())
}
