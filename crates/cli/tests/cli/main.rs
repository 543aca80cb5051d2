//! The command line as a user meets it: the binary is run, and its output and exit code are
//! compared with the text written here. `SNAPSHOTS=overwrite cargo test -p forerun` writes the
//! texts anew after a change that is meant.

mod arrivals;
mod bad_input;
mod bench;
mod browser;
mod defaults;
mod doctor;
mod emulate;
mod everyday;
mod explain;
mod help;
#[cfg(feature = "object-store")]
#[path = "../../../store/tests/http_server/mod.rs"]
#[allow(dead_code, reason = "faults and listings are tested with the clients")]
mod http_server;
mod journal;
mod layout;
mod list;
#[cfg(feature = "object-store")]
mod objects;
mod profile;
mod read;
mod report;
mod server;
mod setup;
mod simulate;
mod site;
#[path = "../../../skipped.rs"]
mod skipped;
mod sweep;
mod trace;
mod tune;
mod unused;
mod validate;
#[path = "../mount/wait.rs"]
#[allow(dead_code, reason = "mounts are waited for by the tests of mounts")]
mod wait;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use snapbox::cmd::{OutputAssert, cargo_bin};
use tempfile::TempDir;

/// In place of the user's cache: nothing can be kept there.
const NO_FOLDER: &str = "/dev/null";

/// Runs the binary with these words as arguments.
fn forerun(arguments: &str) -> OutputAssert {
    snapbox::cmd::Command::new(cargo_bin!("forerun"))
        .env_remove("COLUMNS")
        .env_remove("FORERUN_LOG")
        .env("XDG_CACHE_HOME", NO_FOLDER)
        .args(arguments.split_whitespace())
        .assert()
}

/// The binary's output, where it must be looked into; it must have ended well.
fn output_of(arguments: &str) -> String {
    let Output {
        stdout,
        stderr,
        status,
    } = Command::new(cargo_bin!("forerun"))
        .env("XDG_CACHE_HOME", NO_FOLDER)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(
        status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8(stdout).unwrap()
}

/// A folder with one file in it.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file with these bytes; its path as an argument.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.name(name)
    }

    /// A path in the folder as an argument.
    fn name(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }
}

/// Bytes that differ from place to place.
fn bytes(count: usize) -> Vec<u8> {
    (0..count)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}
