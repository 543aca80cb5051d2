//! The extension module `_forerun`, on which the Python files of the package `forerun` stand.
//!
//! ```text
//! File (Python, io.RawIOBase) --> file::Handle --> forerun_io::Reader --> the process's engine
//! hints, ledger, settings     --> engine::Engine --> forerun_io::Driver
//! simulate, count, sweep      --> forerun, the command line's own, in virtual time
//! reproduce                   --> forerun_lab, likewise
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `engine`, `file` | the classes `Engine` and `Handle` |
//! | `origin`, `stores`, `listed`, `fetch` | paths, addresses, listings, and functions that read ranges |
//! | `calls` | fetch functions called on threads that Python started |
//! | `hint`, `announced` | reads announced by file or by name, and the files that are kept open for them |
//! | `place`, `lines`, `turn` | the position of a file, which threads use in turns, and its lines; the turn of a target |
//! | `waiting`, `release` | reads of servers, which an interrupt ends; threads without the interpreter |
//! | `fork`, `deferred` | values that a child process must neither use nor drop; those that are dropped with the interpreter |
//! | `buffer`, `settings`, `errors`, `ledger`, `log` | values of Python from and to those of the libraries; with `deferred` the only unsafe code is in `buffer` |
//! | `simulate`, `sweep`, `own`, `reproduce` | runs and counts of the command line, sweeps, methods written in Python; a paper's claims |
//!
//! The interpreter is released around every read, open, hint and simulation, and held while a lock of this crate is held: a
//! fork happens with the interpreter held, so that no such lock is ever copied locked (but those of [`calls`] and of the
//! files that [`hint`] opens, which a child process does not use), nor PyO3's of objects that are dropped without it: those
//! are [`deferred`]. Under a lock nothing is called, no exception is made and no object dropped: each may run Python code.

mod announced;
mod buffer;
mod calls;
mod deferred;
mod engine;
mod errors;
mod fetch;
mod file;
mod fork;
mod hint;
mod ledger;
mod lines;
mod listed;
mod log;
mod origin;
mod own;
mod place;
mod release;
mod reproduce;
mod settings;
mod simulate;
mod stores;
mod sweep;
mod turn;
mod waiting;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
mod _forerun {
    #[pymodule_export]
    use crate::calls::{Call, CallThread, collecting};
    #[pymodule_export]
    use crate::engine::{Engine, finish_engines};
    #[pymodule_export]
    use crate::file::Handle;
    #[pymodule_export]
    use crate::listed::listed;
    #[pymodule_export]
    use crate::log::log;
    #[pymodule_export]
    use crate::release::forked;
    #[pymodule_export]
    use crate::reproduce::reproduce;
    #[pymodule_export]
    use crate::simulate::{Simulation, counted, options};
    #[pymodule_export]
    use crate::sweep::{Rows, failed_planned, planned, run_planned};
    #[pymodule_export]
    use crate::turn::Turn;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "a name of Python's")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
