//! The simulator's tests of runs, one program: each module is one kind of evidence. `traces` has those of traces and
//! counts, `disks` those of modelled disks.
//!
//! `FORERUN_BLESS=1` rewrites the golden grid; `FORERUN_SWARM_SEEDS=n` runs more of the swarm.

#![expect(
    clippy::print_stdout,
    reason = "tests print their results for the reader of a failure"
)]

mod adversary;
mod amplification;
mod arrays;
mod beside;
mod blocks;
mod clocks;
mod conformance;
mod crowd;
mod determinism;
mod fairness;
mod golden;
mod hinted;
mod hinted_models;
mod in_step;
mod kernel;
mod layout;
mod measure;
mod memory;
mod methods;
mod next_file;
mod numbers;
mod paced;
mod pacing;
mod patterns;
mod prefetch_memory;
mod ramping;
mod replay;
mod scenes;
mod simulate;
mod stage;
mod striped;
mod swarm;
mod theory;
mod unknown;
mod windows;
