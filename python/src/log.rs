//! Messages of the engine on stderr, if `FORERUN_LOG` asks for them.
//!
//! Threads of the engine run no Python code, so that `logging` cannot have them.

use std::io::{self, Write};

use pyo3::prelude::*;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::errors::value;

/// The file of stderr, without the lock of the standard library: a thread of an engine may have that while it waits for
/// the reader of a pipe, and a child process that is forked meanwhile would wait for ever.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stderr(), line)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes messages of these levels to stderr from now on. Of two calls the first counts.
///
/// # Errors
/// `ValueError` if it is neither a level nor parts with levels.
#[pyfunction]
pub(crate) fn log(levels: &str) -> PyResult<()> {
    let refused = || {
        let wanted = "must be a level (error, warn, info, debug, trace, off), or parts with levels, as in \
                      warn,forerun_io=debug";
        value(format!("FORERUN_LOG of {levels:?}: {wanted}"))
    };
    // A word alone is the name of a part to the filter, whatever it is.
    let is_known = |part: &str| {
        let part = part.trim();
        part.contains('=') || part.starts_with("forerun") || part.parse::<LevelFilter>().is_ok()
    };
    if !levels.split(',').all(is_known) {
        return Err(refused());
    }
    let filter: Targets = levels.parse().map_err(|_| refused())?;
    let lines = fmt::layer()
        .with_writer(|| Stderr)
        // Its own messages are written under the lock.
        .log_internal_errors(false)
        .with_ansi(false)
        .without_time();
    let set = tracing_subscriber::registry().with(lines.with_filter(filter));
    // Another call was first.
    let _ = set.try_init();
    Ok(())
}
