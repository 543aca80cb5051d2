//! The extension module `_forerun`, on which the Python files of the package `forerun` stand.
//!
//! ```text
//! File (Python, io.RawIOBase) --> file::Handle --> forerun_io::Reader --> the process's engine
//! hints, ledger, settings     --> engine::Engine --> forerun_io::Driver
//! simulate, reproduce         --> forerun_sim and forerun_lab, in virtual time
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `engine`, `file` | the classes `Engine` and `Handle` |
//! | `origin`, `stores`, `fetch` | paths, addresses, and functions that read ranges |
//! | `waiting` | reads of servers, which an interrupt ends |
//! | `fork` | values that a child process must neither use nor drop |
//! | `buffer` | a writable buffer of Python as bytes; the only unsafe code |
//! | `settings`, `errors`, `ledger` | values of Python from and to those of the libraries |
//! | `simulate`, `reproduce` | presets over a trace or a workload; the claims of a paper |
//!
//! The interpreter is released around every read, open, hint and simulation, and held while a
//! lock of this crate is held: a fork happens with the interpreter held, so that no lock of this
//! crate is ever copied locked.

mod buffer;
mod engine;
mod errors;
mod fetch;
mod file;
mod fork;
mod ledger;
mod origin;
mod reproduce;
mod settings;
mod simulate;
mod stores;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
mod _forerun {
    #[pymodule_export]
    use crate::engine::{Engine, finish_engines};
    #[pymodule_export]
    use crate::file::Handle;
    #[pymodule_export]
    use crate::reproduce::reproduce;
    #[pymodule_export]
    use crate::simulate::simulate;
}
