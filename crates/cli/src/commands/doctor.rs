//! `forerun doctor`: checks this machine and its mounts, and says what to do.
//!
//! The checks are [`crate::doctor`]'s; here are the output, the bundle and the exit code: 0 if no check failed, 1 if one
//! did, 2 if there is no mount where one was named.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;

use crate::args::{Doctor, Findings};
use crate::commands::version;
use crate::doctor::{Check, Machine, Verdict, as_text, bundle, examine, mounts, probe};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::{check_target, plain};
use crate::messages::clean;
use crate::mount::sockets::Sockets;
use crate::terminal::columns;

/// Runs the command.
///
/// # Errors
/// A check failed, or there is no such mount.
pub fn run(
    args: &Doctor,
    environment: &Environment,
    sockets: &Sockets,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(path) = &args.probe {
        return probe::look(path, out).map_err(|e| Failure::output(&e));
    }
    let path = environment.path.clone();
    let machine = Machine::this(sockets.clone(), path, args.journal.clone());
    let found = mounts::find(&machine, args.mount.as_deref())?;
    let checks = examine(&machine, &found);
    if let Some(file) = &args.bundle {
        write(
            file,
            &bundle::text(&machine, &found, &checks, &version::verbose()),
        )?;
    }
    let text = match args.format {
        Findings::Plain => clean(&as_text(&checks, columns())),
        Findings::Json => as_json(&checks) + "\n",
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))?;
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail);
    match failed.count() {
        0 => Ok(()),
        failed => Err(Failure::Run(format!(
            "{failed} of {} checks failed",
            checks.len()
        ))),
    }
}

/// A file that is there is another report, or of something else.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    check_target(path)?;
    let unusable = |e: std::io::Error| Failure::unusable(path, plain(&e));
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(unusable)?;
    file.write_all(text.as_bytes()).map_err(|e| {
        // A part of it would be sent, and be in the way of the next try.
        let _ = std::fs::remove_file(path);
        Failure::broken(path, plain(&e))
    })
}

fn as_json(checks: &[Check]) -> String {
    let worst = checks.iter().map(|check| check.verdict).max();
    let whole = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": worst.unwrap_or(Verdict::Ok),
        "checks": checks,
    });
    format!("{whole:#}")
}
