//! Disks against measurements, and against closed forms of their figures.
//!
//! Two kinds of tests. `validation` replays published request streams and compares response times
//! with a real drive's, or with a reference simulator's; the streams are third-party files and are
//! looked for in `FORERUN_TRACES`, else in `shared/traces` beside the repository; where they are
//! not found a test says so and holds nothing. `closed_forms` holds the same code to arithmetic on
//! a drive's figures, with generated requests, everywhere, and `caches` drives with write-back
//! caches, zero-latency reads and sectors passed over.

#![expect(
    clippy::print_stdout,
    reason = "tests print their measurements for the reader of a failure"
)]

#[path = "disks/caches.rs"]
mod caches;
#[path = "disks/closed_forms.rs"]
mod closed_forms;
#[path = "../../skipped.rs"]
mod skipped;
#[path = "disks/validation.rs"]
mod validation;
