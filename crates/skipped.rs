//! Skipped: a test that cannot run here says so, once for whoever watches and once for the summary.
//!
//! A test that needs what a machine may not have (FUSE, root, published traces) returns early, and
//! cargo then prints "ok" for it. Each such test calls [`skipped`] first. The line goes to stderr
//! itself, which the test harness does not capture, and to the end of the file that
//! `FORERUN_SKIPPED` names; `make test` ends with those lines.
//!
//! ```text
//! skipped: mount::death::a_killed_reader_leaves_nothing_open: needs /dev/fuse and root
//! ```
//!
//! Not a crate: test programs include it by path.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::panic::Location;

/// Records that the running test, or a part of it, is skipped. The harness names a test's thread
/// after the test; the name of any other thread, and `main` where tests run one at a time, is no
/// test's, and then the place of the call stands for it.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "where the summary lies is for whoever runs the tests"
)]
pub(crate) fn skipped(reason: impl Display) {
    let (thread, place) = (std::thread::current(), Location::caller());
    let place = format!("{}:{}", place.file(), place.line());
    let test = thread.name().filter(|name| *name != "main");
    // One line a test, whatever the reason looks like.
    let reason = reason.to_string().trim().replace('\n', "; ");
    let program = env!("CARGO_CRATE_NAME");
    let test = test.unwrap_or(&place);
    let line = format!("skipped: {program}::{test}: {reason}\n");
    // A closed stderr is no reason for a test to fail, but a summary that lacks a line is.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("FORERUN_SKIPPED") {
        // Appended in one write: tests of several programs may be skipped at a time.
        let mut summary = File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        summary.write_all(line.as_bytes()).unwrap();
    }
}
