//! The driver's tests, one program: each module is one kind of evidence.
//!
//! Programs of their own are `readers`, which also runs in release, `limit` and `memory`, which measure a process
//! that does nothing else, `interleavings`, which compiles files of the driver anew, and `arrays`, which is told of
//! devices of the machine.

mod asleep;
#[cfg(feature = "async")]
mod asynchronous;
mod awaited;
mod cancelled;
mod closing;
mod conformance;
mod files;
mod given_up;
mod hints;
mod hung;
mod journal;
mod leased;
mod looks;
mod page;
mod panics;
mod reads;
#[path = "../../../skipped.rs"]
mod skipped;
mod sources;
mod striped;
mod versions;
