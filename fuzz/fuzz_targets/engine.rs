//! The engine under any stream of inputs, with any settings.
//!
//! The bytes are read by the modules of the test `any_input` of `forerun-core`, which runs the same
//! events, a few of them, in every test. They state the invariants. Settings come from the lists of all
//! families, with values from the whole ranges; devices have 1 to 8 servers, many, or do not say;
//! fetches end in any order; numbers are few, so that inputs meet, or as large as they get.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/tests/any_input/draw.rs"]
mod draw;
#[path = "../../crates/core/tests/any_input/event.rs"]
mod event;
#[path = "../../crates/core/tests/any_input/run.rs"]
mod run;

fuzz_target!(|bytes: &[u8]| run::run(bytes, &mut run::Seen::default()));
