//! The simulator's tests, one program: each module is one kind of evidence.
//!
//! `FORERUN_BLESS=1` rewrites the golden grid; `FORERUN_SWARM_SEEDS=n` runs more of the swarm.

#![expect(
    clippy::print_stdout,
    reason = "tests print their results for the reader of a failure"
)]

mod adversary;
mod amplification;
mod arrays;
mod clocks;
mod conformance;
mod determinism;
mod fairness;
mod golden;
mod hinted;
mod measure;
mod memory;
mod methods;
mod next_file;
mod numbers;
mod paced;
mod patterns;
mod prefetch_memory;
mod ramping;
mod replay;
mod scenes;
mod stage;
mod striped;
mod swarm;
mod theory;
mod windows;
