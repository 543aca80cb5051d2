//! Sweeps: many simulations from one plan, each of them one row of a file.
//!
//! Problem: five presets by six memories by twenty seeds on sixteen devices are thousands of runs. They take hours,
//! are stopped half-way, are spread over machines, and a year later someone asks which program and which trace made
//! the row.
//!
//! Mechanism: a plan names flags of `forerun simulate` and the values of each. Every combination is a run, written
//! down as the command that makes it, and its row is appended when it ends. The key of a row is a digest of that
//! command, of the program's version and of the files it reads; a run whose key is in the file is not run again.
//!
//! ```text
//! plan.toml --plan--> cells --shard--> mine --not in the file--> threads --one row each--> rows.jsonl
//!                                                                                          merge, diff, rerun
//! ```
//!
//! Example: two presets and three cache sizes are six runs. Killed in the fourth, the file has three rows and a part
//! of a line; the same command takes the part off and runs three.

pub mod cells;
pub mod compare;
pub mod names;
pub mod plan;
pub mod rows;
